"""No certificate lies below the truth, and nothing says yes that the independent check has not established."""

import ast
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from accounting.reference import linear_decisions, worst_sampled_loss

from skldp.accounting import _decide
from skldp.accounting._decide import Rule, decide, surely_admits
from skldp.accounting._filters import BayesianPrivacyFilter, SimplifiedBayesianPrivacyFilter
from skldp.accounting._query import charge_parts
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting._units import saturated_sum
from skldp.accounting.ledger import _ledger_answers as ledger_answers
from skldp.accounting.ledger import _state as state
from skldp.accounting.ledger._privacy_ledger import PrivacyLedger
from skldp.accounting.losses import _box_search as search
from skldp.accounting.losses._certificate import Proof, Tree, certified_loss
from skldp.accounting.losses._cohorts import BoxTable
from skldp.accounting.losses._realized_loss import realized_loss
from skldp.accounting.losses._sigmoid_sum import SigmoidSum


def always(*arguments, **options):
    return True


def asked_to_the_edge(coef, intercept, bounds, epsilon):
    """A linear query whose output bounds are its exact range, so that rounding takes it a hair past its own ramp."""
    ends = np.array([bounds[0] * coef + intercept, bounds[1] * coef + intercept])
    return RegressionQuery("linear", [coef], intercept, (ends.min(), ends.max()), epsilon)


def a_hair_below():
    """Finding 1: one answer 1 at epsilon 2 and 81 answers 0 at epsilon .05."""
    box = (-0.5, 1.6)
    dear, cheap = (asked_to_the_edge(-0.6, 0.4, box, epsilon) for epsilon in (2.0, 0.05))
    return [dear] + [cheap] * 81, [1] + [0] * 81, box


def test_a_hair_below_the_ramp_hides_no_loss():
    queries, outputs, box = a_hair_below()
    truth = worst_sampled_loss(queries, outputs, np.linspace(*box, 20_001)[:, None])
    found = realized_loss(queries, outputs, bounds=box)
    assert truth == pytest.approx(2.1482, abs=1e-4)
    assert found.lower <= truth + 1e-8
    assert truth <= found.upper
    assert found.gap <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("way", ["simplified", "bayesian", "ledger"])
def test_a_hair_below_the_ramp_lets_nobody_past_the_budget(way):
    queries, outputs, box = a_hair_below()
    if way == "ledger":
        with closing(PrivacyLedger(2.06, bounds=box)) as ledger:
            given = [
                ledger.answer(query, ["ann"], lambda people, output=output: [output], repeat=True).accepted[0]
                for query, output in zip(queries, outputs, strict=True)
            ]
            assert not all(given)
            assert ledger.verify().ok
        return
    kind = BayesianPrivacyFilter if way == "bayesian" else SimplifiedBayesianPrivacyFilter
    person = kind(2.06, bounds=box)
    for query, output in zip(queries[:-1], outputs[:-1], strict=True):
        person.record(query, output)
    assert not person.admits(queries[-1])
    history = ([0] + [1] * 80, outputs[:-1])
    assert linear_decisions(queries[:2], [history], queries[-1], epsilon=2.06, bounds=box) != [True]


@pytest.mark.few(1)
@pytest.mark.parametrize("n_features", [1, 5])
def test_random_queries_asked_to_the_edge_are_never_certified_below_the_truth(n_features):
    """1.5% of such problems were unsound."""
    rng = np.random.default_rng(n_features)
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * n_features), axis=-1).reshape(-1, n_features)
    for _ in range(150):
        box = np.sort(rng.uniform(-2, 2, (2, n_features)).round(1), axis=0)
        coef, intercept = rng.uniform(-1, 1, n_features).round(1), round(rng.uniform(-1, 1), 1)
        low = float(np.minimum(box[0] * coef, box[1] * coef).sum() + intercept)
        high = float(np.maximum(box[0] * coef, box[1] * coef).sum() + intercept)
        if not low < high:
            continue
        dear, cheap = (RegressionQuery("linear", coef, intercept, (low, high), e) for e in (2.0, 0.05))
        n_cheap = int(rng.integers(1, 100))
        sides = rng.integers(0, 2, 2)
        queries, outputs = [dear] + [cheap] * n_cheap, [int(sides[0])] + [int(sides[1])] * n_cheap
        points = np.concatenate([corners, np.linspace(0, 1, 101)[:, None] * np.ones(n_features)])
        # All answers move along one line: from the corner of the lowest prediction to that of the highest.
        start = np.where(coef >= 0, box[0], box[1])
        points = np.concatenate([start + points * (np.where(coef >= 0, box[1], box[0]) - start), box])
        found = realized_loss(queries, outputs, bounds=(box[0], box[1]))
        assert worst_sampled_loss(queries, outputs, np.clip(points, box[0], box[1])) <= found.upper


