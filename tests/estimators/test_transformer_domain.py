"""The domain of encoded rows, read off what an encoder declares; what it has learnt is refused, and says which step."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

from skldp import BoundsScaler, domain_from_transformer
from skldp.domains._columns import Columns
from skldp.domains._constraints import OneHot
from skldp.mechanisms import Column

CITIES, SIZES = ["Bonn", "Köln", "Ulm"], ["S", "M", "L"]
TABLE = pd.DataFrame(
    {
        "city": ["Bonn", "Ulm", "Ulm", "Köln"],
        "size": ["S", "L", "M", "S"],
        "age": [20.0, 70, 130, 5],
        "pay": [1, 2, 3, 9],
    }
)


def encoder(**options):
    return OneHotEncoder(sparse_output=False, **({"categories": [CITIES]} | options))


def transformer(**options):
    steps = [
        ("city", encoder(**options), ["city"]),
        ("size", OrdinalEncoder(categories=[SIZES]), ["size"]),
        ("pay", BoundsScaler(bounds=(0, 10)), ["pay"]),
        ("rest", "passthrough", ["age"]),
    ]
    return ColumnTransformer(steps)


def test_fitted_and_unfitted_declare_the_same_names_and_parts():
    made = transformer()
    before = domain_from_transformer(made, bounds={"age": (0, 100)})
    rows = made.fit_transform(TABLE)
    assert domain_from_transformer(made, bounds={"age": (0, 100)}) == before
    assert before.names == tuple(made.get_feature_names_out())
    assert [part for _, part in before.parts] == [
        OneHot(3),
        Column(0, 2, kind="integer"),
        Column(-1.0, 1.0),
        Column(0, 100),
    ]
    moved = before.clip(rows)
    # An age of 130 is the only number outside.
    assert moved.n_moved == 1
    plain = ColumnTransformer(made.transformers, verbose_feature_names_out=False)
    assert domain_from_transformer(plain, {"age": (0, 100)}).names[:4] == ("city_Bonn", "city_Köln", "city_Ulm", "size")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, OneHot(3)),
        ({"categories": [["Bonn", np.nan]]}, OneHot(2)),
        ({"handle_unknown": "ignore"}, OneHot(3, at_most_one=True)),
    ],
    ids=str,
)
def test_every_row_of_an_encoder_lies_within_its_domain(options, part):
    step = encoder(**options)
    domain = domain_from_transformer(step)
    assert [own for _, own in domain.parts] == [part]
    values = [[value] for value in step.categories[0]]
    if options.get("handle_unknown") == "ignore":
        values.append(["Rom"])
    rows = step.fit(np.array(values, dtype=object)).transform(np.array(values, dtype=object))
    assert domain.clip(rows).n_moved == 0
    # And every member is the row of somebody.
    assert len(np.unique(rows, axis=0)) == part.size + part.at_most_one
    assert domain_from_transformer(step).names == tuple(step.get_feature_names_out())


def test_positions_masks_slices_and_a_remainder_are_known_after_fit():
    array = TABLE[["age", "city", "pay"]].to_numpy(dtype=object)
    for columns in ([1], slice(1, 2), np.array([False, True, False]), 1):
        own = columns if not isinstance(columns, int) else [columns]
        made = ColumnTransformer([("city", encoder(), own)], remainder="passthrough")
        with pytest.raises(ValueError, match="unless the ColumnTransformer is fitted"):
            domain_from_transformer(made)
        made.fit(array)
        domain = domain_from_transformer(made, bounds={0: (0, 100), 2: Column(0, 9, kind="integer")})
        assert [part for _, part in domain.parts] == [OneHot(3), Column(0, 100), Column(0, 9, kind="integer")]
        assert domain.names == tuple(made.get_feature_names_out())


def test_pipelines_frozen_steps_and_what_does_nothing():
    steps = [
        ("city", make_pipeline(SimpleImputer(strategy="most_frequent"), encoder()), ["city"]),
        ("size", FrozenEstimator(OrdinalEncoder(categories=[SIZES]).fit(TABLE[["size"]])), ["size"]),
        ("age", FunctionTransformer(), ["age"]),
        ("pay", "drop", ["pay"]),
    ]
    domain = domain_from_transformer(ColumnTransformer(steps), bounds={"age": (0, 100)})
    assert domain == Columns.of(
        {
            ("city__city_Bonn", "city__city_Köln", "city__city_Ulm"): OneHot(3),
            "size__size": Column(0, 2, kind="integer"),
            "age__age": Column(0, 100),
        }
    )


class MyEncoder(OneHotEncoder):
    pass


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (OneHotEncoder(), "categories of step 'mine' must be declared"),
        (OneHotEncoder().fit(TABLE[["city"]]), "categories of step 'mine' must be declared"),
        (OneHotEncoder(categories=[CITIES], min_frequency=2), "'mine' must not drop or group"),
        (OneHotEncoder(categories=[CITIES], max_categories=2), "'mine' must not drop or group"),
        (OneHotEncoder(categories=[CITIES, SIZES]), "'mine' has 1 columns"),
        (OneHotEncoder(categories=[CITIES], drop="first"), "'mine' must not drop or group"),
        (MyEncoder(categories=[CITIES]), "Step 'mine' must be a OneHotEncoder"),
        (OrdinalEncoder(), "categories of step 'mine' must be declared"),
        (
            OrdinalEncoder(categories=[CITIES], handle_unknown="use_encoded_value", unknown_value=-1),
            "must not encode unknown",
        ),
        (OrdinalEncoder(categories=[["Bonn"]]), "at least two categories"),
        (StandardScaler(), "Step 'mine' must be a OneHotEncoder"),
        (MinMaxScaler(), "Step 'mine' must be a OneHotEncoder"),
        (FunctionTransformer(np.exp), "Step 'mine' must be a OneHotEncoder"),
        (make_pipeline(encoder(), PCA()), "Step 'mine: pca' must be a OneHotEncoder"),
        (make_pipeline(encoder(), "passthrough"), "last step of the Pipeline 'mine'"),
        ("passthrough", "Column 'city' passes step 'mine'"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_not_declared_is_refused_by_the_name_of_its_step(step, text):
    made = ColumnTransformer([("size", OrdinalEncoder(categories=[SIZES]), ["size"]), ("mine", step, ["city"])])
    with pytest.raises(ValueError, match=text):
        domain_from_transformer(made)


def test_bounds_are_of_columns_that_pass():
    made = transformer()
    for bounds, text in (
        ({"age": (0, 100), "pay": (0, 1)}, r"\['pay'\]"),
        ({"age": (100, 0)}, "low < high"),
        ({"age": 3}, "low, high"),
        ({"age": OneHot(2)}, "of one column"),
    ):
        with pytest.raises(ValueError, match=text):
            domain_from_transformer(made, bounds=bounds)


def test_there_must_be_columns():
    with pytest.raises(ValueError, match="must have output columns"):
        domain_from_transformer(ColumnTransformer([("none", "drop", ["city"])]))
    with pytest.raises(ValueError, match="must be a list of names or positions"):
        domain_from_transformer(ColumnTransformer([("mine", encoder(), lambda X: ["city"])]))
    with pytest.raises(ValueError, match="Step 'PCA' must be a OneHotEncoder"):
        domain_from_transformer(PCA())
