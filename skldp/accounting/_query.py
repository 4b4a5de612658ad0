"""Queries: locally private releases with exactly known laws.

Each query gives the log-likelihood of an output, or a bound on its loss. The accounting needs nothing else.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import permutations, starmap
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import Ints
from skldp._checks import check_integer
from skldp._documents import parsing, read_json
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting._regression_query import KINDS, KeyedQuery, RegressionQuery
from skldp.accounting._units import both_parts, nats_above, parts_of_pure, units_above, zcdp_of_pure
from skldp.laws._odds import TWO_64, log_ratio
from skldp.mechanisms._finite_query import FiniteQuery
from skldp.mechanisms._rows import RowMechanism

_ERASED = "erased answers"
# A set of codes is stored in a signed 64-bit integer.
_MOST_BITS = 62
_Law = tuple[int, int]


@dataclass(frozen=True, eq=False)
class ReleaseQuery(KeyedQuery):
    """Query for released rows, charged at full epsilon, or for a released code of a part, charged by its value."""

    # Two records' log-likelihoods of an output differ by at most epsilon, so the loss of a history is at most that of
    # its other answers plus the charges. Codes c of a part have two probabilities, with the charge as their log-ratio:
    # the log-likelihood of releases y is S(c) = sum of epsilon_i over those with c in y_i, up to a constant, for single
    # codes and for sets of them (unary encodings), and their loss is max S - min S, in integers. A pure epsilon has rho
    # epsilon^2 / 2, a discrete Gaussian Delta^2 / (2 sigma^2) (Bun and Steinke 2016, Prop. 1.4; Canonne, Kamath and
    # Steinke 2020, Theorem 14).

    mechanism: str
    row_charge: int | None
    row_zcdp: int
    n_rows: int = 1
    part: str | None = None
    n_classes: int = 1
    other_count: int = 0
    own_count: int = 0
    kind: str = field(default="release", init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, str):
            raise ValueError(f"mechanism must be a name; got {self.mechanism!r}.")
        if self.row_charge is not None:
            check_integer("row_charge", self.row_charge, least=0)
        check_integer("row_zcdp", self.row_zcdp, least=0)
        check_integer("n_rows", self.n_rows, least=1)
        named = isinstance(self.part, str) and self.n_rows == 1 and self.row_charge is not None
        if not named and self.part is not None:
            raise ValueError(
                "part must be a str, or None for several rows and for releases without a pure epsilon; "
                f"got {self.part!r}."
            )
        check_integer("own_count", self.own_count, least=0, most=TWO_64 - 1 if named else 0)
        most = _MOST_BITS if self.own_count else None
        check_integer("n_classes", self.n_classes, least=2 if named else 1, most=most if named else 1)
        most = self.own_count or TWO_64 // self.n_classes
        check_integer("other_count", self.other_count, least=int(named), most=most if named else 0)
        if named and self.row_charge != units_above(log_ratio(*self._odds)):
            raise ValueError(
                f"row_charge of a part must be the log-ratio of its probabilities; got {self.row_charge!r}."
            )
        pure = self.row_charge is not None and self.mechanism != _ERASED
        if pure and self.row_zcdp != zcdp_of_pure(self.row_charge or 0):
            raise ValueError(f"row_zcdp of a pure release must be epsilon^2 / 2; got {self.row_zcdp!r}.")

    @classmethod
    def of(cls, mechanism: RowMechanism, *, n_rows: int = 1, part: str | None = None) -> "ReleaseQuery":
        r"""Return the query of a mechanism's release."""
        if not isinstance(mechanism, RowMechanism):
            raise ValueError(f"mechanism must be a RowMechanism; got a {type(mechanism).__name__}.")
        guarantee, name = mechanism.guarantee(), type(mechanism).__name__
        # Add the inner mechanism's name: all numeric mechanisms share the outer one.
        inside = getattr(mechanism, "mechanism", None)
        name += f" of {type(inside).__name__}" if isinstance(inside, RowMechanism) else ""
        if guarantee.model == "local" and guarantee.delta == 0 and math.isfinite(guarantee.plain_epsilon):
            charge = units_above(guarantee.plain_epsilon)
            law = (1, 0, 0) if part is None else mechanism.code_counts
            return cls(name, charge, zcdp_of_pure(charge), int(n_rows), part, *law)
        if mechanism.zcdp is not None:
            return cls(name, None, units_above(mechanism.zcdp), int(n_rows))
        raise ValueError(
            f"A release must have a finite epsilon without delta, or Gaussian noise, to be counted; got {guarantee}. "
            "Declare the radius of a guarantee per unit of distance, and declare classes and categories."
        )

    @classmethod
    def erasure(cls, queries: Sequence[Any], loss: float | None) -> "ReleaseQuery":
        """Return the release that replaces erased answers, charged at `loss` or else at the sum of their epsilons."""
        # Its rho is the sum of theirs. loss^2 / 2 would be too small, since a loss holds for one output only.
        charges = sum(charge_of(query) for query in queries) if loss is None else units_above(loss)
        charge = int(charges) if math.isfinite(charges) else None
        return cls(_ERASED, charge, sum(zcdp_of(query) for query in queries))

    @cached_property
    def charge(self) -> int | None:
        """Epsilon of all rows, in units of 2^-60 nats."""
        return None if self.row_charge is None else self.n_rows * self.row_charge

    @cached_property
    def zcdp(self) -> int:
        """Parameter rho (zCDP) of all rows, in units of 2^-60 nats."""
        return self.n_rows * self.row_zcdp

    @property
    def _odds(self) -> tuple[int, int]:
        """Integer weights of an output, given a code that it supports and given any other code."""
        if not self.own_count:
            return TWO_64 - (self.n_classes - 1) * self.other_count, self.other_count
        return self.own_count * (TWO_64 - self.other_count), self.other_count * (TWO_64 - self.own_count)

    @property
    def n_outputs(self) -> int:
        """Number of outputs: the codes of a part or the sets of them, and 1 without a part."""
        return 2**self.n_classes if self.own_count else self.n_classes

    @property
    def output_values(self) -> Sequence[int]:
        """Outputs, which are their own indices."""
        return range(self.n_outputs)

    def worst_outputs(self, queries: Sequence[Any], outputs: Sequence[int]) -> Sequence[int]:
        """Return outputs for single codes, one of which leads to the largest loss after these answers."""
        # Codes that were never released are equivalent, so the result contains one of them.
        if self.part is None:
            return range(1)
        seen = {
            code
            for query, output in zip(queries, outputs, strict=True)
            if isinstance(query, ReleaseQuery) and query.part == self.part
            for code in query.codes_of(output)
        }
        unseen = next((code for code in range(self.n_classes) if code not in seen), None)
        codes = sorted(seen) if unseen is None else [*sorted(seen), unseen]
        return [1 << code for code in codes] if self.own_count else codes

    def codes_of(self, output: int) -> Sequence[int]:
        """Return the codes that an output supports."""
        return [code for code in range(self.n_classes) if output >> code & 1] if self.own_count else [output]

    def outputs_of(self, rows: npt.NDArray[Any]) -> Ints:
        """Return the recorded outputs of the released rows of a part, shape (n,)."""
        bits = np.int64(1) << np.arange(self.n_classes, dtype=np.int64)
        found: Ints = rows.astype(np.int64) @ bits if self.own_count else rows[:, 0].astype(np.int64)
        return found

    @cached_property
    def epsilon(self) -> float:
        """Epsilon of all rows in nats, rounded up; infinite for a Gaussian release."""
        return math.inf if self.charge is None else nats_above(self.charge)

    @property
    def exact_epsilon(self) -> float:
        """Same as `epsilon`, which is computed from the mechanism's integers."""
        return self.epsilon

    def to_json(self) -> str:
        """Return the query as JSON, with integer charges."""
        names = ("kind", "mechanism", "row_charge", "row_zcdp", "n_rows", "part", "n_classes", "other_count")
        # Omitting `own_count` if 0 keeps the keys of older records.
        fields = {name: getattr(self, name) for name in names}
        return json.dumps(fields | ({"own_count": self.own_count} if self.own_count else {}), separators=(",", ":"))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "ReleaseQuery":
        """Make a query from the fields of :meth:`to_json`."""
        return cls(**{name: value for name, value in fields.items() if name != "kind"})


