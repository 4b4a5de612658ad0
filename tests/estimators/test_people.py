"""Who the people are that a BayesianFilter asks, and what whoever asks them can see."""

import pickle
import struct
import warnings
from contextlib import closing

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery, realized_loss
from skldp.estimators._bayesian_filter import BayesianFilter
from skldp.exceptions import LedgerError, RowIdentityWarning

SLOPES = np.array([1.0, -2.0])
PUBLIC = np.random.default_rng(0).uniform(0, 1, (40, 2))
PEOPLE = np.random.default_rng(1).uniform(0, 1, (30, 2))
Y = PEOPLE @ SLOPES + np.random.default_rng(2).normal(size=30)
NAMES = [f"p{number}" for number in range(30)]
THREE_WAYS = r"pass ids to query, predict or score; or name a column of X, or its index, with .*without a ledger"


@pytest.fixture
def ledger():
    made = PrivacyLedger(1.0, bounds=(0, 1), rule="basic")
    yield made
    made.close()


@pytest.fixture
def file_ledger(tmp_path):
    made = PrivacyLedger(1.0, bounds=(0, 1), path=tmp_path / "a.ledger")
    yield made
    made.close()


def fitted(slopes=SLOPES, **parameters):
    model = FrozenEstimator(LinearRegression().fit(PUBLIC, PUBLIC @ slopes))
    return BayesianFilter(model, **{"bounds": (0, 1), **parameters}).fit(PUBLIC)


