"""Bounds by column name, wherever bounds are declared."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skldp import BayesianFilter, NumericPrivatizer, PrivacyLedger, PrivateLinearRegression
from skldp.estimators._from_estimator import query_from_estimator
from skldp.exceptions import LedgerError, OutOfDomainWarning, TooFewPeopleWarning

FRAME = pd.DataFrame({"age": np.linspace(18, 90, 60), "dose": np.tile([0.0, 0.5, 1.0], 20)})
Y = FRAME["age"] / 90 + FRAME["dose"]
# In another order than the columns.
BOUNDS = {"dose": (0, 1), "age": (18, 90)}
ENDS = ([18, 0], [90, 1])


def test_a_filter_and_a_query_read_names():
    model = LinearRegression().fit(FRAME, Y)
    by_name, by_order = (query_from_estimator(model, epsilon=1.0, bounds=bounds) for bounds in (BOUNDS, ENDS))
    assert (by_name.output_bounds, by_name.key) == (by_order.output_bounds, by_order.key)
    survey = BayesianFilter(LinearRegression(), bounds=BOUNDS).fit(FRAME, Y)
    np.testing.assert_array_equal(survey.bounds_, ENDS)
    with pytest.raises(ValueError, match=r"name unknown \['doses'\]\. Did you mean 'dose'\?"):
        BayesianFilter(LinearRegression(), bounds={"age": (18, 90), "doses": (0, 1)}).fit(FRAME, Y)
    with pytest.raises(ValueError, match="table without names"):
        query_from_estimator(LinearRegression().fit(FRAME.to_numpy(), Y), epsilon=1.0, bounds=BOUNDS)


@pytest.mark.parametrize("in_file", [True, False])
def test_a_ledger_declares_the_features_that_its_bounds_name(tmp_path, in_file):
    path = tmp_path / "budgets.ledger" if in_file else ":memory:"
    by_order = {name: BOUNDS[name] for name in FRAME.columns}
    with PrivacyLedger(2.0, bounds=by_order, path=path) as ledger:
        assert (ledger.bounds, list(ledger.features)) == (tuple(map(list, ENDS)), ["age", "dose"])
        survey = BayesianFilter(LinearRegression(), epsilon=0.5, ledger=ledger).fit(FRAME, Y)
        assert survey.query(FRAME, ids=range(60)).accepted.all()
        # Equal coefficients of other features would be another question.
        swapped = BayesianFilter(LinearRegression(), epsilon=0.5, ledger=ledger)
        with pytest.warns(OutOfDomainWarning):
            swapped.fit(FRAME[["dose", "age"]], Y)
        with pytest.raises(LedgerError, match="features of a ledger must not change"):
            swapped.query(FRAME[["dose", "age"]], ids=range(60))
    if in_file:
        PrivacyLedger(2.0, bounds=by_order, path=path).close()
        with pytest.raises(LedgerError, match="must not change"):
            PrivacyLedger(2.0, bounds=BOUNDS, path=path)


def test_what_passes_arrays_is_told_of():
    model = PrivateLinearRegression(bounds=BOUNDS, target_bounds=(0, 2))
    no_names = make_pipeline(FunctionTransformer(np.asarray), NumericPrivatizer(bounds=BOUNDS))
    for wrapper in (BaggingRegressor(model), no_names):
        with pytest.raises(ValueError, match=r"table without names\. Ensembles such as BaggingClassifier and"):
            wrapper.fit(FRAME, Y)
    by_pairs = PrivateLinearRegression(bounds=[(18, 90), (0, 1)], target_bounds=(0, 2))
    with pytest.warns(TooFewPeopleWarning):
        BaggingRegressor(by_pairs, n_estimators=2).fit(FRAME, Y)
    no_names[0].set_output(transform="pandas").set_params(func=None)
    assert no_names.fit_transform(FRAME).shape == (60, 2)


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ((90, 18), "low 90 exceeds high 18 for feature 0"),
        (([18, 1], [90, 1]), "low 1 equals high 1 for feature 1"),
        ([(18, 90), (1, 0)], "low 1 exceeds high 0 for feature 1. A list is one pair per column"),
        (BOUNDS | {"age": (90, 18)}, "low 90 exceeds high 18 for 'age'"),
        (BOUNDS | {"age": (np.nan, 18)}, "must be (low, high) for 'age'"),
        (None, "must be (low, high), a list of one pair per column, or a dict of pairs by column name. Got None"),
        (90, "must be (low, high), a list of one pair per column, or a dict of pairs by column name. Got 90"),
    ],
)
def test_errors_say_which_bounds_are_wrong(bounds, told):
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the text is compared below
        NumericPrivatizer(bounds=bounds).fit(FRAME)
    assert told in str(refused.value)
