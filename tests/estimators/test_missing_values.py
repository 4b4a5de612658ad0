"""People with missing values are asked as the record that a frozen imputer makes of them, and always as that one."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldp import BayesianFilter, PrivacyLedger
from skldp.exceptions import LedgerError

NAN = math.nan
PUBLIC = np.random.default_rng(0).uniform(-1, 1, (60, 2))
TARGET = PUBLIC @ [1.0, -0.5]
PEOPLE = np.array([[NAN, 0.5], [0.25, NAN], [NAN, NAN], [0.1, -0.9]])
IDS = ["ann", "bob", "eve", "dan"]


def imputer(*values):
    return FrozenEstimator(SimpleImputer().fit([values]))


def survey(model, ledger, **options):
    return BayesianFilter(model, epsilon=0.5, ledger=ledger, **options).fit(PUBLIC, TARGET)


@pytest.fixture
def ledger():
    with PrivacyLedger(2.0, bounds=(-1, 1)) as made:
        yield made


@pytest.mark.parametrize("table", [np.asarray, lambda X: X.astype(np.float32), pd.DataFrame], ids=["64", "32", "frame"])
def test_a_person_with_nan_is_the_record_that_the_imputer_makes(monkeypatch, ledger, table):
    """Within the domain: what is filled in from elsewhere is moved like everything else."""
    asked = BayesianFilter(make_pipeline(imputer(0.5, 7.0), Ridge()), epsilon=0.5, ledger=ledger)
    asked.fit(table(PUBLIC), TARGET)
    seen, sample = [], type(asked.query_).sample
    monkeypatch.setattr(type(asked.query_), "sample", lambda query, X, noise: seen.append(X) or sample(query, X, noise))
    assert asked.query(table(PEOPLE), ids=IDS).accepted.all()
    expected = [[0.5, 0.5], [0.25, 1.0], [0.5, 1.0], [0.1, -0.9]]
    np.testing.assert_allclose(seen[0], expected, atol=1e-7)
    assert ledger.missing == (0.5, 7.0)
    assert ledger.verify().ok


def test_the_same_person_is_never_another_record(ledger):
    """The attack: two imputers ask two records of one person, whose losses a certificate takes for one record's."""
    survey(make_pipeline(imputer(0.5, 0.0), Ridge()), ledger).query(PEOPLE, ids=IDS)
    other = survey(make_pipeline(imputer(-0.5, 0.0), Ridge()), ledger)
    with pytest.raises(LedgerError, match="missing of a ledger must not change"):
        other.query(PEOPLE, ids=IDS)
    with pytest.raises(LedgerError, match="missing of a ledger must not change"):
        other.preview(IDS)
    # Whole rows are the same record for a model without an imputer, and rows with NaN are none.
    plain = survey(Ridge(), ledger)
    assert plain.query(np.nan_to_num(PEOPLE, nan=0.5), ids=IDS).accepted.all()
    with pytest.raises(ValueError, match="contains NaN"):
        plain.query(PEOPLE, ids=IDS)
    # It was the very same question about the very same records.
    assert ledger.verify().n_releases == 1


def test_what_is_declared_does_not_depend_on_who_misses_something(tmp_path):
    """A ledger that was declared where somebody had NaN would tell that somebody had."""
    told = []
    for number, rows in enumerate((PEOPLE, np.zeros((4, 2)))):
        with PrivacyLedger(2.0, bounds=(-1, 1), path=tmp_path / f"{number}.ledger") as ledger:
            survey(make_pipeline(imputer(0.5, 0.0), Ridge()), ledger).query(rows, ids=IDS)
            told.append((ledger.missing, ledger.features, ledger.verify().n_answers))
        with PrivacyLedger.open(tmp_path / f"{number}.ledger") as ledger:
            assert ledger.missing == (0.5, 0.0)
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(SimpleImputer(), Ridge()),
        make_pipeline(StandardScaler(), imputer(0.0, 0.0), Ridge()),
        Ridge(),
    ],
    ids=["not frozen", "not first", "none"],
)
def test_an_imputer_that_may_change_or_sees_other_units_does_not_count(ledger, model):
    asked = survey(model, ledger)
    with pytest.raises(ValueError, match="contains NaN"):
        asked.query(PEOPLE, ids=IDS)
    assert ledger.missing is None
    assert ledger.verify().n_releases == 0


@pytest.mark.parametrize(
    "model",
    [
        FrozenEstimator(make_pipeline(SimpleImputer(), StandardScaler(), Ridge()).fit(PUBLIC, TARGET)),
        make_pipeline(make_pipeline(imputer(0.1, 0.2), StandardScaler()), Ridge()),
        GridSearchCV(make_pipeline(imputer(0.1, 0.2), Ridge()), {"ridge__alpha": [0.1, 1.0]}, cv=2),
        make_pipeline(imputer(0.1, 0.2), LogisticRegression()),
    ],
    ids=["whole", "nested", "search", "logistic"],
)
def test_frozen_imputers_are_found_wherever_a_model_begins_with_them(ledger, model):
    target = TARGET > 0 if "logistic" in str(model).lower() else TARGET
    asked = BayesianFilter(model, epsilon=0.5, ledger=ledger).fit(PUBLIC, target)
    assert asked.query(PEOPLE, ids=IDS).accepted.all()
    assert ledger.missing is not None