def seen(call):
    """All that whoever makes a call sees of it, apart from its duration."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(call())
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return result, [(w.category.__name__, str(w.message)) for w in caught]


# The attacks


@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
def test_bisecting_the_bounds_learns_nothing(ledger):
    """Bounds that the ledger does not have were refused, but only after a count of what lies outside of them."""

    def ask(t, x):
        survey = fitted(bounds=(0, t), ledger=ledger)
        return seen(lambda: survey.query([[x, x]], ids=["ann"]))

    for t in (0.25, 0.5, 0.75):
        assert ask(t, 0.1) == ask(t, 0.4) == ask(t, 0.6) == ask(t, 0.9)
        assert ask(t, 0.9)[0].startswith("LedgerError")
    assert ledger.verify().n_answers == 0


@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
def test_choosing_the_bounds_of_a_new_ledger_tells_nothing_beyond_the_answer():
    def ask(t, x):
        with closing(PrivacyLedger(1.0)) as new:
            # Public rows outside are warned of before anybody is asked.
            survey = fitted(bounds=(0, t), ledger=new)
            return seen(lambda: survey.predict([[x, x]], ids=["ann"]))[1]

    assert [ask(t, x) for t in (0.25, 0.75) for x in (0.1, 0.5, 0.9)] == [[]] * 6


def test_a_file_holds_nothing_that_a_table_of_guesses_can_be_tried_on(file_ledger):
    """The key of the row hash lay beside the hashes: row_ids of a guess gave a person of the file."""
    survey = fitted(ledger=file_ledger)
    for ask in (survey.query, survey.predict, lambda X: survey.score(X, Y)):
        with pytest.raises(ValueError, match=THREE_WAYS):
            ask(PEOPLE)
    survey.set_params(ledger=None)
    with pytest.raises(LedgerError, match=r"fit it again; got no ledger"):
        survey.query(PEOPLE)
    assert file_ledger.verify().n_people == 0


@pytest.mark.filterwarnings("ignore::skldp.exceptions.BudgetExhaustedWarning")
def test_nobody_loses_more_than_the_budget_however_their_row_is_written():
    """As rows, everybody had five budgets: a certified lower bound of 4.5 at a budget of 1."""
    answered = {name: ([], []) for name in NAMES}
    with closing(PrivacyLedger(1.0, bounds=(0, 1))) as ledger:
        single = PEOPLE.astype(np.float32)
        for slope, rows in enumerate([PEOPLE, single, PEOPLE.round(6), PEOPLE.round(3), single.round(2)]):
            survey = fitted([1.0, slope], epsilon=0.9, ledger=ledger)
            result = survey.query(rows, ids=NAMES)
            for name, output in zip(NAMES, result.outputs, strict=True):
                if not np.isnan(output):
                    answered[name][0].append(survey.query_)
                    answered[name][1].append(survey.query_.output_values.index(output))
    losses = [realized_loss(*story, bounds=(0, 1)).lower for story in answered.values()]
    assert 0.5 < max(losses) <= 1.0


def test_other_orders_of_the_columns_are_refused(ledger):
    frame = pd.DataFrame(PEOPLE, columns=["age", "dose"], index=NAMES)
    survey = BayesianFilter(LinearRegression(), epsilon=0.4, ledger=ledger).fit(frame, Y)
    survey.query(frame, ids=NAMES)
    with pytest.raises(ValueError, match="feature names"):
        survey.query(frame[["dose", "age"]], ids=NAMES)
    with pytest.raises(LedgerError, match="features of a ledger must not change"):
        clone(survey).fit(frame[["dose", "age"]], Y).query(frame[["dose", "age"]], ids=NAMES)
    assert ledger.verify().n_answers == 30


# What whoever asks can see


def scripted(monkeypatch):
    """Let people answer as ever, and hand out other answers: whatever else differs does so by the values."""
    sample = RegressionQuery.sample

    def sample_and_forget(query, X, noise):
        return np.resize(np.array([0, 1, 1], dtype=np.int8), len(sample(query, X, noise)))

    monkeypatch.setattr(RegressionQuery, "sample", sample_and_forget)


TABLES = {
    "inside": PEOPLE,
    "outside": np.random.default_rng(3).normal(0, 1e3, (30, 2)),
    "equal": np.full((30, 2), 0.5),
    "largest": np.full((30, 2), np.finfo(np.float64).max) * np.where(np.arange(60).reshape(30, 2) % 2, 1, -1),
    "smallest": np.full((30, 2), 5e-324),
    "edges": np.resize([0.0, 1.0, -0.0], (30, 2)),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("rule", ["basic", "simplified", "bayesian"])
def test_with_the_same_answers_all_tables_look_the_same(monkeypatch, rule):
    scripted(monkeypatch)

    def conversation(table):
        with closing(PrivacyLedger(1.0, bounds=(0, 1), rule=rule)) as ledger:
            models = [LinearRegression().fit(PUBLIC, PUBLIC @ slopes) for slopes in ([1, -2], [3, 1], [0, 1])]
            models.append(LogisticRegression().fit(PUBLIC, PUBLIC[:, 0] > 0.5))
            asked = [BayesianFilter(FrozenEstimator(m), epsilon=0.4, ledger=ledger).fit(PUBLIC) for m in models]
            for survey in asked:
                for call in (
                    lambda s=survey: s.query(table, ids=NAMES),
                    lambda s=survey: s.query(table, ids=NAMES, repeat=True).accepted.tolist(),
                    lambda s=survey: s.predict(table, ids=NAMES).tolist(),
                    lambda s=survey: s.query(table, ids=NAMES[:29]),
                    lambda s=survey: s.query(table[:, :1], ids=NAMES),
                    lambda s=survey: s.query(table),
                    lambda s=survey: s.query(table, ids=NAMES).realized_loss.tolist(),
                ):
                    yield seen(call)
            wrong = fitted(bounds=(0, 2), ledger=ledger)
            yield seen(lambda: wrong.query(table, ids=NAMES))
            yield ledger.summary().drop(columns="first_asked").to_csv()

    with np.errstate(all="raise"):
        stories = {name: list(conversation(table)) for name, table in TABLES.items()}
    assert [name for name, story in stories.items() if story != stories["inside"]] == []
    kinds = {outcome[0].split(":")[0].split("(")[0] for outcome in stories["inside"][:-1]}
    assert {"QueryResult", "ValueError", "LedgerError"} <= kinds


def test_a_table_that_is_no_table_of_numbers_is_refused_before_anything_is_decided(file_ledger):
    survey = fitted(epsilon=0.4, ledger=file_ledger)
    texts = set()
    for row in (0, 17):
        rows = PEOPLE.copy()
        rows[row, 1] = np.nan
        texts.add(seen(lambda rows=rows: survey.query(rows, ids=NAMES))[0])
    assert len(texts) == 1
    assert "NaN" in texts.pop()
    assert file_ledger.summary().empty
    # What else is wrong is said first, so that the refusal of NaN is the only outcome that depends on a value.
    for call in (
        lambda rows: survey.query(rows, ids=NAMES[:2]),
        lambda rows: survey.query(rows, ids=[*NAMES[:-1], "p0"]),
        lambda rows: survey.query(rows),
        lambda rows: fitted(bounds=(0, 2), ledger=file_ledger).query(rows, ids=NAMES),
    ):
        assert seen(lambda call=call: call(np.full((30, 2), np.nan))) == seen(lambda call=call: call(PEOPLE))


def test_marked_values_are_nowhere_to_be_seen(tmp_path):
    marked = PEOPLE.copy()
    marked[3], marked[4] = 0.7316529841, 73165.29841
    packed = [struct.pack(form, value) for form in ("<d", ">d", "<f") for value in (0.7316529841, 73165.29841)]
    with closing(PrivacyLedger(5.0, bounds=(0, 1), path=tmp_path / "a.ledger")) as ledger:
        survey = fitted(epsilon=1.0, ledger=ledger)
        infinite = marked.copy()
        infinite[5, 0] = np.inf
        told = [
            seen(lambda: survey.query(marked, ids=NAMES)),
            seen(lambda: survey.predict(marked.astype(np.float32), ids=NAMES)),
            seen(lambda: survey.query(marked)),
            seen(lambda: survey.query(marked, ids=NAMES[:3])),
            seen(lambda: survey.query(marked[:, :1], ids=NAMES)),
            seen(lambda: survey.query(marked[0], ids=NAMES)),
            seen(lambda: survey.query(infinite, ids=NAMES)),
            seen(lambda: survey.query(pd.DataFrame(marked, columns=["a", "b"], index=NAMES), ids=NAMES)),
            seen(lambda: fitted(bounds=(0, 3), ledger=ledger).query(marked, ids=NAMES)),
            seen(lambda: survey.set_params(ids=0).query(np.c_[marked[:, 0], marked])),
            seen(lambda: survey.set_params(ids="a").query(pd.DataFrame({"a": marked[:, 0], "b": 1.0, "c": 1.0}))),
        ]
        survey.set_params(ids=None)
        held = [repr(told).encode(), repr(survey).encode(), survey._repr_html_().encode()]
        held += [pickle.dumps(survey), pickle.dumps(ledger)]
    held += [file.read_bytes() for file in tmp_path.iterdir()]
    alone = fitted(epsilon=1.0)
    held.append(repr(seen(lambda: alone.query(marked))).encode())
    held.append(pickle.dumps(alone))
    # Digests in the file are hexadecimal, and have no point.
    for trace in (b"0.73165", b"73165.29", *packed):
        assert not any(trace in part for part in held)


# Rows as people


def test_rows_are_people_in_a_simulation_alone_with_one_warning_a_call():
    survey = fitted(epsilon=0.5)
    for call in (lambda: survey.query(PEOPLE), lambda: survey.predict(PEOPLE), lambda: survey.score(PEOPLE, Y)):
        with pytest.warns(RowIdentityWarning, match=r"every row is a person.*pass ids to query") as caught:
            call()
        assert len(caught) == 1
    with pytest.warns(RowIdentityWarning):
        first = survey.query(PEOPLE)
    assert not first.fresh.any()
    assert "simulation" in survey.privacy_guarantee_.basis
    with pytest.warns(RowIdentityWarning):
        assert survey.query(PEOPLE.astype(np.float32)).fresh.all()
    assert not survey.query(PEOPLE, ids=first.ids).fresh.any()


def test_the_key_of_rows_is_in_memory_alone():
    survey, other = fitted(epsilon=0.5), fitted(epsilon=0.5)
    with pytest.warns(RowIdentityWarning):
        result = survey.query(PEOPLE)
    key = survey._own._row_key
    assert key != other._own._row_key
    assert clone(survey)._own is survey._own
    dump = pickle.dumps([survey, result.outputs, survey._own])
    assert key not in dump
    assert key.hex().encode() not in dump
    assert not any(person.encode() in dump for person in result.ids)


# Where names are


@pytest.fixture
def named():
    return pd.DataFrame({"age": PEOPLE[:, 0], "person": NAMES, "dose": PEOPLE[:, 1]})


PLACES = {
    "a column": (lambda frame: frame, "person"),
    "a column of polars": (pl.from_pandas, "person"),
    "an index": (lambda frame: frame.set_index("person"), "person"),
    "a level of an index": (lambda frame: frame.assign(clinic=1).set_index(["clinic", "person"]), "person"),
    "a position": (lambda frame: frame, 1),
    "a position in polars": (pl.from_pandas, 1),
    "a position in an array": (lambda frame: frame.to_numpy(), 1),
    "a position in a list": (lambda frame: frame.to_numpy().tolist(), 1),
}


@pytest.mark.parametrize("place", PLACES)
def test_names_are_read_off_the_table_and_the_model_never_sees_them(named, ledger, place):
    made, where = PLACES[place]
    table = made(named)
    survey = BayesianFilter(LinearRegression(), epsilon=0.4, ledger=ledger, ids=where).fit(table, Y)
    assert survey.n_features_in_ == 2
    if hasattr(table, "columns"):
        assert survey.feature_names_in_.tolist() == ["age", "dose"]
    np.testing.assert_allclose(survey.query_.coef, LinearRegression().fit(PEOPLE, Y).coef_)
    result = survey.query(table)
    assert result.ids == NAMES
    assert result.fresh.all()
    assert [len(ledger.history(name)) for name in NAMES] == [1] * 30
    assert survey.predict(table).tolist() == result.estimates.tolist()
    assert survey.score(table, Y) == survey.score(table, Y)
    with pytest.raises(ValueError, match="Ids must come once"):
        survey.query(table, ids=NAMES)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_names_in_an_array_of_numbers_are_whole(ledger, dtype):
    table = np.c_[np.arange(30) + 100, PEOPLE.round()].astype(dtype)
    survey = BayesianFilter(LinearRegression(), epsilon=0.4, ledger=ledger, ids=0).fit(table, Y)
    assert survey.query(table).ids == list(range(100, 130))
    assert all(type(person) is int for person in survey.query(table).ids)
    for value in [2**24, 0.5, np.nan, np.inf] if dtype != np.int64 else []:
        table[7, 0] = value
        with pytest.raises(ValueError, match=r"below 2\*\*24.*at position 7 "):
            survey.query(table)
        assert clone(survey).fit(table, Y).n_features_in_ == 2
    assert ledger.verify().n_people == 30


def test_unclear_places_of_names_are_refused(named):
    survey = BayesianFilter(LinearRegression(), ids="person")
    with pytest.raises(ValueError, match="names both"):
        survey.fit(named.set_index("person", drop=False), Y)
    with pytest.raises(ValueError, match="2 columns of that name"):
        survey.fit(pd.concat([named, named["person"]], axis=1), Y)
    with pytest.raises(ValueError, match="X with 2 columns"):
        survey.set_params(ids=2).fit(PEOPLE, Y)
    with pytest.raises(TypeError, match="parse"):
        survey.set_params(ids=0).fit(sparse.csr_matrix(PEOPLE), Y)
    with pytest.raises(ValueError, match="Reshape"):
        survey.fit(PEOPLE[:, 0], Y)
    for wrong in (True, -1, 1.0, ["person"]):
        with pytest.raises(ValueError, match="'ids' parameter"):
            survey.set_params(ids=wrong).fit(PEOPLE, Y)


def test_ids_are_routed_through_cross_validation_and_searches(ledger):
    ids = np.array(NAMES)
    with config_context(enable_metadata_routing=True):
        survey = BayesianFilter(LinearRegression(), epsilon=0.2, ledger=ledger)
        survey.set_score_request(ids=True).set_predict_request(ids=True)
        cross_validate(survey, PEOPLE, Y, params={"ids": ids}, cv=3)
        assert ledger.verify().n_answers == 30
        search = GridSearchCV(survey, {"epsilon": [0.2, 0.3]}, cv=3).fit(PEOPLE, Y, ids=ids)
        assert search.score(PEOPLE, Y, ids=ids) < 1
        whole = make_pipeline(FunctionTransformer(), clone(survey)).fit(PEOPLE, Y)
        assert whole.predict(PEOPLE, ids=NAMES).shape == (30,)
    assert ledger.verify().n_people == 30
    assert ledger.realized_loss(NAMES).max() <= 1.0


def test_public_rows_need_no_names(named, ledger):
    public = pd.DataFrame(PUBLIC, columns=["age", "dose"])
    survey = BayesianFilter(LinearRegression(), epsilon=0.4, ledger=ledger, ids="person").fit(public, PUBLIC @ SLOPES)
    assert survey.query(named).ids == NAMES
    with pytest.raises(ValueError, match=r"a column or an index of ids; got X without ids='person'"):
        survey.query(public)
    alone = BayesianFilter(LinearRegression(), ids="person").fit(public, PUBLIC @ SLOPES)
    with pytest.raises(ValueError, match=r"a column or an index of ids; got X without ids='person'"):
        alone.query(public)
    with pytest.raises(TypeError, match=r"a DataFrame; got a ndarray"):
        survey.query(PEOPLE)
    assert survey.query(named[["age", "dose"]], ids=NAMES).ids == NAMES


def test_a_name_has_one_budget_without_a_ledger_too():
    """Clones for other features have ledgers of their own, in which everybody would begin anew."""
    survey = BayesianFilter(LinearRegression(), epsilon=1.0, bounds=(0, 1)).fit(PEOPLE[:, :1], Y)
    wider = clone(survey).fit(PEOPLE, Y)
    assert survey.query(PEOPLE[:, :1], ids=range(len(PEOPLE))).accepted.all()
    with pytest.raises(LedgerError, match="would start new budgets"):
        wider.query(PEOPLE, ids=range(len(PEOPLE)))
    assert wider.ledger_.verify().n_answers == 0
    assert not clone(survey).fit(PEOPLE[:, :1], Y).query(PEOPLE[:, :1], ids=range(len(PEOPLE))).fresh.any()