def is_erasure(query: Any) -> bool:
    """Return whether a query is a release that replaces erased answers."""
    return isinstance(query, ReleaseQuery) and query.mechanism == _ERASED


def charge_of(query: Any) -> float:
    """Return the query's epsilon in units of 2^-60 nats, rounded up: an integer or infinity."""
    if isinstance(query, ReleaseQuery):
        return math.inf if query.charge is None else query.charge
    return units_above(query.exact_epsilon)


def zcdp_of(query: Any) -> int:
    """Return the query's zCDP parameter rho in the same units, rounded up."""
    return query.zcdp if isinstance(query, ReleaseQuery) else zcdp_of_pure(units_above(query.exact_epsilon))


@lru_cache(maxsize=16)
def charge_parts(query: Any) -> Ints:
    """Return the epsilon and the zCDP rho of an answer, each split by :func:`as_parts`."""
    if isinstance(query, ReleaseQuery):
        return both_parts(charge_of(query), query.zcdp)
    return parts_of_pure(query.exact_epsilon)


def released_loss(queries: Sequence[ReleaseQuery], outputs: Sequence[int]) -> float:
    """Return the loss of releases in units, possibly infinite; releases of parts count by their codes."""
    total = sum(charge_of(query) for query in queries if query.part is None)
    parts: dict[str, tuple[int, Counter[tuple[_Law, int, int]]]] = {}
    for query, output in zip(queries, outputs, strict=True):
        if query.part is not None:
            _, counts = parts.setdefault(query.part, (query.n_classes, Counter()))
            law, charge = (query.other_count, query.own_count), int(charge_of(query))
            counts.update((law, charge, code) for code in query.codes_of(output))
    return total + sum(starmap(_loss_of_part, parts.values()))


