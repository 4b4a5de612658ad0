"""Estimators that release some columns of each row: output for models, estimates, and their error against rivals."""

import numpy as np
import pandas as pd
import pytest

from skldp import CategoricalPrivatizer, TablePrivatizer

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
SCHEMA = {
    "age": (0, 10),
    "city": {"type": "category", "values": ["x", "y"], "missing": "category"},
    "size": ["S", "M", "L"],
    "pay": {"type": "number", "low": 0, "high": 4, "missing": "category"},
    "land": ["here"],
}
PEOPLE = pd.DataFrame(
    {"age": [1.0, 3.0], "city": ["x", None], "size": ["S", "L"], "pay": [np.nan, 1.0], "land": ["here"] * 2}
)


def one_column_each(X, k, epsilon, rng):
    """Rival: each person reports one random column at the whole epsilon, by the better of GRR and OUE."""
    n, m = X.shape
    e = np.exp(epsilon)
    laws = [(e / (e + k - 1), 1 / (e + k - 1)), (0.5, 1 / (e + 1))]
    p, q = min(laws, key=lambda law: (law[0] * (1 - law[0]) + (k - 1) * law[1] * (1 - law[1])) / (law[0] - law[1]) ** 2)
    columns, found = rng.integers(m, size=n), []
    for j in range(m):
        x = X[columns == j, j]
        if p == 0.5:
            held = rng.random((len(x), k)) < np.where(np.arange(k) == x[:, None], p, q)
        else:
            answers = np.where(rng.random(len(x)) < p, x, (x + rng.integers(1, k, size=len(x))) % k)
            held = answers[:, None] == np.arange(k)
        found.append((held.mean(axis=0) - q) / (p - q))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "k", "epsilon"), [(5, 4, 1), (50, 2, 1), (20, 4, 1), (20, 50, 2)])
def test_the_error_is_at_most_that_of_one_random_column_each(m, k, epsilon):
    ours, rival = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = np.stack([rng.choice(k, size=2_000, p=rng.dirichlet(np.ones(k))) for _ in range(m)], axis=1)
        true = np.stack([np.bincount(column, minlength=k) / len(X) for column in X.T])
        privatizer = CategoricalPrivatizer(
            epsilon, mechanism="best", categories=[list(range(k))] * m, n_sampled_features="auto", seed=seed
        )
        released = privatizer.fit_transform(X)
        assert privatizer.n_sampled_features_ == 1
        found = [one.frequencies for one in privatizer.estimate_frequencies(released)]
        ours.append(((np.array(found) - true) ** 2).mean())
        rival.append(((one_column_each(X, k, epsilon, rng) - true) ** 2).mean())
    assert np.mean(ours) <= 1.1 * np.mean(rival)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["krr", "oue", "subset", "hashing"])
def test_not_asked_is_the_mean_bit_and_standard_errors_know_the_design(mechanism):
    rng = np.random.default_rng(0)
    X = np.stack([rng.choice(3, size=400, p=(0.7, 0.2, 0.1)), np.zeros(400), rng.integers(2, size=400)], axis=1)
    true = np.bincount(X[:, 0].astype(int)) / 400
    z = []
    for seed in range(300):
        privatizer = CategoricalPrivatizer(
            2.0, mechanism=mechanism, categories=[[0, 1, 2], [0], [0, 1]], n_sampled_features=1, seed=seed
        )
        released = privatizer.fit_transform(X)
        of_a = privatizer.estimate_frequencies(released)[0]
        z.append((of_a.frequencies - true) / of_a.standard_errors)
    fillers = np.unique(released[~np.isin(released, (0, 1))])
    np.testing.assert_allclose(fillers, np.unique([privatizer.mechanism_.parts[j].mean_bit for j in (0, 2)]))
    assert (released[:, 3] == 1).all()
    z = np.array(z)
    # 300 means of 400 people: the mean within 4.5 standard errors of 0, the variance near 1.
    assert np.abs(z.mean(axis=0)).max() < 4.5 / np.sqrt(300)
    assert 0.7 < z.var(axis=0).min() <= z.var(axis=0).max() < 1.4


def test_rows_of_another_design_are_refused():
    """Attack: rows with more columns than a person was asked, or with half a column."""
    X = [["a", "b"], ["b", "a"]]
    categories = [["a", "b"]] * 2
    privatizer = CategoricalPrivatizer(1.0, categories=categories, n_sampled_features=1).fit(X)
    released = privatizer.transform(X)
    of_all = CategoricalPrivatizer(1.0, categories=categories).fit(X)
    forged = released.copy()
    forged[0, 0] = 0.5 if forged[0, 0] in (0, 1) else 1.0
    for rows in (of_all.transform(X), forged, np.full((2, 4), 0.5), released[:, :3]):
        with pytest.raises(ValueError, match="X_released must hold zeros and ones in 4 columns"):
            privatizer.estimate_frequencies(rows)
    with pytest.raises(ValueError, match="X_released must hold"):
        of_all.estimate_frequencies(released)


def test_the_estimates_of_a_table_are_unbiased():
    n = 40_000
    people = pd.concat([PEOPLE] * (n // 2), ignore_index=True)
    table = TablePrivatizer(
        6.0, schema=SCHEMA, encoding="estimates", n_sampled_features=2, category_mechanism={"size": "oue"}, seed=0
    )
    released = table.fit_transform(people)
    true = TablePrivatizer(6.0, schema=SCHEMA, transform_noise=False).fit(people).transform(people).mean(axis=0)
    error = released.std(axis=0) / np.sqrt(n)
    assert table.n_sampled_features_ == 2
    assert (np.abs(released.mean(axis=0) - true) <= 4.5 * error).all()


def test_columns_that_were_not_asked_are_their_public_middle():
    table = TablePrivatizer(6.0, schema=SCHEMA, n_sampled_features=1, seed=0)
    pay = table.fit(PEOPLE).mechanism_.parts[3]
    half = (pay.p_given_missing + pay.p_given_present) / 2
    # The answer of randomized response has one 1, so that the mean bit of three categories is 1 / 3.
    for encoding, indicator in (("estimates", 0.5), ("onehot", half)):
        middle = [5, *[1 / 3] * 6, 2, indicator]
        released = table.set_params(encoding=encoding).fit_transform(pd.concat([PEOPLE] * 20))
        blocks = [[0], [1, 2, 3], [4, 5, 6], [7, 8]]
        for row in released:
            filled = [np.allclose(row[block], np.array(middle)[block], atol=1e-9) for block in blocks]
            assert sum(filled) == 3
        assert (released[:, 9] == 1).all()


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_sampled_features": 6}, "n_sampled_features, if not 'auto' or 'all', must be"),
        ({"n_sampled_features": 0}, "n_sampled_features, if not 'auto' or 'all', must be"),
        ({"n_sampled_features": "some"}, "The 'n_sampled_features' parameter"),
        ({"n_sampled_features": 1, "shares": dict.fromkeys(SCHEMA, 1)}, "samples 1 columns and needs shares='equal'"),
        ({"n_sampled_features": 1, "sparse_output": True}, "samples 1 columns and needs sparse_output=False"),
        ({"n_sampled_features": "auto", "encoding": "columns"}, "encoding='columns' has no value for a column"),
    ],
)
def test_what_has_no_sample_is_refused(params, match):
    with pytest.raises(ValueError, match=match):
        TablePrivatizer(1.0, schema=SCHEMA, **params).fit(PEOPLE)
