"""At a very large epsilon every baseline of the studies reaches the clean score, or a stated property prevents it."""

import numpy as np
import pytest

from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, PRIVATE_MODELS
from skldp.study._comparison import ComparisonSettings, compare_mechanisms, study_pipeline
from skldp.study._datasets import StudyData

EPSILON, N = 2_000.0, 10_000
# Of R2 and of the accuracy.
DIFFERENCE = 0.01
RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1, 1, (N, 3))
LINE = ROWS @ [2.0, -1.0, 0.5]
# Neither the middle of its bounds nor 0 is the mean of the target.
TARGET = np.clip(3 + LINE + RNG.normal(0, 0.3, N), -2, 8)
# In a classification, PrivUnit releases directions: the class depends on the direction of a row.
CLASSES = np.where(LINE + RNG.normal(0, 0.3, N) * np.linalg.norm(ROWS, axis=1) > 0, "high", "low")


def data(X, y, **options):
    ends = -np.ones(X.shape[1]), np.ones(X.shape[1])
    names = tuple(map(str, range(X.shape[1])))
    return StudyData("made up", X, y, names, *ends, "declared bounds", **options)


REGRESSION = data(ROWS, TARGET, target_bounds=(-2.0, 8.0))
CLASSIFICATION = data(ROWS, CLASSES)
BASELINES = {
    "numbers": (REGRESSION, "none", [*FEATURE_MECHANISMS, *PRIVATE_MODELS["regression"]]),
    "classes": (CLASSIFICATION, "label-rr", [*FEATURE_MECHANISMS, *PRIVATE_MODELS["classification"]]),
    **{f"classes, {label}": (CLASSIFICATION, label, ["none"]) for label in LABEL_MECHANISMS},
}


# What keeps a release from the clean score at every epsilon.
NOISE_STAYS = {
    "duchi": "two values, of variance 1 - x^2",
    "ldp-fl": "two values, of variance 1 - x^2",
    "three-outputs": "three values, of a variance above 0 between them",
    "duchi-vector": "two values in every coordinate",
    "latent": "a bit of 1 stays with probability 1 / (1 + alpha)",
    "latent-exact": "a bit of 1 stays with probability 1 / (1 + alpha)",
    "ome": "a bit of 1 stays with probability 1 / 2 at alpha = 1",
    "ome-exact": "a bit of 1 stays with probability 1 / 2 at alpha = 1",
}
NO_TARGET_COLUMN = ("privunit-projected", "random-projection", "random-projection-exact")


def release_of(name):
    settings = ComparisonSettings((EPSILON,), labels="none", seed=0)
    return study_pipeline(name, CLASSIFICATION, settings)[0].set_params(features__epsilon=EPSILON)[:1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")
@pytest.mark.parametrize("compared", BASELINES)
def test_baselines_reach_the_clean_score(compared):
    study, labels, names = BASELINES[compared]
    settings = ComparisonSettings((EPSILON,), labels=labels, folds=2, seed=0)
    possible = [name for name in names if study.task != "regression" or name not in NO_TARGET_COLUMN]
    found = compare_mechanisms(study, possible, settings)
    clean = found.first.clean_mean
    assert clean > 0.9
    # Noise that stays costs a class less than a number, or nothing.
    scores = {name: found.curves[name][0].score_mean for name in possible if name not in NOISE_STAYS}
    assert {name: score for name, score in scores.items() if score <= clean - DIFFERENCE} == {}
    for name in {*names} - {*possible}:
        with pytest.raises(ValueError, match="columns of its row"):
            compare_mechanisms(study, [name], settings)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")
@pytest.mark.parametrize("name", NOISE_STAYS)
def test_noise_stays_at_every_epsilon(name):
    released = release_of(name).fit_transform(np.repeat(CLASSIFICATION.X[:1], 2_000, axis=0))
    assert np.std(np.asarray(released), axis=0).max() > 0.15
