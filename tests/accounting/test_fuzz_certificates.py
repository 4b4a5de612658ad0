"""Aimed fuzz: no certificate below the truth. Hundreds of fixed cases by default, ten thousand fresh ones by choice."""

import numpy as np
import pytest
from accounting.reference import linear_decisions
from accounting.strategies import aimed_boxes, aimed_problems, aimed_queries, worst_loss_found
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses._realized_loss import realized_loss

PATIENT = {"deadline": None, "suppress_health_check": list(HealthCheck)}
LONG = pytest.param(4_000, marks=pytest.mark.statistical)


@pytest.fixture(params=[4, 0], ids=["on the box", "on the answers"])
def short_searches(request):
    """Bounds hold however early the search ends: awkward problems are the slowest to converge."""
    limits = {"_MAX_BOX_NODES": 400, "_MAX_DUAL_NODES": 12, "_FEW_FEATURES": request.param}
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(f"skldp.accounting.losses._box_search.{name}", limit)
        yield


def linear(coef, intercept, ends, epsilon):
    return RegressionQuery("linear", coef, intercept, ends, epsilon)


# Every case that was ever found stays: a hair below the ramp's start.
EDGE = [linear([-0.6], 0.4, (-0.6 * 1.6 + 0.4, 0.6 * 0.5 + 0.4), e) for e in (2.0, *[0.05] * 81)]


@pytest.mark.few(2)
@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("max_examples", [30, pytest.param(100, marks=pytest.mark.slow), LONG])
@pytest.mark.parametrize("n_features", [(1, 3), (4, 6)], ids=["brute force", "corners and climbs"])
def test_no_certificate_lies_below_the_truth(max_examples, n_features, capsys):
    slacks, n_cases = [], 0

    @settings(**PATIENT, max_examples=max_examples)
    @given(aimed_problems(n_features), st.integers(0, 2**32 - 1), st.one_of(st.none(), st.floats(0.01, 8)))
    @example((EDGE, [1] + [0] * 81, np.array([[-0.5], [1.6]])), 0, None)
    def check(problem, seed, threshold):
        nonlocal n_cases
        queries, outputs, box = problem
        found = realized_loss(queries, outputs, bounds=(box[0], box[1]), tol=1e-2, threshold=threshold)
        ends = None if found.x_high is None else np.stack([found.x_high, found.x_low])
        truth = worst_loss_found(queries, outputs, box, np.random.default_rng(seed), extra=ends)
        assert truth <= found.upper
        assert 0 <= found.lower <= truth + 1e-12 * (1 + truth)
        grouped = realized_loss(
            queries, outputs, bounds=(box[0], box[1]), tol=1e-2, group_size=max(1, len(queries) // 2)
        )
        assert truth <= grouped.upper
        n_cases += 1
        if found.gap <= 2e-2 and threshold is None:
            slacks.append(found.upper - truth)

    check()
    with capsys.disabled():
        if max_examples > 100:
            print(
                f"\n{n_cases:,} cases, 0 violations; {len(slacks):,} closed, with a slack of at most {max(slacks):.2e}"
            )


@pytest.mark.parametrize(
    "max_examples",
    [30, pytest.param(100, marks=pytest.mark.slow), pytest.param(2_000, marks=pytest.mark.statistical)],
)
def test_no_quick_yes_is_wrong(max_examples):
    @settings(**PATIENT, max_examples=max_examples)
    @given(st.data(), st.integers(0, 2**32 - 1), st.sampled_from([-1e-2, -1e-6, 1e-9, 2e-6, 1e-2]))
    def check(data, seed, room):
        box = data.draw(aimed_boxes(data.draw(st.integers(1, 3))))
        queries = data.draw(st.lists(aimed_queries(box, ("linear",)), min_size=1, max_size=3))
        answer = st.tuples(st.integers(0, len(queries) - 1), st.integers(0, 1), st.sampled_from([1, 1, 3, 40]))
        history = [one[:2] for one in data.draw(st.lists(answer, max_size=4)) for _ in range(one[2])]
        numbers, outputs = [number for number, _ in history], [output for _, output in history]
        query = queries[-1]
        rng = np.random.default_rng(seed)
        asked = [queries[number] for number in numbers]
        truth = max(worst_loss_found([*asked, query], [*outputs, output], box, rng) for output in (0, 1))
        if truth <= 0:
            return
        # A budget at the truth, and a little beside it.
        budget = truth * (1 + room)
        bounds = (box[0], box[1])
        decided = linear_decisions(queries, [(numbers, outputs)], query, epsilon=budget, bounds=bounds)[0]
        assert decided is not True or truth <= budget

    check()
