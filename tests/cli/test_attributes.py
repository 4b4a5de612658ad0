"""``skldp study`` of several attributes of a record."""

import csv

import numpy as np
import pandas as pd
import pytest


@pytest.mark.parametrize("mechanism", [pytest.param(None, marks=pytest.mark.slow), "duchi"])
def test_a_target_is_given_several_times(run, mechanism):
    bill, size = np.tile(np.linspace(0, 60, 50), 4), np.arange(200) // 50 + 1
    frame = pd.DataFrame({"bill": bill, "size": size, "smoker": np.where(bill > 30, "yes", "no"), "sex": size > 2})
    frame.to_csv("tips.csv", index=False)
    arguments = ["--target", "smoker", "--target", "sex", "--bounds", "0,60", "--epsilons", "2", "--folds", "2"]
    more = [] if mechanism is None else ["--mechanism", mechanism]
    code, out, err = run("study", "tips.csv", *arguments, *more)
    assert code == 0, err
    assert "attributes smoker, sex" in out
    with open("study.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    named = {"privunit", "bitrand-exact", "bitrand"} if mechanism is None else {"duchi"}
    assert {row["mechanism"] for row in rows} == named
    assert all(0 <= float(row["auc_smoker_mean"]) <= 1 for row in rows)
    assert all(float(row["clean_auc_sex_mean"]) > 0.9 for row in rows)
