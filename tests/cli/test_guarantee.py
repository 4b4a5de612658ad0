"""``skldp guarantee`` knows every mechanism and model, by the guarantee that its own class gives."""

import pytest

from skldp import TablePrivatizer
from skldp.study._catalogue import GUARANTEED

NAMES = [name for names in GUARANTEED.values() for name in names]
# Whose published calibrations keep less, or more, than what is stated.
NOT_AS_ASKED = {"bitrand", "latent", "ome", "label-laplace"}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "table"])
def test_every_name_has_the_guarantee_that_was_asked_for(name, run):
    code, out, err = run("guarantee", name, "--epsilon", "2", "--features", "3", "--classes", "4")
    assert (code, err) == (0, "")
    assert out.startswith(f"{name}: epsilon ")
    assert "stated 2" in out
    epsilon = float(out.removeprefix(f"{name}: epsilon ").split()[0].rstrip(","))
    assert (epsilon == 2) == (name not in NOT_AS_ASKED)


def test_a_table_is_that_of_its_schema(run):
    schema = '{"age": [0, 1, 2], "city": {"type": "category", "values": ["Ulm"]}, "since": {"type": "date", '
    schema += '"low": "2020-01-01", "high": "2020-12-31"}}'
    code, out, err = run("guarantee", "table", "--epsilon", "3", "--schema", schema)
    assert (code, err) == (0, "")
    pd = pytest.importorskip("pandas")
    one = pd.DataFrame({"age": [2], "city": ["Ulm"], "since": ["2020-06-01"]})
    assert out == f"table: {TablePrivatizer(3.0, schema=schema).fit(one).privacy_guarantee_}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["krrr"], "got 'krrr'. Did you mean 'krr'"),
        (["table"], "table needs --schema"),
        (["krr", "--schema", "{}"], "--schema is for table; krr has none"),
        (["krr", "--delta", "1e-6"], "--delta is for gaussian, best; krr has none"),
        (["table", "--schema", "absent.json"], "There is no file absent.json"),
        (["krr", "--epsilon", "0"], "epsilon"),
    ],
)
def test_what_does_not_fit_is_one_line_and_exit_code_2(arguments, message, run):
    code, out, err = run("guarantee", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
