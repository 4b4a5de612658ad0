"""A release of a person's record by any mechanism, at what it can cost at most, or of one code at what it did cost."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations, starmap
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._checks import check_whole
from skldp.accounting._units import UNITS, nats_above, units_above
from skldp.mechanisms._categorical.randomized_response import GeneralizedRandomizedResponse
from skldp.mechanisms._categorical.record import CategoricalRecord
from skldp.mechanisms._categorical.unary import UnaryEncoding
from skldp.mechanisms._odds import TWO_64, log_ratio
from skldp.mechanisms._rows import RowMechanism

__all__ = ["ReleaseQuery", "charge_of", "released_loss", "zcdp_of"]
_ERASED = "erased answers"
# A set of codes is a number that a signed 64-bit integer holds.
_MOST_BITS = 62
_Law = tuple[int, int]


@dataclass(frozen=True, eq=False)
class ReleaseQuery:
    r"""Rows of a person, released by a mechanism: at its full epsilon, or one code of a named part by what was told.

    Make one with :meth:`of`.

    Parameters
    ----------
    mechanism : str
        What a report calls it.
    row_charge : int or None
        The epsilon of one row in units of :math:`2^{-60}` nats, rounded up. None where no epsilon is finite, as of a
        Gaussian.
    row_zcdp : int
        The :math:`\rho` of one row's zero-concentrated privacy in the same units, rounded up.
    n_rows : int, default=1
        How many rows of a person are released together.
    part : str, default=None
        What of the record the one code is that randomized response or a unary encoding was given, such as
        ``"employment"``: what was released is recorded then, and what releases of this part have cost is realized
        loss. None counts in full.
    n_classes : int, default=1
        How many codes the part has; 1 without a part.
    other_count : int, default=0
        Of a part: how many of :math:`2^{64}` draws release each code that is not the true one. The charge follows.
    own_count : int, default=0
        Of a unary encoding: how many of :math:`2^{64}` draws release the true code, each on its own. 0 is randomized
        response, of which exactly one code is released.

    Attributes
    ----------
    charge : int or None
        The epsilon of all rows, in units.
    zcdp : int
        Their :math:`\rho`, in units.
    epsilon : float
        `charge` in nats, rounded up; infinite where there is none.
    n_outputs : int
        `n_classes`; of a unary encoding all sets of codes, 2 to that power, each the number that has their bits; or
        1, that something was released.
    key : str
        SHA-256 of the content.

    Raises
    ------
    ValueError
        If a parameter is not as described.

    See Also
    --------
    PrivacyLedger : Its ``release`` draws, and records, such releases.

    Notes
    -----
    One output's log-likelihood differs between any two records by at most epsilon. So the realized loss of a history
    is at most that of the other answers plus the charges of its releases.

    Randomized response over the codes c of a part has two probabilities, whose log-ratio is the charge. So has a
    unary encoding, whose log-likelihood of a set of codes is that of its bit c,
    :math:`\ln \frac{p (1 - q)}{q (1 - p)} = \varepsilon` more where that is 1, and the same for all c but for that. So
    the log-likelihood of releases y is, but for a constant, :math:`S(c) = \sum_{i: c \in y_i} \varepsilon_i`, and they
    have cost :math:`\max_c S(c) - \min_c S(c)`: exactly, in integers. A set that holds all codes, or none, costs
    nothing.

    An epsilon-LDP release has :math:`\rho = \varepsilon^2 / 2`; the discrete Gaussian of standard deviation
    :math:`\sigma` and Euclidean sensitivity :math:`\Delta` has :math:`\rho = \Delta^2 / (2 \sigma^2)`.

    References
    ----------
    M. Bun and T. Steinke, "Concentrated Differential Privacy", TCC 2016, Proposition 1.4; C. Canonne, G. Kamath and T.
    Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020, Theorem 14.

    Examples
    --------
    >>> from skldp.accounting import ReleaseQuery
    >>> from skldp.mechanisms import RandomizedResponse
    >>> query = ReleaseQuery.of(RandomizedResponse(0.5, 3), n_rows=2)
    >>> round(query.epsilon, 6), query.n_outputs
    (1.0, 1)
    """

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
            raise ValueError(f"mechanism must be a name. Got {self.mechanism!r} instead.")
        if self.row_charge is not None:
            check_whole("row_charge", self.row_charge, least=0)
        check_whole("row_zcdp", self.row_zcdp, least=0)
        check_whole("n_rows", self.n_rows, least=1)
        named = isinstance(self.part, str) and self.n_rows == 1 and self.row_charge is not None
        if not named and self.part is not None:
            raise ValueError(f"part must be the name of what one released code is about. Got {self.part!r} instead.")
        check_whole("own_count", self.own_count, least=0, most=TWO_64 - 1 if named else 0)
        most = _MOST_BITS if self.own_count else None
        check_whole("n_classes", self.n_classes, least=2 if named else 1, most=most if named else 1)
        most = self.own_count or TWO_64 // self.n_classes
        check_whole("other_count", self.other_count, least=int(named), most=most if named else 0)
        if named and self.row_charge != units_above(log_ratio(*self._odds)):
            raise ValueError(
                f"row_charge of a part must be the log-ratio of its probabilities. Got {self.row_charge!r} instead."
            )
        pure = self.row_charge is not None and not self.is_erasure
        if pure and self.row_zcdp != _zcdp_of_pure(self.row_charge or 0):
            raise ValueError(
                f"row_zcdp of a pure release must be half of its epsilon's square. Got {self.row_zcdp!r} instead."
            )

    @classmethod
    def of(cls, mechanism: RowMechanism, *, n_rows: int = 1, part: str | None = None) -> "ReleaseQuery":
        r"""Read off a mechanism's own guarantee what its release costs.

        Parameters
        ----------
        mechanism : RowMechanism
        n_rows : int, default=1
        part : str, default=None
            With randomized response and unary encodings alone, of one row.

        Returns
        -------
        ReleaseQuery

        Raises
        ------
        ValueError
            If it is no mechanism, or its guarantee is neither finite and pure nor that of a Gaussian with a known
            :math:`\rho`: a ledger cannot say what it costs.
        """
        if not isinstance(mechanism, RowMechanism):
            raise ValueError(f"mechanism must be a RowMechanism. Got a {type(mechanism).__name__} instead.")
        guarantee, name = mechanism.guarantee(), type(mechanism).__name__
        # Without the name of what is inside, all numeric mechanisms would be called alike.
        inside = getattr(mechanism, "mechanism", None)
        name += f" of {type(inside).__name__}" if isinstance(inside, RowMechanism) else ""
        if guarantee.model == "local" and guarantee.delta == 0 and math.isfinite(guarantee.plain_epsilon):
            charge = units_above(guarantee.plain_epsilon)
            law = (1, 0, 0) if part is None else _law_of_codes(mechanism)
            return cls(name, charge, _zcdp_of_pure(charge), int(n_rows), part, *law)
        if mechanism.zcdp is not None:
            return cls(name, None, units_above(mechanism.zcdp), int(n_rows))
        raise ValueError(
            "A ledger counts releases with a finite epsilon and no delta, or Gaussian ones: for one per unit of "
            f"distance, declare the largest distance (radius); classes and categories too. Got {guarantee} instead."
        )

    @classmethod
    def in_place_of(cls, query: Any) -> "ReleaseQuery":
        """What an answer to a query counts as where the answer itself is not known."""
        if isinstance(query, ReleaseQuery) and query.part is None:
            return query
        charge = int(charge_of(query))
        return cls("an answer that is not told", charge, _zcdp_of_pure(charge))

    @classmethod
    def erasure(cls, queries: Sequence[Any], loss: float | None) -> "ReleaseQuery":
        """What erased answers have cost: a certain loss in nats, or their epsilons; beside it, what their rhos were.

        A loss is no epsilon, which holds for every output: half of its square would be less than they have cost.
        """
        charges = sum(charge_of(query) for query in queries) if loss is None else units_above(loss)
        charge = int(charges) if math.isfinite(charges) else None
        return cls(_ERASED, charge, sum(zcdp_of(query) for query in queries))

    @property
    def is_erasure(self) -> bool:
        """Whether it stands for answers that were erased."""
        return self.mechanism == _ERASED

    @cached_property
    def charge(self) -> int | None:
        """The epsilon of all rows, in units of 2^-60 nats."""
        return None if self.row_charge is None else self.n_rows * self.row_charge

    @cached_property
    def zcdp(self) -> int:
        """The rho of all rows, in the same units."""
        return self.n_rows * self.row_zcdp

    @property
    def _odds(self) -> tuple[int, int]:
        """How likely what is released is for the codes that it speaks for, against the others."""
        if not self.own_count:
            return TWO_64 - (self.n_classes - 1) * self.other_count, self.other_count
        return self.own_count * (TWO_64 - self.other_count), self.other_count * (TWO_64 - self.own_count)

    @property
    def n_outputs(self) -> int:
        """The codes of a part, or the sets of them, or 1: only that something was released is recorded."""
        return 2**self.n_classes if self.own_count else self.n_classes

    @property
    def output_values(self) -> Sequence[int]:
        """The outputs are their own indices."""
        return range(self.n_outputs)

    def worst_outputs(self, queries: Sequence[Any], outputs: Sequence[int]) -> Sequence[int]:
        """Outputs of which one leads to the largest loss after these answers: those for a single code.

        All codes that were never released are alike, and one of them stands for them.
        """
        if self.part is None:
            return range(1)
        told = {
            code
            for query, output in zip(queries, outputs, strict=True)
            if isinstance(query, ReleaseQuery) and query.part == self.part
            for code in query.codes_of(output)
        }
        untold = next((code for code in range(self.n_classes) if code not in told), None)
        codes = sorted(told) if untold is None else [*sorted(told), untold]
        return [1 << code for code in codes] if self.own_count else codes

    def codes_of(self, output: int) -> Sequence[int]:
        """The codes that an output speaks for."""
        return [code for code in range(self.n_classes) if output >> code & 1] if self.own_count else [output]

    def outputs_of(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """What is recorded of the released rows of a part, shape (n,)."""
        bits = np.int64(1) << np.arange(self.n_classes, dtype=np.int64)
        found: npt.NDArray[np.int64] = rows.astype(np.int64) @ bits if self.own_count else rows[:, 0].astype(np.int64)
        return found

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of all rows in nats, rounded up; infinite where it is not finite."""
        return math.inf if self.charge is None else nats_above(self.charge)

    @property
    def exact_epsilon(self) -> float:
        """The same as `epsilon`, which the mechanism's integers give."""
        return self.epsilon

    @cached_property
    def key(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """Write the query as JSON, with charges as the integers that they are."""
        names = ("kind", "mechanism", "row_charge", "row_zcdp", "n_rows", "part", "n_classes", "other_count")
        # Randomized response is written as it was before there was another law.
        fields = {name: getattr(self, name) for name in names}
        return json.dumps(fields | ({"own_count": self.own_count} if self.own_count else {}), separators=(",", ":"))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "ReleaseQuery":
        """Read back what JSON made of :meth:`to_json`."""
        return cls(**{name: value for name, value in fields.items() if name != "kind"})


def _law_of_codes(mechanism: RowMechanism) -> tuple[int, int, int]:
    """How many codes a mechanism has, and the two counts of a :class:`ReleaseQuery`."""
    if isinstance(mechanism, CategoricalRecord) and len(mechanism.columns) == 1:
        (mechanism,) = mechanism.columns
    if isinstance(mechanism, GeneralizedRandomizedResponse):
        return mechanism.n_classes, mechanism.other_count, 0
    if isinstance(mechanism, UnaryEncoding):
        return mechanism.n_classes, mechanism.other_count, mechanism.own_count
    raise ValueError(
        "Releases of a part are counted by what they were where the mechanism is RandomizedResponse or a UnaryEncoding "
        f"of one code; without part any counts in full. Got {type(mechanism).__name__} instead."
    )


def _zcdp_of_pure(charge: int) -> int:
    """Half of the square of an epsilon, in units and rounded up."""
    return -(-charge * charge // (2 * UNITS))


def charge_of(query: Any) -> float:
    """What any query's answer costs at most, in units of 2^-60 nats, rounded up: an integer, or infinite."""
    if isinstance(query, ReleaseQuery):
        return math.inf if query.charge is None else query.charge
    return units_above(query.exact_epsilon)


def zcdp_of(query: Any) -> int:
    """Any query's zero-concentrated privacy, in the same units, rounded up."""
    return query.zcdp if isinstance(query, ReleaseQuery) else _zcdp_of_pure(units_above(query.exact_epsilon))


def released_loss(queries: Sequence[ReleaseQuery], outputs: Sequence[int]) -> float:
    """What releases have cost at most, in units: in full, or of each part what its codes were; possibly infinite.

    Examples
    --------
    >>> from skldp.accounting._release_query import ReleaseQuery, released_loss
    >>> from skldp.mechanisms import RandomizedResponse
    >>> query = ReleaseQuery.of(RandomizedResponse(0.5, 2), part="employment")
    >>> [round(released_loss([query] * 2, outputs) / 2**60, 9) for outputs in ([0, 0], [0, 1])]
    [1.0, 0.0]
    """
    total = sum(charge_of(query) for query in queries if query.part is None)
    parts: dict[str, tuple[int, Counter[tuple[_Law, int, int]]]] = {}
    for query, output in zip(queries, outputs, strict=True):
        if query.part is not None:
            _, counts = parts.setdefault(query.part, (query.n_classes, Counter()))
            law, charge = (query.other_count, query.own_count), int(charge_of(query))
            counts.update((law, charge, code) for code in query.codes_of(output))
    return total + sum(starmap(_loss_of_part, parts.values()))


def _loss_of_part(n_classes: int, counts: Counter[tuple[_Law, int, int]]) -> int:
    """The worst log-ratio of two codes, in units, from how often each law with its charge spoke for each code."""
    laws, seen = {(law, charge) for law, charge, _ in counts}, {code for _, _, code in counts}
    # All codes that were never released are alike.
    codes = [*seen, *([] if len(seen) == n_classes else [-1])]
    worst = 0
    for one, other in permutations(codes, 2):
        more = ((charge, counts[law, charge, one] - counts[law, charge, other]) for law, charge in laws)
        # A charge is the log-ratio rounded up to a float, and then to a unit.
        worst = max(worst, sum(n * (charge if n > 0 else charge - (charge >> 51) - 2) for charge, n in more))
    return worst