def test_the_quick_yes_counts_every_thousandth_of_epsilon():
    """A budget a thousandth below ten answers' worth admits nine."""
    query = RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.1)
    nine = np.zeros((1, 4), dtype=np.int64)
    for _ in range(9):
        nine = saturated_sum(nine, charge_parts(query))
    for name in ("basic", "simplified", "bayesian"):
        for short in (1e-3, 5e-5, 1e-6):
            rule = Rule(name, 1.0 - short, (-1, 1), 1e-3)
            assert not surely_admits(rule, nine, query)[0]
            assert decide(rule, [query], [([0] * 9, [1] * 9)], query) == [False]
    assert surely_admits(Rule("basic", 1.0 + 1e-6), nine, query)[0]


def test_the_check_imports_nothing_from_a_search():
    import skldp.accounting.losses._certificate as check
    import skldp.accounting.losses._sampled_law as law
    from skldp.accounting.losses import _region as region

    allowed = {
        "_arrays",
        "accounting.losses._region",
        "accounting.losses._sampled_law",
        "accounting._query",
        "accounting._regression_query",
        "accounting._units",
        "mechanisms._finite_query",
    }
    # A declared domain is no search either.
    declared = {
        "skldp.domains._column",
        "skldp.domains._columns",
        "skldp.domains._domain",
        "skldp.domains._constraints",
    }
    for module in (check, law, region):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            ours = {name for name in names if name.startswith("skldp")}
            assert ours <= {f"skldp.{name}" for name in allowed} | declared


def zero_a_hair_below(self, v):
    """SigmoidSum.slope as it was: 0 a hair below the ramp's start, where it is a slope of nothing."""
    w = -v if self.flipped else v
    inside = (w >= 1e-12) & (w <= 1)
    return np.where(inside, self.reach / (self.smallest + self.reach * np.clip(w, 0.0, 1.0)), 0.0)


def upside_down(monkeypatch):
    """A search that takes its lower bounds for upper ones, and so believes every loss to be small."""
    original = search.BoxSearch.__init__

    def swapped(self, *arguments):
        original(self, *arguments)
        self.upper = self.lower

    monkeypatch.setattr(search.BoxSearch, "__init__", swapped)


def slopes_of_nothing(monkeypatch):
    monkeypatch.setattr(SigmoidSum, "slope", zero_a_hair_below)


def no_slopes_at_all(monkeypatch):
    monkeypatch.setattr(SigmoidSum, "slope", lambda self, v: np.full_like(v, np.nan))
    monkeypatch.setattr(SigmoidSum, "envelope_slope", lambda self, low, high, at, tangent=None: np.full_like(at, 1e300))


