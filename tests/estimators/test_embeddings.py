import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skldp.accounting import shuffled
from skldp.domains._norms import nearest_rows
from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._random_projection import RandomProjectionPrivatizer
from skldp.estimators._vector import MultivariateLaplacePrivatizer, PrivUnitTransformer
from skldp.exceptions import OutOfDomainWarning
from skldp.mechanisms import noise_from

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")


def rows(n=200, d=6, dtype=np.float64):
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


def test_a_radius_is_enforced_and_what_it_moves_is_counted():
    X = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    for privatizer in (
        PrivUnitTransformer(norm=1.0, transform_noise=False),
        MultivariateLaplacePrivatizer(radius=1.0, transform_noise=False),
    ):
        with pytest.warns(OutOfDomainWarning, match=r"1 of 3 rows .* Declare a larger (norm|radius) if"):
            inside = privatizer.fit(X).transform(X)
        np.testing.assert_allclose(inside, [[0.6, 0.8], [0.3, 0.4], [0, 0]])


def test_guarantees():
    X = rows(d=4)
    unit = PrivUnitTransformer(epsilon=2.0).fit(X).privacy_guarantee_
    assert (unit.unit, unit.delta, unit.stated) == ("record", 0.0, 2.0)
    assert unit.epsilon == pytest.approx(2.0, rel=1e-9)
    assert unit.epsilon <= 2.0
    metric = MultivariateLaplacePrivatizer(epsilon=2.0, radius=3.0).fit(X).privacy_guarantee_
    assert (metric.unit, metric.epsilon, metric.plain_epsilon) == ("distance", 2.0, 12.0)
    assert MultivariateLaplacePrivatizer().fit(X).privacy_guarantee_.plain_epsilon == np.inf


def test_vocabulary_releases_words():
    words = rows(40, 5)
    privatizer = MultivariateLaplacePrivatizer(epsilon=8.0, vocabulary=words, seed=1).fit(words)
    released = privatizer.transform(words)
    np.testing.assert_array_equal(released, words[nearest_rows(released, words)])
    quiet = MultivariateLaplacePrivatizer(vocabulary=words, transform_noise=False).fit(words)
    np.testing.assert_array_equal(quiet.transform(words + 1e-9), words)
    np.testing.assert_array_equal(quiet.transform(rows(10, 5) + 1), words[nearest_rows(rows(10, 5) + 1, words)])


def test_two_words_with_one_vector_are_one_word():
    words = np.array([[0.0, 0], [1, 1], [1, 1]])
    privatizer = MultivariateLaplacePrivatizer(vocabulary=words, transform_noise=False).fit(words)
    assert privatizer.transform(words).tolist() == words.tolist()


@pytest.mark.filterwarnings("ignore:RandomProjectionPrivatizer states delta")
@pytest.mark.parametrize("cls", [MultivariateLaplacePrivatizer, RandomProjectionPrivatizer])
def test_rows_normalized_to_the_radius_are_not_counted_as_outside(cls):
    X = rows(500, 384, np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert (np.linalg.norm(X.astype(float), axis=1) > 1).any()
    # Warnings are errors here.
    assert cls(radius=1.0).fit_transform(X).dtype == np.float32


LOW, HIGH = np.array([0.0, 1_000.0, -1.0]), np.array([100.0, 200_000.0, 1.0])


def people(n=300, dtype=np.float64):
    return np.random.default_rng(1).uniform(LOW, HIGH, (n, 3)).astype(dtype)


@pytest.mark.parametrize("norm", ["unit", 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_declared_bounds_scale_a_table_before_its_release(norm, dtype):
    rows = people(dtype=dtype)
    scaler = BoundsScaler(bounds=(LOW, HIGH))
    for seed, noisy in ((3, True), (None, False)):
        plain = PrivUnitTransformer(4.0, norm=norm, seed=seed, transform_noise=noisy)
        scaled = clone(plain).set_params(bounds=(LOW, HIGH)).fit(rows)
        vectors = scaler.fit_transform(rows.astype(np.float64))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutOfDomainWarning)
            np.testing.assert_allclose(scaled.transform(rows), plain.fit(vectors).transform(vectors), atol=1e-4)
        assert scaled.privacy_guarantee_ == plain.privacy_guarantee_
        assert scaled.radius_ == plain.radius_
        assert scaled.transform(rows).dtype == dtype


def test_a_table_with_bounds_has_the_guarantee_of_its_vectors():
    rows = people(40)
    privatizer = PrivUnitTransformer(2.0, norm=1.0, bounds=(LOW, HIGH)).fit(rows)
    law = privatizer.mechanism_
    released = law.inner.release(np.zeros((40, 3)), noise_from()).rows
    # No two rows of the table, and none outside, make a release likelier than epsilon says.
    likelihoods = np.array([law.log_likelihood(released, np.tile(row, (40, 1))) for row in np.vstack([rows, rows * 9])])
    assert np.ptp(likelihoods, axis=0).max() <= privatizer.privacy_guarantee_.epsilon
    assert np.abs(law.bias(rows)).max() <= 1e-12
    assert shuffled(law, 1_000, 1e-6).epsilon == shuffled(law.inner, 1_000, 1e-6).epsilon