def _loss_of_part(n_classes: int, counts: Counter[tuple[_Law, int, int]]) -> int:
    """Return the largest log-ratio of two codes, in units, from the support counts of each law and charge."""
    laws, seen = {(law, charge) for law, charge, _ in counts}, {code for _, _, code in counts}
    # Codes that were never released are equivalent; one represents them.
    codes = [*seen, *([] if len(seen) == n_classes else [-1])]
    worst = 0
    for one, other in permutations(codes, 2):
        more = ((charge, counts[law, charge, one] - counts[law, charge, other]) for law, charge in laws)
        # A charge is the log-ratio rounded up to a float, and then to a unit.
        worst = max(worst, sum(n * (charge if n > 0 else charge - (charge >> 51) - 2) for charge, n in more))
    return worst


def query_from_json(text: str) -> "Query":
    """Read a query from its JSON."""
    fields = read_json(text)
    kind = fields.get("kind") if isinstance(fields, dict) else None
    with parsing("A query"):
        if kind == "finite":
            return FiniteQuery(np.array(fields["weights"], dtype=np.uint64))
        if kind in ("classes", "softmax"):
            del fields["kind"]
            return (ClassQuery if kind == "classes" else SoftmaxQuery)(**fields)
        if kind in KINDS:
            return RegressionQuery(**fields)
        if kind == "release":
            return ReleaseQuery.from_fields(fields)
    raise ValueError(f"The text must be the JSON of a query; got {text[:80]!r}.")


def checked_query(query: Any) -> "Query":
    """Raise ValueError unless the argument is a query."""
    if not isinstance(query, Query):
        raise ValueError(
            f"A query must be a RegressionQuery, a ClassQuery, a SoftmaxQuery or a FiniteQuery; got {query!r}."
        )
    return query


#: Query about a person: a regression, a class or its probability, a table of probabilities, or a release.
Query = RegressionQuery | ClassQuery | SoftmaxQuery | FiniteQuery | ReleaseQuery
