"""Studies of several attributes of a record: released together, learnt one by one, and scored by their areas."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from skldp.study import ComparisonSettings, StudyInputError, compare_mechanisms, load_study_data

# As of tips: what was paid, and two things about who paid.
SCHEMA = {"bill": (0, 60), "size": (1, 6), "day": ["Thur", "Fri", "Sat"]}
SETTINGS = ComparisonSettings(epsilons=(2.0, 40.0), folds=2)


@pytest.fixture(scope="module")
def tips(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 400
    bill, size, day = rng.uniform(0, 60, n), rng.integers(1, 7, n), rng.choice(["Thur", "Fri", "Sat"], n)
    frame = pd.DataFrame({"bill": bill, "size": size, "day": day})
    frame["smoker"] = np.where(bill + 10 * (day == "Sat") > 35, "yes", "no")
    frame["sex"] = size > 3
    frame["tip"] = bill / 7
    path = tmp_path_factory.mktemp("tips") / "tips.csv"
    frame.to_csv(path, index=False)
    return path


def loaded(tips, **more):
    return load_study_data(tips, **({"target": ["smoker", "sex"], "schema": SCHEMA | {"tip": (0, 10)}} | more))


def test_targets_are_columns_of_zeros_and_ones(tips):
    data, frame = loaded(tips), pd.read_csv(tips)
    assert data.task == "classification"
    assert data.attributes == ("smoker", "sex")
    np.testing.assert_array_equal(data.y, np.column_stack([frame["smoker"] == "yes", frame["sex"]]))
    assert data.feature_names == ("bill", "size", "day_Thur", "day_Fri", "day_Sat", "tip")
    few = loaded(tips, columns=["bill", "day"], schema={"bill": (0, 60), "smoker": ["no", "yes"]})
    assert few.feature_names == ("bill", "day_Fri", "day_Sat", "day_Thur")
    one = loaded(tips, target="smoker", schema=SCHEMA | {"tip": (0, 10), "sex": [False, True]})
    assert one.attributes == ()


def test_each_attribute_has_its_area_and_all_share_one_epsilon(tips, fixed_noise):
    found = compare_mechanisms(loaded(tips), ["duchi", "none"], SETTINGS)
    curve = found.curves["duchi"]
    assert curve.scoring == "roc_auc"
    assert curve.also == ("auc_smoker", "auc_sex")
    for point, steps in zip(curve, curve.guarantees, strict=True):
        # The features' epsilon and that of all labels together.
        assert point.stated_epsilon == pytest.approx(2 * point.epsilon)
        assert point.exact_epsilon <= point.stated_epsilon * (1 + 1e-9)
        assert dict(steps)["labels"].basis.startswith("all labels of a record: sum over 2 columns")
        assert point.score_mean == pytest.approx(np.mean(point.also), abs=1e-9)
    assert curve.clean_also[1] == pytest.approx(1.0, abs=0.01)
    assert found.first.majority_mean == 0.5
    assert curve.majority_also == (0.5, 0.5)
    caption = "\n".join(found.caption())
    assert "attributes smoker, sex; 2 folds" in caption
    assert "shared out equally over 2 attributes; both epsilons count the sum" in caption
    assert {"auc_smoker_mean", "clean_auc_sex_mean"} <= set(found.to_dict())


def test_an_area_is_that_of_the_attribute_alone():
    from skldp.study._comparison import _area

    class Sure:
        def predict_proba(self, X):
            return [np.column_stack([1 - X[:, 0], X[:, 0]]), np.ones((len(X), 1))]

    X, y = np.array([[0.1], [0.9], [0.4], [0.6]]), np.array([[0, 1], [1, 0], [1, 0], [0, 1]])
    assert _area(0, Sure(), X, y) == roc_auc_score(y[:, 0], X[:, 0]) == 0.75
    assert _area(1, Sure(), X, y) == 0.5


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"target": ["smoker", "smoker"]}, "Several targets are different columns of a table"),
        ({"task": "regression"}, "Several targets are different columns of a table"),
        ({"target": ["smoker", "day"], "schema": SCHEMA}, "must have two classes. Got 3 of 'day'"),
        ({"target": ["smoker", "mood"]}, "must be a column of tips.csv .*Got 'mood'"),
        ({"target": ["smoker", "tip"], "schema": SCHEMA}, "must hold classes|fewer than the 2 folds"),
        ({"target": 3}, "must be a column of tips.csv .*Got 3 instead"),
    ],
)
def test_refuses_what_is_no_attribute(tips, more, match):
    with pytest.raises(StudyInputError, match=match):
        loaded(tips, **more)


def test_refuses_what_learns_one_target(tips):
    data = loaded(tips)
    with pytest.raises(StudyInputError, match=r"logistic-rounds learns one target of a record"):
        compare_mechanisms(data, ["logistic-rounds"], SETTINGS)
    with pytest.raises(StudyInputError, match=r"released by label-rr\. Got 'label-laplace'"):
        compare_mechanisms(data, ["duchi"], ComparisonSettings(epsilons=(2.0,), folds=2, labels="label-laplace"))
    with pytest.raises(StudyInputError, match="of a table"):
        load_study_data("wine", target=["a", "b"])
