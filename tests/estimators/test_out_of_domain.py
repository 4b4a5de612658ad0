"""Warnings about bounds name the columns, and come once a search; what cannot be handed out is refused before."""

import inspect
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.model_selection._validation import _fit_and_score
from sklearn.pipeline import make_pipeline

from skldp import (
    BitRandTransformer,
    BoundsScaler,
    LabelRR,
    NumericPrivatizer,
    PrivateDiscriminant,
    PrivateLinearRegression,
    PrivateMoments,
    PrivUnitTransformer,
    TablePrivatizer,
)
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, TooFewPeopleWarning

pd = pytest.importorskip("pandas")

N = 300
ROWS = pd.DataFrame({"age": np.linspace(0, 120, N), "dose": np.linspace(0, 1, N), "fare": np.linspace(-1, 1, N)})
BOUNDS = {"age": (0, 100), "dose": (0, 1), "fare": (0, 1)}
CLASSES = np.arange(N) % 2


@pytest.mark.parametrize(
    "estimator",
    [
        BoundsScaler(BOUNDS),
        NumericPrivatizer(bounds=BOUNDS),
        PrivUnitTransformer(bounds=BOUNDS),
        TablePrivatizer(schema=BOUNDS),
        PrivateMoments(bounds=BOUNDS),
        PrivateLinearRegression(bounds=BOUNDS),
        PrivateDiscriminant(bounds=BOUNDS, classes=[0, 1]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_columns_are_named_and_no_others(fixed_noise, estimator):
    call = getattr(estimator, "fit_transform", estimator.fit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", TooFewPeopleWarning)
        warnings.simplefilter("always", OutOfDomainWarning)
        call(ROWS, CLASSES)
    (text,) = {str(one.message) for one in caught}
    assert "moved into it (in 'age', 'fare'). " in text
    assert " of 900 values (" in text or " of 1,200 values (" in text


def test_many_columns_are_not_all_named_and_those_without_names_have_numbers():
    with pytest.warns(OutOfDomainWarning, match=r"\(in 'x1', 'x2', 'x3', 'x4', \.\.\.\)"):
        NumericPrivatizer().fit_transform(np.tile([0, 2, 2, 2, 2, 2], (4, 1)))


def test_a_search_warns_once(fixed_noise):
    model = make_pipeline(NumericPrivatizer(bounds=BOUNDS), LogisticRegression())
    search = GridSearchCV(model, {"numericprivatizer__epsilon": [1.0, 2.0]}, cv=3, refit=False)
    for _ in range(2):
        # Each search, however often there is one.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", OutOfDomainWarning)
            search.fit(ROWS.sample(frac=1, random_state=0), CLASSES)
    assert [str(one.message).partition(".")[0] for one in caught] == [
        "Values lay outside the declared domain and were moved into it (in 'age', 'fare')"
    ]


def test_a_search_says_each_exact_epsilon_once(fixed_noise):
    model = make_pipeline(BitRandTransformer(bounds=(0, 100)), LogisticRegression())
    search = GridSearchCV(model, {"bitrandtransformer__epsilon": [1.0, 2.0]}, cv=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", OutOfDomainWarning)
        warnings.simplefilter("always", PrivacyGuaranteeWarning)
        search.fit(ROWS, CLASSES)
    stated = [str(one.message).partition(",")[0] for one in caught]
    assert stated == [f"BitRandTransformer states epsilon {epsilon}" for epsilon in (1, 2)]


IN_PROCESSES = """
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from skldp import NumericPrivatizer

if __name__ == "__main__":
    # One row in two is outside, so that every training part has some of each class, and some outside.
    X, y = np.tile([[0.0], [2.0]], (12, 1)), np.arange(24) // 2 % 2
    model = make_pipeline(NumericPrivatizer(), LogisticRegression())
    for refit in (False, True):
        GridSearchCV(model, {"numericprivatizer__epsilon": [1.0, 2.0]}, cv=3, n_jobs=2, refit=refit).fit(X, y)
        print("searched", file=__import__("sys").stderr, flush=True)
"""


def test_a_search_in_several_processes_warns_once(tmp_path):
    script = tmp_path / "search.py"
    script.write_text(IN_PROCESSES, encoding="utf-8")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    first, second, _ = (part.count("OutOfDomainWarning:") for part in run.stderr.split("searched"))
    assert first == 1
    # Before scikit-learn told a fit whose it is, nobody knew that the search would fit once more.
    assert second == (1 if "caller" in inspect.signature(_fit_and_score).parameters else 2)


def test_a_sparse_release_that_no_frame_can_hold_is_refused_before_it_is_made(monkeypatch):
    def released(*args):
        raise AssertionError("something was released")

    table = TablePrivatizer(schema={"city": ["Bonn", "Ulm"]}, sparse_output=True)
    people = pd.DataFrame({"city": ["Ulm", "Bonn"]})
    table.fit(people)
    monkeypatch.setattr(type(table.mechanism_), "release", released)
    for refused in (table.set_output(transform="pandas").transform, table.fit_transform, table.fit):
        with pytest.raises(ValueError, match=r"no frame\. Got set_output\(transform='pandas'\)"):
            refused(people)
    table.set_output(transform="default")
    with config_context(transform_output="polars"), pytest.raises(ValueError, match="transform='polars'"):
        TablePrivatizer(schema={"city": ["Bonn", "Ulm"]}, sparse_output=True).fit_transform(people)


def test_several_labels_are_sent_to_their_mechanism():
    for labels in (np.zeros((4, 2)), pd.DataFrame(np.zeros((4, 2)))):
        with pytest.raises(ValueError, match=r"shape \(4, 2\) instead: LabelMatrixRR releases several labels"):
            LabelRR(classes=[0, 1]).fit(labels)
