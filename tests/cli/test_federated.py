import csv

import pytest

QUICK = ["--epsilons", "2,8", "--clients", "50", "--rounds", "3", "--seeds", "1", "--seed", "0"]


def test_the_table_is_written(run, tmp_path):
    names = ["--features", "bitrand,bitrand-exact", "--labels", "label-rr", "--gradients", "bitrand-exact"]
    names += ["--anonymised", "bitrand-exact"]
    code, out, err = run("federated", "wine", *names, *QUICK)
    assert (code, err) == (0, "")
    assert "seed 0: no privacy" in out
    with open(tmp_path / "federated.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    named = list(dict.fromkeys(row["setting"] for row in rows))
    on_gradients = ["bitrand-exact on gradients", "bitrand-exact anonymised"]
    assert named == ["noiseless", "bitrand", "bitrand-exact", *on_gradients]
    # Published: epsilon 2 of the features and 1 of the label.
    assert float(rows[1]["published_epsilon"]) == 3
    assert float(rows[1]["exact_epsilon"]) > 3


def test_clients_of_a_round_and_their_steps_reach_the_training(run, tmp_path):
    names = ["--features", "none", "--anonymised", "bitrand-exact", "--gradients", "bitrand-exact"]
    tables = []
    for drawn in ([], ["--sampled-clients", "25"], ["--local-steps", "3"]):
        assert run("federated", "wine", *names, *QUICK, *drawn)[0] == 0
        with open(tmp_path / "federated.csv", newline="", encoding="utf-8") as file:
            tables.append({row["setting"] + row["epsilon"]: row for row in csv.DictReader(file)})
    # A budget shared by the rounds, and one spent in each of three; the noiseless run has no epsilon.
    for name, epsilon in (("bitrand-exact on gradients2.0", 2.0), ("bitrand-exact anonymised2.0", 2.0 * 3 * 14 * 3)):
        assert [float(table[name]["exact_epsilon"]) for table in tables] == pytest.approx([epsilon] * 3, rel=1e-6)
    assert len({tuple(row["auc_mean"] for row in table.values()) for table in tables}) == 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--epsilons", "0"], "Epsilons must be finite numbers > 0"),
        (["--features", "unheard-of"], "The mechanism must be one of"),
        (["--model", "forest"], "model must be one of ('softmax', 'linear', 'network'); got 'forest'"),
        (["--clients", "100000"], "n_clients must be an integer from 1 to the number of rows"),
        (["--sampled-clients", "51"], "n_sampled_clients must be a whole number from 1 to 50"),
        (["--csv", "nowhere/table.csv"], "Cannot write"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run, arguments, complaint):
    code, _, err = run("federated", "wine", *QUICK, *arguments)
    assert code == 2
    assert complaint in err
    assert err.count("\n") == 1


def test_data_of_a_file_are_refused(run):
    code, out, err = run("federated", "people.csv")
    assert (code, out) == (2, "")
    assert "The data must be digits or wine; got 'people.csv'." in err