@pytest.mark.parametrize(
    "fault", [upside_down, slopes_of_nothing, pytest.param(no_slopes_at_all, marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_fault_in_the_search_refuses_and_does_not_pass(monkeypatch, fault):
    queries, outputs, box = a_hair_below()
    others = [RegressionQuery("truncated", [1.0], 0.1 * i, (0, 0.3), 0.5) for i in range(4)]
    truths = [
        (queries, outputs, box, worst_sampled_loss(queries, outputs, np.linspace(*box, 20_001)[:, None])),
        (others, [1, 0, 1, 0], (-1, 1), worst_sampled_loss(others, [1, 0, 1, 0], np.linspace(-1, 1, 20_001)[:, None])),
    ]
    fault(monkeypatch)
    monkeypatch.setattr(search, "_MAX_BOX_NODES", 2_000)
    for asked, answered, bounds, truth in truths:
        assert realized_loss(asked, answered, bounds=bounds).upper >= truth
        assert realized_loss(asked, answered, bounds=bounds, threshold=truth - 0.05).upper > truth - 0.05
        rule = Rule("bayesian", truth - 0.05, bounds, 1e-3)
        last = RegressionQuery(asked[-1].kind, [0.0], 0.0, (0, 1), 0.1)
        for table in (None, rule.table_for(last)):
            assert decide(rule, asked, [(range(len(asked)), answered)], last, table=table) == [False]
    asked, answered, bounds, truth = truths[0]
    history = ([0] + [1] * 80, answered[:-1])
    assert linear_decisions(asked[:2], [history], asked[-1], epsilon=truth - 0.05, bounds=bounds) != [True]


def everybody(rule, queries, histories, query, **options):
    return [True] * len(histories)


def in_the_table(table, queries, histories, query, **options):
    return [True] * len(histories)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [(BoxTable, "decisions", in_the_table), (state, "decide", everybody)],
)
def test_verification_finds_what_a_fault_in_the_decisions_admitted(monkeypatch, module, name, fault):
    queries, outputs, box = a_hair_below()
    ledger = PrivacyLedger(2.06, bounds=box)
    # Verification is under the fault as well: it takes no table, and asks for itself.
    monkeypatch.setattr(module, name, fault)
    for query, output in zip(queries, outputs, strict=True):
        assert ledger.answer(query, ["ann"], lambda people, o=output: [o], repeat=True).accepted[0]
    problems = ledger.verify().problems
    ledger.close()
    assert any("took 1 people ('ann') over their budget" in problem for problem in problems)
    assert problems[-1] == "The loss of 1 people ('ann') exceeds their budget of 2.06."


def test_verification_counts_epsilons_itself(monkeypatch):
    """A quick yes that counts 0.999 of the next epsilon lets a tenth answer past a budget of 0.99995."""
    monkeypatch.setattr(
        ledger_answers,
        "surely_admits",
        lambda rule, spent, query: (spent[:, 0] / 2**30 + 0.999 * query.epsilon) <= rule.epsilon,
    )
    ledger = PrivacyLedger(0.99995, bounds=(-1, 1))
    query = RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.1)
    for _ in range(10):
        assert ledger.answer(query, ["ann"], lambda people: [1], repeat=True).accepted[0]
    problems = ledger.verify().problems
    ledger.close()
    assert "Release 10 took 1 people ('ann') over their budget of 0.99995." in problems


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_any_tree_and_any_slopes_prove_something_true(seed):
    """What a search hands over may be nonsense: cuts outside the box, slopes of any size, NaN."""
    rng = np.random.default_rng(seed)
    box = np.array([[-1.0, 0.2], [1.0, 0.9]])
    kinds = [("linear", (-3, 3)), ("truncated", (0, 0.4)), ("logistic", (0, 1))]
    queries = [RegressionQuery(k, rng.uniform(-2, 2, 2), 0.1, ends, 1.5) for k, ends in kinds for _ in range(2)]
    outputs = rng.integers(0, 2, 6).tolist()
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*(np.linspace(*side, 101) for side in box.T))], axis=1)
    truth = worst_sampled_loss(queries, outputs, grid)
    for _ in range(60):
        proofs = []
        for _side in range(2):
            tree = Tree(2, to_the_ends=bool(rng.integers(8) == 0))
            for _cut in range(int(rng.integers(0, 12))):
                leaf = rng.choice(np.flatnonzero(tree.axis[: tree.size] < 0))
                tree.split(leaf, rng.integers(0, 2 if tree.to_the_ends else 8), rng.normal())
            slopes = rng.normal(size=(tree.size, 6)) * 10.0 ** rng.integers(-3, 3)
            slopes[rng.uniform(size=slopes.shape) < 0.05] = rng.choice([np.nan, np.inf, -1e300, 0.0])
            proofs.append(Proof(tree, lambda leaves, low, high, slopes=slopes: slopes[leaves]))
        assert truth <= certified_loss(queries, outputs, box, [proofs[0]], [proofs[1]])
        assert truth <= certified_loss(queries, outputs, box, [], [Proof(None, lambda leaves, low, high: low)])


def test_a_tree_must_end():
    tree = Tree(1)
    tree.split(0, 0, 0.0)
    tree.axis[1], tree.child[1] = 0, 0
    query = RegressionQuery("truncated", [1.0], 0.0, (0, 1), 1.0)
    with pytest.raises(ValueError, match="precede their children"):
        certified_loss([query], [1], np.array([[-1.0], [1.0]]), [Proof(tree, lambda leaves, low, high: low)], [])


def test_verification_adds_up_epsilons_itself(monkeypatch):
    query = RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.5)
    monkeypatch.setattr(_decide, "_epsilons_admit", always)
    with closing(PrivacyLedger(0.6, bounds=(-1, 1), rule="basic")) as ledger:
        for _ in range(2):
            assert ledger.answer(query, ["ann"], lambda people: [0], repeat=True).accepted[0]
        # Nor does it add up as they do.
        monkeypatch.setattr(_decide, "charge_of", lambda query: 0)
        assert ledger.verify().problems[0] == "Release 2 took 1 people ('ann') over their budget of 0.6."
