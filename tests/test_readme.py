"""The README's figures are computed, not typed. Run this file as a script to write its table anew."""

import contextlib
import io
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from skldp.exceptions import PrivacyGuaranteeWarning
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, make_named

README = Path(__file__).parent.parent / "README.md"
TABLE = re.compile(r"(<!-- guarantees: .*? -->\n)(.*?)(<!-- end of guarantees -->)", re.DOTALL)
SHOWN = ("bitrand", "bitrand-exact", "best", "privunit", "label-rr")
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def guarantee_table():
    rows = ["| name | estimator | stated | exact | per |", "| --- | --- | ---: | ---: | --- |"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        for name in SHOWN:
            estimator, fixed = (FEATURE_MECHANISMS | LABEL_MECHANISMS)[name]
            X = np.arange(10) if name in LABEL_MECHANISMS else np.zeros((1, 64))
            found = make_named(name, classes=np.arange(10)).fit(X).privacy_guarantee_
            call = f"{estimator.__name__}({', '.join(f'{key}={value!r}' for key, value in fixed.items())})"
            rows.append(f"| {name} | `{call}` | {found.stated:g} | {found.epsilon:.4g} | {found.unit} |")
    return "\n".join(rows) + "\n"


def test_table_of_guarantees_is_what_the_estimators_say():
    assert TABLE.search(README.read_text(encoding="utf-8"))[2] == guarantee_table(), "python tests/test_readme.py"


@pytest.mark.filterwarnings("default")
def test_example_prints_what_the_readme_shows(fixed_noise):
    code, shown = EXAMPLE.search(README.read_text(encoding="utf-8")).groups()
    assert len([line for line in code.splitlines() if line]) <= 13
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    scores, guarantee = printed.getvalue().splitlines()
    shown_scores, shown_guarantee = shown.splitlines()
    assert guarantee == shown_guarantee
    # Noise is new in every run: over ten seeds the private score had the mean 0.659 and a standard deviation of 0.004.
    (private, clean), (shown_private, shown_clean) = (re.findall(r"0\.\d\d\d", one) for one in (scores, shown_scores))
    assert clean == shown_clean
    assert abs(float(private) - float(shown_private)) < 0.05


def test_two_commands_install_and_run():
    commands = re.findall(r"^python -m pip install .+ && (.+)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands == ["skldp study", "python -m pytest -n logical"]


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    README.write_text(TABLE.sub(lambda found: found[1] + guarantee_table() + found[3], text), encoding="utf-8")
