import csv
from dataclasses import replace

import numpy as np
import pytest
from comparisons import NAMES, small_comparison

from skldp.study._catalogue import METRIC_MECHANISMS
from skldp.study._comparison import ComparisonSettings, _radius, compare_mechanisms
from skldp.study._datasets import StudyData, load_study_data
from skldp.study._report import points, ranking
from skldp.study._table_files import StudyInputError

QUICK = ComparisonSettings(epsilons=(40.0,), folds=2)


@pytest.mark.slow
def test_all_mechanisms_but_the_published_bits_keep_what_they_state():
    comparison = small_comparison()
    assert tuple(comparison.curves) == NAMES
    assert comparison.weaker_than_stated() == ["bitrand"]
    # The features' budget and the label's.
    assert comparison.stated_budgets() == pytest.approx([4, 40])
    for name in METRIC_MECHANISMS[:1]:
        # Over the declared diameter, epsilon per unit of distance is epsilon per record.
        assert [point.exact_epsilon for point in comparison.curves[name]] == pytest.approx([4, 40])
    for curve in comparison.curves.values():
        assert [[step for step, _ in steps] for steps in curve.guarantees] == [["features", "labels"]] * 2
        for point, steps in zip(curve, curve.guarantees, strict=True):
            assert sum(guarantee.plain_epsilon for _, guarantee in steps) == pytest.approx(point.exact_epsilon)


def test_table_puts_the_best_within_a_small_epsilon_first():
    comparison = small_comparison()
    table = ranking(comparison)
    assert table.headings == ("", "4", "40")
    names = [row[0] for row in table.rows]
    assert names[0] == comparison.ranking(4.0)[0][0]
    assert names[-4:] == ["bitrand, published", "  at an exact ε of", "without privacy", "majority"]
    kept = [name for name in NAMES if name != "bitrand"]
    assert sorted(names[:-4]) == sorted(kept)
    # What was measured at each epsilon, with its spread: not the best so far.
    for row in (*table.rows[: len(kept)], ["bitrand", *table.rows[-4][1:]]):
        assert row[1:] == [
            f"{p.score_mean:.3f}±{p.score_std:.3f}".replace("±0", "±") for p in comparison.curves[row[0]]
        ]
    columns = [[comparison.curves[row[0]][j].score_mean for row in table.rows[: len(kept)]] for j in range(2)]
    assert columns[0] == sorted(columns[0], reverse=True)
    assert {j: max(column) for j, column in enumerate(columns, 1)} == {j: columns[j - 1][i] for i, j in table.bold}
    assert all(float(cell.replace(",", "")) > 4 for cell in table.rows[-3][1:])
    assert table.ends == {len(kept) - 1, len(kept) + 1}


