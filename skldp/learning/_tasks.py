"""Tasks: public JSON documents that define what each person releases, and how reports are summed."""

import binascii
import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints, as_numbers, kind_of
from skldp._checks import check_integer, is_number
from skldp._documents import canonical_text, read_document
from skldp.domains._domain import Box
from skldp.laws._odds import LEAST_EPSILON
from skldp.learning._reports import Report
from skldp.learning._vectors import class_gradients, losses, n_products
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.categorical._one_hot import SubsetSelection
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, Piecewise, UnitMechanism
from skldp.mechanisms.vector._privunit import PrivUnitBall
from skldp.mechanisms.vector._privunit_products import PrivUnitProducts

_FORMS = ("linear", "squares", "products", "gradient", "class_gradient", "loss")
_ANSWERS = ("vector", "number", "levels")
# Version of the documents, which are hashed; others are refused. Doubles are little-endian on every machine.
_VERSION, _DOUBLES = 4, np.dtype("<f8")
# Number of levels of a norm, each half the one before.
N_LEVELS = 20
# Epsilon above which levels are released exactly in double precision.
_LARGEST_OF_LEVELS = 32.0
# Largest release, in numbers; larger tasks are refused.
_MOST_OUTPUTS = 1 << 20
# Largest magnitude of a number: sums of a million products stay finite.
_MOST = 1e30
# Largest epsilon of a task; above it a release is exact in double precision.
_LARGEST_EPSILON = 1e6
# Largest number of classes: contrasts are a square matrix.
_MOST_CLASSES = 1 << 10
# Numbers of vectors in memory at a time, in one thread.
_CELLS = 1 << 18


@lru_cache(maxsize=64)
def noise_variance(length: int, epsilon: float, form: str = "linear") -> float:
    """Return the variance of a released vector of norm at most 1 across it; of products, in the mean of directions."""
    if form == "products":
        return max(products_law(length, epsilon).mean_variance, 1e-12)
    # PrivUnit needs d >= 2.
    return max(_ball(max(2, length), epsilon).second_moments()[1], 1e-12)


def number_variance(epsilon: float) -> float:
    """Return the largest variance of a released number in [-1, 1]."""
    return _scalar(epsilon).worst_variance


@lru_cache(maxsize=64)
def levels_mechanism(epsilon: float) -> SubsetSelection:
    """Return the mechanism that releases levels."""
    return SubsetSelection(min(epsilon, _LARGEST_OF_LEVELS), N_LEVELS)


@lru_cache(maxsize=64)
def levels_error(epsilon: float, n_people: int) -> float:
    """Return the standard error of the share of people at an empty level."""
    mechanism = levels_mechanism(epsilon)
    return math.sqrt(mechanism.q * (1 - mechanism.q) / n_people) / (mechanism.p - mechanism.q)


