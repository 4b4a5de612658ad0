"""The command that computes the page on optimality: every section runs, and no ratio above 1.05 lacks its reason."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def optimality():
    """The module of the command."""
    if not BENCHMARKS.exists():
        pytest.skip("the benchmarks are not beside these tests")
    sys.path.append(str(BENCHMARKS))
    try:
        import optimality
    finally:
        sys.path.remove(str(BENCHMARKS))
    return optimality


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["one_category", "several_categories", "several_numbers"])
def test_every_ratio_above_the_limit_has_its_reason(optimality, name, capsys):
    section = getattr(optimality, name)
    optimality.show(section)
    printed = capsys.readouterr().out
    for case in section():
        assert f"{case.name:52}{case.ratio:8.3f}" in printed
    assert max(case.ratio for case in section() if not case.reason) <= optimality.MOST


def test_a_ratio_without_a_reason_is_an_error(optimality):
    def section():
        """Cases of a test."""
        yield optimality.Case("one", 1.051)

    with pytest.raises(ValueError, match=r"one is 1\.051 times the best known error, without a reason"):
        optimality.show(section)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
def test_what_is_measured_runs_with_few_people(optimality, capsys):
    for section in (optimality.likeliest_shares, optimality.ranges_of, optimality.medians_of):
        optimality.show(section, 2_000, 2)
    printed = capsys.readouterr().out
    assert printed.count("\n  ") > 30
    assert "nan" not in printed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one_number", "central_epsilons"])
def test_what_takes_seconds_has_its_reasons_too(optimality, name):
    optimality.show(getattr(optimality, name))