def test_all_points_stand_in_one_table_and_in_one_file(tmp_path):
    comparison = small_comparison()
    table = points(comparison)
    assert len(table.rows) == 2 + 2 * len(NAMES)
    assert [row[1] for row in table.rows[2:4]] == ["4", "40"]
    assert table.headings[1:3] == ("stated ε", "exact ε")
    assert table.note.startswith("Epsilons are of one complete record with its target.")
    comparison.to_csv(tmp_path / "study.csv")
    with (tmp_path / "study.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["mechanism"] for row in rows] == [name for name in NAMES for _ in range(2)]
    assert {row["scoring"] for row in rows} == {"accuracy"}
    # The epsilon of the features alone is not comparable with that of a model.
    assert "epsilon" not in rows[0]
    assert [float(row["exact_epsilon"]) for row in rows] == comparison.to_dict()["exact_epsilon"].tolist()


def test_a_mechanism_that_cannot_work_is_left_out_with_its_reason():
    rng = np.random.default_rng(0)
    one_column = StudyData(
        "one",
        rng.uniform(-1, 1, (40, 1)),
        np.arange(40) % 2,
        ("x",),
        np.array([-1.0]),
        np.array([1.0]),
        "declared bounds",
    )
    found = compare_mechanisms(one_column, ["duchi", "privunit"], QUICK, skip_unfit=True)
    assert list(found.curves) == ["duchi"]
    assert found.left_out["privunit"] == "it raised ValueError; study privunit alone to see the error."
    assert any("privunit was left out" in line for line in found.caption())
    with pytest.raises(ValueError, match="at least 2 features"):
        compare_mechanisms(one_column, ["duchi", "privunit"], QUICK)
    # Where none works, the first error says why.
    with pytest.raises(ValueError, match="at least 2 features"):
        compare_mechanisms(one_column, ["privunit"], QUICK, skip_unfit=True)


@pytest.mark.few(1)
@pytest.mark.parametrize("labels", ["label-rr", "none"])
def test_models_and_releases_get_the_same_whole_budget(labels):
    wine = load_study_data("wine")
    found = compare_mechanisms(wine, ["logistic-rounds", "discriminant", "duchi"], replace(QUICK, labels=labels))
    assert found.stated_budgets() == [40.0]
    for curve in found.curves.values():
        assert 40 * (1 - 1e-6) <= curve[0].exact_epsilon <= 40 * (1 + 1e-9)


def test_a_regression_releases_the_target_with_its_row():
    data = load_study_data("diabetes")
    names = ["linear-rounds", "linear-once", "laplace", "multivariate-laplace", "bitrand", "privunit-projected"]
    found = compare_mechanisms(data, names, replace(QUICK, epsilons=(8.0,)), skip_unfit=True)
    assert list(found.left_out) == ["privunit-projected"]
    assert "study privunit-projected alone" in found.left_out["privunit-projected"]
    assert found.stated_budgets() == pytest.approx([8])
    assert found.weaker_than_stated() == ["bitrand"]
    first = found.first
    assert first.scoring == "r2"
    assert first.clean_mean > 0.4
    assert first.majority_mean < 0.01
    # Ten features and a target, eleven numbers between -1 and 1.
    assert _radius(data) == pytest.approx(11**0.5)
    with pytest.raises(StudyInputError, match="needs a --mechanism"):
        compare_mechanisms(data, ["none"], QUICK)
    with pytest.raises(StudyInputError, match="of a regression must be one of best, bitrand"):
        compare_mechanisms(data, ["logistic-rounds"], QUICK)
    assert [row[0] for row in ranking(found).rows[-2:]] == ["without privacy", "the mean"]


def test_the_headline_names_what_is_best_where_people_are_protected(fixed_noise):
    data = load_study_data("digits")
    found = compare_mechanisms(data, ["bitrand", "bitrand-exact"], replace(QUICK, epsilons=(4.0, 200.0)))
    [(name, point)] = found.ranking(4.0)
    assert name == "bitrand-exact"
    share = max(0, point.score_mean - found.first.majority_mean) / (found.first.clean_mean - found.first.majority_mean)
    assert found.headline() == [
        "digits: 1,797 rows, 64 features, 10 classes.",
        f"Best at an exact epsilon of at most 4: bitrand-exact, accuracy {point.score_mean:.3f} at "
        f"{point.exact_epsilon:.4g}, {share:.0%} of what is learnt without privacy.",
    ]
    published = compare_mechanisms(data, ["bitrand"], QUICK)
    least = min(point.exact_epsilon for point in published.curves["bitrand"])
    assert published.headline()[-1] == (
        f"No exact epsilon is at most 4; the smallest is {least:.4g}, of bitrand. Set smaller --epsilons; "
        "mechanisms named -exact keep the stated epsilon."
    )


def test_a_scorer_that_does_not_fit_is_the_same_for_all_mechanisms():
    wine = load_study_data("wine")
    with pytest.raises(ValueError, match=r"scoring must fit.*roc_auc"):
        compare_mechanisms(wine, ["duchi"], replace(QUICK, scoring="roc_auc"), skip_unfit=True)
