"""Nobody who did not ask for threads or processes needs them: in a browser none can start."""

import multiprocessing.process
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

import skldp

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-1, 1, (3_000, 4)), RNG.integers(0, 2, 3_000)
TABLE = pd.DataFrame({"age": X[:, 0], "city": np.array(["Bonn", "Ulm"])[Y]})
SCHEMA = {"age": (-1, 1), "city": ["Bonn", "Ulm"]}


@pytest.fixture(autouse=True)
def neither_threads_nor_processes(monkeypatch):
    def start(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", start)


def ask():
    ledger, slopes = skldp.PrivacyLedger(1.5, bounds=(-1, 1)), RNG.uniform(-5, 5, (2, 4))
    for weights in slopes:
        classifier = FrozenEstimator(LogisticRegression().fit(X, X @ weights > 0))
        survey = skldp.BayesianFilter(classifier, ledger=ledger).fit(X)
        # The second model searches for everybody's history.
        answers = survey.query(X[:20], ids=range(20))
    return answers.accepted


CALLS = {
    "numbers": lambda: skldp.NumericPrivatizer(2.0, bounds=(-1, 1)).fit_transform(X),
    "vectors": lambda: skldp.PrivUnitTransformer(2.0, bounds=(-1, 1)).fit_transform(X),
    "bits": lambda: skldp.BitRandTransformer(8.0, calibration="exact").fit_transform(X),
    "table": lambda: skldp.TablePrivatizer(2.0, schema=SCHEMA).fit_transform(TABLE),
    "labels": lambda: skldp.LabelRR(2.0, classes=[0, 1]).fit_transform(Y),
    "targets": lambda: skldp.LabelPrivateRegressor(
        LinearRegression(), target_mechanism=skldp.TargetPrivatizer(2.0, bounds=(-1, 1))
    ).fit(X, X[:, 0]),
    "regression": lambda: skldp.PrivateLinearRegression(8.0, bounds=(-1, 1), target_bounds=(-1, 1)).fit(X, X[:, 0]),
    "classes": lambda: skldp.PrivateLogisticRegression(8.0, bounds=(-1, 1), classes=[0, 1]).fit(X, Y),
    "blocks": lambda: skldp.release_blocks(skldp.PrivUnitTransformer(2.0, bounds=(-1, 1)).fit(X), X, np.empty_like(X)),
    "questions": ask,
}


@pytest.mark.few(4)
@pytest.mark.filterwarnings("ignore::skldp.exceptions.BudgetExhaustedWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
@pytest.mark.parametrize("name", CALLS)
def test_what_is_called_without_n_jobs_starts_none(name):
    CALLS[name]()
