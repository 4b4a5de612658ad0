"""Domains for tests, with all their records or many of them written out in another way than the package does."""

import itertools
import math

import numpy as np
from hypothesis import strategies as st

from skldp.accounting import RegressionQuery
from skldp.domains._columns import Columns
from skldp.domains._constraints import Constrained, OneHot
from skldp.mechanisms import Column


def choices_of(part, per_side):
    """What a part can be: all that is whole, and a lattice of an interval."""
    if isinstance(part, OneHot):
        unit = np.eye(part.size)
        return [*unit, np.zeros(part.size)] if part.at_most_one else list(unit)
    if part.whole:
        return [np.array([float(value)]) for value in range(int(part.low), int(part.high) + 1)]
    return [np.array([value]) for value in np.linspace(part.low, part.high, per_side)]


def records_of(domain, per_side=5):
    """All records of a finite domain; of another one, those on a lattice."""
    inner = domain.domain if isinstance(domain, Constrained) else domain
    parts = [choices_of(part, per_side) for _, part in inner.parts]
    rows = np.array([np.concatenate(row) for row in itertools.product(*parts)])
    # Who is inside is who is not moved.
    return rows[(domain.clip(rows).rows == rows).all(axis=1)]


@st.composite
def domains(draw, finite=True, curbed=True):
    """Some columns side by side, with inequalities or without."""
    kinds = ["one_hot", "one_hot", "at_most_one", "integers", *([] if finite else ["interval", "interval"])]
    parts = {}
    for place, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))):
        size = draw(st.integers(1, 4))
        if kind == "integers":
            low = draw(st.integers(-3, 3))
            parts[f"n{place}"] = Column(low, low + size, kind="integer")
        elif kind == "interval":
            low = draw(st.sampled_from([-1.0, 0.0, 0.1]))
            parts[f"i{place}"] = Column(low, low + draw(st.sampled_from([1.0, 0.7, 2.0])))
        else:
            names = tuple(f"c{place}_{column}" for column in range(size))
            parts[names] = OneHot(size, at_most_one=kind == "at_most_one")
    domain = Columns.of(parts)
    records = records_of(domain)
    if not curbed or draw(st.booleans()):
        return domain
    fallback = records[draw(st.integers(0, len(records) - 1))]
    rows = draw(st.lists(st.lists(st.sampled_from([0.0, 1.0, -1.0, 0.3]), min_size=domain.n_features,
                                  max_size=domain.n_features), min_size=1, max_size=2))  # fmt: skip
    room = draw(st.sampled_from([0.0, 0.5]))
    limits = [float(np.cumsum(np.asarray(row) * fallback)[-1]) + room for row in rows]
    return Constrained(domain, tuple(map(tuple, rows)), tuple(limits), tuple(fallback))


@st.composite
def answers_over(draw, domain, kinds=("linear", "truncated", "logistic", "exponential"), max_size=4):
    """Queries whose ends are those of the domain's own range, or cut through it, and outputs."""
    records = records_of(domain)
    queries, outputs = [], []
    for _ in range(draw(st.integers(1, max_size))):
        kind = draw(st.sampled_from(kinds))
        coef = draw(st.lists(st.sampled_from([0.0, 1.0, -1.0, 0.1, -0.6, 1 / 3]), min_size=domain.n_features,
                             max_size=domain.n_features))  # fmt: skip
        coef = np.array(coef) * draw(st.sampled_from([1.0, 8.0, 1e3, 1e-6]))
        epsilon = draw(st.sampled_from([0.05, 0.3, 1.0, 5.0]))
        z = records @ coef
        low, high = float(z.min()), float(z.max())
        if kind == "logistic":
            queries.append(RegressionQuery(kind, coef, draw(st.sampled_from([0.0, -high, -low])), (0, 1), epsilon))
        else:
            if kind == "truncated":
                low, high = draw(
                    st.sampled_from([(low, (low + high) / 2), ((3 * low + high) / 4, high), (low, high + 1)])
                )
            if not high - low > 1e-9:
                low, high = low - 1.0, high + 1.0
            # The bounds of a logarithm are moved to where they can be exponentials.
            intercept = -low if kind == "exponential" else 0.0
            ends = (1.0, math.exp(min(max(high - low, 1e-5), 29.0))) if kind == "exponential" else (low, high)
            queries.append(RegressionQuery(kind, coef, intercept, ends, epsilon))
        times = draw(st.sampled_from([[0], [1], [0, 1], [1] * 5, [0] * 3 + [1]]))
        queries += [queries[-1]] * (len(times) - 1)
        outputs += times
    return queries, outputs
