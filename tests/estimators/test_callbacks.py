"""scikit-learn's own callbacks are told how far a question is, and nothing else."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skldp import BayesianFilter, PrivacyLedger

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

PUBLIC = np.random.default_rng(0).uniform(0, 1, (40, 2))
PEOPLE = np.random.default_rng(1).uniform(0, 1, (30, 2))
pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")


class Recorder:
    """Write down what a callback is told."""

    def __init__(self, fail_at=None):
        self.fail_at, self.told, self.given = fail_at, [], []

    def setup(self, estimator, context):
        self.told.append("setup")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.told.append(f"{context.task_name} of {context.max_subtasks}")
        self.given += [X, y, metadata, fitted_estimator]

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.told.append(f"{context.task_name} done")
        self.given += [X, y, metadata, fitted_estimator]
        if self.fail_at == context.task_name:
            raise RuntimeError("I am full.")
        return True

    def teardown(self, estimator, context):
        self.told.append("teardown")


CERTIFIED = [
    "setup",
    "certify of 2",
    *["history of 0", "history done"] * 2,
    "certify done",
    "teardown",
]


def steep_surveys(**parameters):
    """Two logistic models under one ledger: all answer the first with one of two values, and the second searches."""
    rng, ledger = np.random.default_rng(3), PrivacyLedger(1.5, bounds=(0, 1))
    for _ in range(2):
        score = PUBLIC @ rng.uniform(-5, 5, 2)
        classifier = FrozenEstimator(LogisticRegression().fit(PUBLIC, score > np.median(score)))
        yield BayesianFilter(classifier, epsilon=1.0, ledger=ledger, seed=0, **parameters).fit(PUBLIC)


@pytest.mark.parametrize("verbose", [False, True])
def test_a_callback_is_told_of_each_history_and_of_no_row(verbose):
    pytest.importorskip("rich")
    first, second = steep_surveys()
    first.query(PEOPLE, ids=range(30))
    plain = second.query(PEOPLE, ids=range(30))

    first, second = steep_surveys(verbose=verbose)
    first.query(PEOPLE, ids=range(30))
    recorder = Recorder()
    told = second.set_callbacks(recorder).query(PEOPLE, ids=range(30))
    assert recorder.told == CERTIFIED
    assert recorder.given == [None] * len(recorder.given)
    np.testing.assert_array_equal(told.outputs, plain.outputs)


@pytest.mark.parametrize("task", ["history", "certify"])
def test_a_callback_that_fails_stops_the_question_before_anybody_answers(task):
    first, second = steep_surveys()
    first.query(PEOPLE, ids=range(30))
    before = [len(second.ledger_.history(person)) for person in range(30)]
    recorder = Recorder(fail_at=task)
    with pytest.raises(RuntimeError, match="full"):
        second.set_callbacks(recorder).query(PEOPLE, ids=range(30))
    assert recorder.told[-1] == "teardown"
    assert [len(second.ledger_.history(person)) for person in range(30)] == before
    # The next question begins anew.
    assert second.set_callbacks().query(PEOPLE, ids=range(30)).accepted.any()


def test_a_search_is_told_of_every_fit():
    filters = BayesianFilter(LogisticRegression(), total_epsilon=2.0, bounds=(0, 1))
    y = (PUBLIC[:, 0] > 0.5).astype(int)
    for steps in (filters, make_pipeline(filters)):
        name = "epsilon" if steps is filters else "bayesianfilter__epsilon"
        search = GridSearchCV(steps, {name: [0.5, 1.0]}, cv=2, scoring=lambda model, X, y: 0.0)
        recorder = Recorder()
        recorder.max_propagation_depth = None
        search.set_callbacks(recorder).fit(PUBLIC, y)
        begun = [event for event in recorder.told if " of " in event]
        done = [event for event in recorder.told if event.endswith(" done")]
        assert len(begun) == len(done) > 4
        assert (recorder.told[0], recorder.told[-1]) == ("setup", "teardown")