@dataclass(frozen=True)
class Task:
    r"""Release of each person in a cohort: a public document, which devices check before they look at their record.

    - `epsilon`: of the whole record with its target. No record costs more.
    - `low`, `high`: declared bounds of every feature and, last, of the target, at least 1e-30 apart. Values outside are
      clipped, and the bounds are mapped to -1 and 1; z is the result.
    - `matrix`: A of :math:`u = A (1, z)`.
    - `form`: what is made of u. ``"linear"``: u. ``"squares"``: its squares. ``"products"``: products of all pairs, of
      different numbers times :math:`\sqrt 2`, so that their norm is :math:`\|u\|^2`. ``"gradient"``: u without its last
      number, times that number. ``"class_gradient"``: :math:`C^T (e_y - \mathrm{softmax}(v)) \otimes w`, with v the
      last K numbers of u, w the others, and C the K - 1 contrasts. ``"loss"``: the squared error of u, one number,
      clipped to [-1, 1], or the negative log likelihood of class y with the logits u. Losses up to the radius are
      mapped to [-1, 1].
    - `answer`: what is released. ``"vector"``: the vector, by ``PrivUnitBall``, or its products, by
      ``PrivUnitProducts``. ``"number"``: by Duchi's mechanism or the Piecewise one. ``"levels"``: the norm, rounded at
      random and without bias of the logarithm to one of :math:`r 2^{-k}`, k from 0 to 19, by subset selection.
    - `radius`: longer vectors are shortened to it; numbers are within it; it is the first level of norms.
    - `n_classes`: K, if the target y is a class counted from 0, else 0.
    """

    epsilon: float
    low: tuple[float, ...]
    high: tuple[float, ...]
    form: str
    matrix: tuple[tuple[float, ...], ...]
    answer: str
    radius: float
    n_classes: int = 0

    def __post_init__(self) -> None:
        for name, options in (("form", _FORMS), ("answer", _ANSWERS)):
            if getattr(self, name) not in options:
                raise ValueError(f"A task's {name} must be one of {options}; got another one.")
        for name in ("low", "high"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        for name in ("epsilon", "radius"):
            object.__setattr__(self, name, _numbers(name, [getattr(self, name)])[0])
        if not LEAST_EPSILON <= self.epsilon <= _LARGEST_EPSILON:
            limits = f"a number from {LEAST_EPSILON} to {_LARGEST_EPSILON:.0e}"
            raise ValueError(f"`epsilon` must be {limits} in a task; got {self.epsilon!r}.")
        width = len(self.low)
        if (
            width < 2
            or len(self.high) != width
            # Bounds that are too close lose the middle or the width to rounding.
            or any(high - low < 1 / _MOST for low, high in zip(self.low, self.high, strict=True))
        ):
            raise ValueError("A task's low and high must be bounds, low < high, of a feature or more and the target.")
        self._check_matrix()
        self._check_classes()
        least = 1 if self.answer != "vector" else 2
        most = 1 if self.answer == "number" else _MOST_OUTPUTS
        if not least <= self._n_numbers <= most:
            raise ValueError(
                f"A task of the answer {self.answer!r} must be about vectors of length {least} to {most:,}; "
                f"got {self._n_numbers:,}."
            )
        if not self.radius > 1 / _MOST:
            raise ValueError(f"A task's radius must be above {1 / _MOST:.0e}; got a smaller one.")

    def _check_matrix(self) -> None:
        rows: Any = self.matrix
        columns = len(self.low) + 1
        if isinstance(rows, list | tuple) and all(
            isinstance(row, list | tuple) and len(row) == columns for row in rows
        ):
            rows = np.array([_numbers("matrix", row) for row in rows]).reshape(-1, columns)
        # Documents hold arrays: a device parses thousands of numbers.
        if (
            not isinstance(rows, np.ndarray)
            or rows.dtype != np.float64
            or rows.shape[1:] != (columns,)
            or len(rows) < 1 + (self.form == "gradient")
        ):
            raise ValueError(f"A task's matrix must have rows, each of {columns} numbers; got others.")
        _check_size("matrix", rows)
        object.__setattr__(self, "matrix", tuple(map(tuple, rows.tolist())))
        # Store the array that the property would compute.
        vars(self)["_array"] = rows.copy()

    def _check_classes(self) -> None:
        is_loss = self.form == "loss"
        has_classes = self.form == "class_gradient" or (is_loss and self.n_classes != 0)
        check_integer("A task's n_classes", self.n_classes, least=2 if has_classes else 0, most=_MOST_CLASSES)
        object.__setattr__(self, "n_classes", int(self.n_classes))
        if has_classes and (
            (self.low[-1], self.high[-1]) != (0, self.n_classes - 1)
            or (not is_loss and len(self.matrix) <= self.n_classes)
        ):
            raise ValueError("A task about classes must have a matrix of more rows, and a target counted from 0.")
        if is_loss and (self.answer != "number" or len(self.matrix) != max(1, self.n_classes)):
            raise ValueError("A task about losses must have a matrix of one row, or one for each class, and a number.")
        if not has_classes and self.n_classes:
            raise ValueError("A task that is not about classes must have n_classes 0; got another one.")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse an untrusted task; raise ValueError for any other text."""
        names = [one.name for one in fields(cls)]
        given = read_document(text, "task", _VERSION, names)
        if not isinstance(given["low"], list):
            raise ValueError("A task's low must be a list of numbers; got something else.")
        columns = len(given["low"]) + 1
        try:
            # The numbers may still be NaN or infinite.
            doubles = np.frombuffer(binascii.a2b_base64(given["matrix"], strict_mode=True), _DOUBLES)
            matrix = doubles.reshape(-1, columns).astype(np.float64)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"A task's matrix must be base64 of rows of {columns} numbers of 8 bytes; got something else."
            ) from error
        return cls(**{name: given[name] for name in names} | {"matrix": matrix})

    def to_json(self) -> str:
        """Return the task as canonical JSON, the input of :attr:`hash`; the matrix is base64, row by row."""
        return self._text

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal digits; reports refer to it."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    def guarantee(self) -> PrivacyGuarantee:
        """Return the guarantee of one release, for the record with its target."""
        return self._mechanism.guarantee()

    @property
    def n_outputs(self) -> int:
        """Number of numbers in a release."""
        return {"vector": self._n_numbers, "levels": N_LEVELS}.get(self.answer, 1)

    def release(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        noise: Noise,
        *,
        rows: npt.NDArray[np.intp] | None = None,
        n_threads: int = 1,
    ) -> Report:
        """Release the answers of the people at `rows`, or of all, and sum them; the same for any `n_threads`."""
        features, target = as_numbers(X, "X"), as_numbers(y, "y")
        shape = (len(target) if target.ndim else -1, len(self.low) - 1)
        if features.shape != shape or target.ndim != 1:
            raise ValueError(f"X must have the shape (n, {shape[1]}) and y as many; got {kind_of(features)}.")
        if rows is not None and np.unique(rows % len(target)).size < len(rows):
            raise ValueError("rows must be different people, who each answer once; got the same person twice.")
        n = len(target) if rows is None else len(rows)
        if not n:
            raise ValueError("A report must be of at least one person; got none.")
        step = max(1, _CELLS // max(self._n_numbers, len(self.low)))
        parts = [slice(start, start + step) for start in range(0, n, step)]

        def total(some: list[tuple[slice, Noise]]) -> Ints:
            sums = np.zeros(self.n_outputs, dtype=np.int64)
            for part, stream in some:
                chosen = part if rows is None else rows[part]
                answers = self.answers(features[chosen], target[chosen], stream)
                # Integers below 2^27: doubles hold the sum of a block exactly, 64 bits that of 2^36 people.
                sums += np.rint(answers.sum(axis=0) / self._integers[0]).astype(np.int64)
            return sums

        work = list(zip(parts, noise.split(parts), strict=True))
        n_threads = min(n_threads, len(parts))
        if n_threads <= 1:
            sums = total(work)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                sums = np.sum(list(pool.map(total, (work[i::n_threads] for i in range(n_threads)))), axis=0)
        return Report(self.hash, n, tuple(sums.tolist()), (noise.words(2).tobytes().hex(),))

    def answers(self, X: Floats, y: Floats, noise: Noise) -> Floats:
        """Release the answers of some people without their sum, (n, n_outputs), in units of the radius."""
        encoded = self.encode(X, y)
        if self.answer == "levels":
            rounding, noise = noise.spawn(2)
            # A level plus a uniform number may round to the next integer, above the last level.
            up = rounding.uniform(encoded.shape) >= 1 - encoded % 1
            return np.asarray(self._mechanism.release(np.floor(encoded).astype(np.int64) + up, noise).rows)
        return np.asarray(self._mechanism.release(encoded, noise).rows)

    def encode(self, X: Floats, y: Floats) -> Floats:
        """Return the encoded records, (n, length), in units of the radius, before clipping and noise. NOT private."""
        vectors = self._vectors(self._box.clip(np.column_stack([X, y])).rows)
        if self.form == "products" and self.answer != "vector":
            # The norm of the products.
            vectors = np.einsum("ij,ij->i", vectors, vectors)[:, None]
        if self.answer == "levels":
            norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            return np.asarray(-np.log2(np.clip(norms, 2.0 ** (1 - N_LEVELS), 1))[:, None])
        return np.clip(vectors, -1, 1) if self.answer == "number" else vectors

    def mean(self, report: Report) -> Floats:
        """Return the mean of a checked report, unbiased within the radius; of levels, the share of people at each."""
        self.check(report)
        mean = np.array([total / report.n_people for total in report.sums])
        if isinstance(self._mechanism, SubsetSelection):
            return np.asarray((mean - self._mechanism.q) / (self._mechanism.p - self._mechanism.q))
        return mean * self._integers[0] * self.radius

    def standard_error(self, n_people: int) -> float:
        """Return the error of each number of the mean: across a vector, largest of a number, least of a share."""
        check_integer("n_people", n_people, least=1)
        if self.answer == "vector":
            return self.radius * math.sqrt(noise_variance(self._length, self.epsilon, self.form) / n_people)
        if self.answer == "levels":
            return levels_error(self.epsilon, n_people)
        return self.radius * math.sqrt(number_variance(self.epsilon) / n_people)

    def check(self, report: Report) -> None:
        """Raise ValueError for a report of another task, or an impossible sum."""
        if report.task != self.hash:
            raise ValueError("A report must be of the same task as the collector's; got another task's hash.")
        most = self._integers[1] * report.n_people
        least = 0 if self.answer == "levels" else -most
        if len(report.sums) != self.n_outputs or not all(least <= total <= most for total in report.sums):
            raise ValueError(
                "A report must hold as many sums as the task has outputs, each of a size people can reach."
            )

    @cached_property
    def _text(self) -> str:
        # dataclasses.asdict would copy every number. Base64 is exact, and a hundred times faster than decimals.
        content = {one.name: getattr(self, one.name) for one in fields(self)}
        matrix = binascii.b2a_base64(self._array.astype(_DOUBLES, copy=False).tobytes(), newline=False).decode()
        return canonical_text({"skldp": "task", "version": _VERSION} | content | {"matrix": matrix})

    @cached_property
    def _length(self) -> int:
        """Length of the encoded vector of a record."""
        rows = len(self.matrix)
        if self.form == "loss":
            return 1
        if self.form == "class_gradient":
            return (rows - self.n_classes) * (self.n_classes - 1)
        return rows - (self.form == "gradient")

    @cached_property
    def _n_numbers(self) -> int:
        """Length of the vector, or number of the products, that the task is about."""
        return n_products(self._length) if self.form == "products" else self._length

    @cached_property
    def _mechanism(self) -> PrivUnitBall | PrivUnitProducts | UnitMechanism | SubsetSelection:
        if self.answer == "levels":
            return levels_mechanism(self.epsilon)
        if self.answer == "number":
            return _scalar(self.epsilon)
        return (products_law if self.form == "products" else _ball)(self._length, self.epsilon)

    @cached_property
    def _integers(self) -> tuple[float, int]:
        """Unit of the integers of a report, for a radius of 1, and the largest one in a release."""
        mechanism = self._mechanism
        if isinstance(mechanism, PrivUnitProducts):
            return mechanism.step, math.ceil(mechanism.most / mechanism.step)
        if isinstance(mechanism, PrivUnitBall):
            unit = mechanism.sphere.step
            return unit, math.ceil(mechanism.sphere.scale / unit * (1 + 1e-6)) + 1
        if isinstance(mechanism, Piecewise):
            return mechanism.integer_law.step, mechanism.integer_law.n_cells // 2
        return mechanism.integer_law.magnitude if isinstance(mechanism, Duchi) else 1.0, 1

    @cached_property
    def _array(self) -> Floats:
        return np.array(self.matrix)

    @property
    def _box(self) -> Box:
        return _box(self.low, self.high)

    def _vectors(self, inside: Floats) -> Floats:
        """Encode records in units of the radius."""
        # Must not raise or branch on a record.
        with np.errstate(all="ignore"):
            z = np.clip((inside - self._box.center) / self._box.radius, -1, 1)
            u = z @ self._array[:, 1:].T
            u += self._array[:, 0]
            if self.form == "products":
                return np.asarray(u / math.sqrt(self.radius))
            if self.form == "loss":
                return 2 * losses(u, z[:, -1], self.n_classes)[:, None] / self.radius - 1
            if self.form == "class_gradient":
                return class_gradients(u, z[:, -1], self.n_classes) / self.radius
            if self.form == "squares":
                u = u**2
            if self.form == "gradient":
                u = u[:, :-1] * u[:, -1:]
            return np.asarray(u / self.radius)


@lru_cache(maxsize=16)
def _box(low: tuple[float, ...], high: tuple[float, ...]) -> Box:
    # All tasks of a protocol have the same bounds.
    return Box(low, high)


@lru_cache(maxsize=64)
def _ball(length: int, epsilon: float) -> PrivUnitBall:
    # In units of the radius, so that releases are multiples of a power of two.
    return PrivUnitBall(length, epsilon, 1.0)


@lru_cache(maxsize=64)
def products_law(length: int, epsilon: float) -> PrivUnitProducts:
    """Return the mechanism that releases products."""
    return PrivUnitProducts(length, epsilon)


@lru_cache(maxsize=64)
def _scalar(epsilon: float) -> UnitMechanism:
    # Choose the law with the smaller variance among those with integer outputs; prefer the simpler one if they are
    # close.
    return min((Duchi(epsilon), Piecewise(epsilon, "opt")), key=lambda one: one.worst_variance)


def _numbers(name: str, given: Any) -> tuple[float, ...]:
    """Return finite numbers of bounded magnitude as doubles."""
    # Fast path for JSON numbers.
    if not isinstance(given, list | tuple) or not (set(map(type, given)) <= {float} or all(map(is_number, given))):
        raise ValueError(f"A task's {name} must be a list of finite numbers; got something else.")
    numbers = tuple(map(float, given))
    _check_size(name, np.array(numbers))
    return numbers


def _check_size(name: str, numbers: Floats) -> None:
    # NaN fails every comparison.
    if not (np.abs(numbers) <= _MOST).all():
        raise ValueError(f"A task's {name} must hold finite numbers of at most {_MOST:.0e}; got others.")
