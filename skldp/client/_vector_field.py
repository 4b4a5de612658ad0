"""Field for a vector, released by PrivUnit on random directions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from skldp._arrays import kind_of, refuse_masked
from skldp._checks import check_integer, check_positive
from skldp.client._fields import MOST, AnyField, check_text
from skldp.laws._closest_law import MOST_NUMBERS, ClosestLaw


@dataclass(frozen=True)
class VectorField(AnyField):
    r"""Field for a vector, such as the update of a model, which is released by PrivUnit on random directions.

    Parameters
    ----------
    name : str
        Name of the answer and of the column.
    law : ClosestLaw
        Law of as many numbers as the vector has, from 2 to 65,536; see :meth:`privunit`.
    bound : float, default=None
        Largest norm; longer vectors are clipped to it. None releases directions, and the law must be of directions.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    A record has one value of this name: a sequence or array of numbers. An absent vector, None, a vector with a number
    that is not finite, and a value that is no vector of this length are the zero vector: no report is missing because
    of its value.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import Collector
    >>> from skldp.client import Policy, VectorField
    >>> policy = Policy("train a model", (VectorField.privunit("update", 128, 4.0, bound=1.0),))
    >>> round(policy.epsilon, 6), policy.n_bytes
    (4.0, 39)
    >>> collector = Collector(policy)
    >>> for _ in range(50):
    ...     _ = collector.add(policy.release({"update": np.full(128, 0.05)}))
    >>> collector.mean("update").values.shape
    (128,)
    """

    name: str
    law: ClosestLaw
    bound: float | None = None

    kind: ClassVar[str] = "vector"  # type: ignore[misc]  # the same for all vectors
    columns: ClassVar[tuple[()]] = ()  # type: ignore[misc]  # the same for all vectors
    steps: ClassVar[None] = None  # type: ignore[misc]  # the same for all vectors
    has_fixed_answers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_text("The name of a field", self.name)
        if self.bound is not None:
            check_positive("bound", self.bound)
            if self.bound > MOST:
                raise ValueError(f"bound must be at most {MOST:g}; got {self.bound!r}.")
            object.__setattr__(self, "bound", float(self.bound))
        wanted = 0 if self.bound is None else 1
        if not isinstance(self.law, ClosestLaw) or self.law.square_radius != wanted:
            raise ValueError(f"The law of a vector must be 'closest' of square radius {wanted}; got {self.law!r}.")

    @classmethod
    def privunit(cls, name: str, n_values: int, epsilon: float, *, bound: float | None = None) -> Self:
        """Make the field of vectors of `n_values` numbers at this epsilon; needs scipy.

        Parameters
        ----------
        name : str
            Name of the answer and of the column.
        n_values : int
            Length of the vector.
        epsilon : float
            Epsilon of a report (natural log).
        bound : float, default=None
            As in the class.
        """
        from skldp.mechanisms.vector._privunit import PrivUnit, PrivUnitBall

        check_integer("n_values", n_values, least=2, most=MOST_NUMBERS)
        vectors = PrivUnit(n_values, epsilon) if bound is None else PrivUnitBall(n_values, epsilon, 1.0)
        return cls(name, vectors.device_law, bound)

    def encode(self, values: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Return the clipped vector in units of the bound, or its direction; never raises."""
        try:
            return self.encode_all({self.name: [values.get(self.name)]}, True)[0]
        except ValueError:
            return np.zeros(self.law.n_values)

    def encode_all(
        self, columns: Mapping[str, Any], refuse_unknown: bool, **reading: Any
    ) -> Sequence[npt.NDArray[np.float64]]:
        """Return the clipped vectors of the rows in units of the bound, or their directions."""
        try:
            rows = [np.zeros(self.law.n_values) if row is None else row for row in columns[self.name]]
            refuse_masked(rows, self.name)
            given = np.array(rows)
            if given.dtype == object:
                # Integers of more than 64 bits, some of which exceed the doubles; others raise.
                given = np.vectorize(lambda one: one if abs(one) < 2**1023 else math.inf, [float])(given)
        except Exception:
            # No numbers, or rows of different lengths; the error of another library may show a value.
            given = np.empty(0)
        is_fit = given.ndim == 2 and given.shape[1] == self.law.n_values and given.dtype.kind in "fiu"
        if not is_fit:
            raise ValueError(f"{self.name!r} must be vectors of {self.law.n_values} numbers; got {kind_of(given)}.")
        with np.errstate(over="ignore"):
            return [_clipped(row, self.bound) for row in given.astype(np.float64)]

    def to_dict(self) -> dict[str, Any]:
        """Return the field as a dict of its document."""
        bound = None if self.bound is None else repr(self.bound)
        return {"type": "vector", "bound": bound} | super().to_dict()


def _clipped(vector: npt.NDArray[np.float64], bound: float | None) -> npt.NDArray[np.float64]:
    """Return a vector in units of the bound, shortened to it, or a direction; zeros if a number is not finite."""
    top = float(np.abs(vector).max())
    if top == 0 or not math.isfinite(top):
        return np.zeros_like(vector)
    # Squares of scaled numbers do not overflow; fsum is exact in any order, for other clients.
    scaled = vector / top
    norm = math.sqrt(math.fsum((scaled * scaled).tolist()))
    return vector / bound if bound is not None and norm * top < bound else scaled / norm
