r"""Answers about linear classifiers as linear queries over a larger region, for their joint loss with other answers.

The record x is extended by what such answers depend on: for each model, the one-hot code z of the predicted class, and
the probabilities p of the classes. The answer c to a :class:`ClassQuery` has the law of a linear query about
:math:`z_c`, but for a constant, and a :class:`SoftmaxQuery` that of a linear query about :math:`p_k`. A record
satisfies linear inequalities, so the extended region contains every extended record, and the certified loss over it is
at least the joint loss. With scores s, their differences :math:`D_{cj} = s_c - s_j` and largest values M of them,

.. math::

   \sum_k p_k = 1, \quad p_j - p_c \le 1 - z_c, \quad -D_{cj}(x) \le M_{jc} (1 - z_c), \quad
   p_k(x) \le \sum_c u_c\, b_c + \sum_i g_i (x_i - v_i).

In the last one, :math:`u_c` is the largest probability with choice c of a one-hot block b and the other features at a
vertex v, and :math:`g_i` bounds the derivative :math:`\sum_j p_k p_j (\theta_{ki} - \theta_{ji})` on the side of v. The
same holds from below. Every limit is widened by `_MARGIN`, which exceeds the rounding of scores and probabilities.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from skldp._arrays import Floats, Ints
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses._region import UNIT, Block, Region

_MARGIN = 2.0**-28
# Larger programs are too slow for decisions; the losses are then only added.
_MOST_INEQUALITIES = 400
_LinearClasses = ClassQuery | SoftmaxQuery


@dataclass(frozen=True, eq=False)
class _Model:
    """Linear classifier over a region, and the columns of its codes and probabilities in the extended record."""

    query: _LinearClasses
    inner: Region
    codes: slice
    shares: slice

    def extended(self, x: Floats) -> Floats:
        """Return the codes and probabilities of records, shape (n, 0 to 2 n_classes)."""
        scores = self.query.scores(x)
        codes = np.eye(scores.shape[1])[scores.argmax(axis=1)]
        shares = np.clip(softmax(scores, axis=1), *self.range_of_shares)
        wanted = [values for values, at in ((codes, self.codes), (shares, self.shares)) if at.stop > at.start]
        return np.concatenate(wanted, axis=1)

    @cached_property
    def rounding(self) -> float:
        """Bound the rounding of a difference of scores."""
        coef, intercept = np.abs(self.query.coef), np.abs(self.query.intercept)
        largest = float((coef @ np.abs(self.inner.box).max(axis=0) + intercept).max())
        return largest * (8 * self.query.n_features + 64) * UNIT

    @cached_property
    def _differences(self) -> tuple[Floats, Floats]:
        """Coefficients and intercepts of the differences of scores, shapes (n_classes, n_classes, n_features)."""
        coef, intercept = self.query.coef, self.query.intercept
        return coef[:, None] - coef[None], intercept[:, None] - intercept[None]

    def _largest(self, low: Floats, high: Floats) -> Floats:
        """Return the largest difference of two scores over parts, shape (k, n_classes, n_classes)."""
        coef, intercept = self._differences
        found: Floats = self.inner.largest(coef.reshape(-1, coef.shape[2]), low, high)
        return found.reshape(-1, *intercept.shape) + intercept

    def _shares(self, low: Floats, high: Floats) -> Floats:
        """Return the least and largest probability of each class over parts, shape (2, k, n_classes)."""
        with np.errstate(over="ignore"):
            most = self._largest(low, high)
            # The difference of a class and itself is the 1 of the softmax's denominator.
            shares: Floats = 1 / np.stack([np.exp(most).sum(axis=1), np.exp(-most).sum(axis=2)])
            return shares

    @cached_property
    def range_of_shares(self) -> Floats:
        """Least and largest probability of each class, widened, shape (2, n_classes)."""
        found = self._shares(self.inner.box[:1], self.inner.box[1:])[:, 0] + np.array([[-_MARGIN], [_MARGIN]])
        widened: Floats = np.clip(found, 0.0, 1.0)
        return widened

    def inequalities(self, width: int) -> Iterator[tuple[Floats, float]]:
        """Yield the rows and limits that an extended record satisfies."""
        (n_classes, d), (least, most) = self.query.coef.shape, self.range_of_shares
        codes, shares = (np.arange(width)[own] for own in (self.codes, self.shares))
        if len(shares):
            total = np.isin(np.arange(width), shares).astype(np.float64)
            yield from ((total, 1.0), (-total, -1.0))
            yield from self._tangents(width)
        coef, intercept = self._differences
        reach = np.maximum(self._largest(self.inner.box[:1], self.inner.box[1:])[0], 0.0)
        for own, other in np.argwhere(~np.eye(n_classes, dtype=bool)) if len(codes) else ():
            row = np.zeros(width)
            row[:d], row[codes[own]] = -coef[own, other], reach[other, own]
            yield row, reach[other, own] + intercept[own, other]
            if len(shares):
                row = np.zeros(width)
                row[shares[other]], row[shares[own]] = 1.0, -1.0
                row[codes[own]] = apart = max(0.0, most[other] - least[own])
                yield row, apart

    def _tangents(self, width: int) -> Iterator[tuple[Floats, float]]:
        """Yield the bounds of each probability by the record's features."""
        coef, _ = self._differences
        (n_classes, d), inner = self.query.coef.shape, self.inner
        lone = ~inner.in_block
        # Bounds of p_k p_j, and of the derivatives by each feature.
        products = [np.minimum(np.outer(one, one), 0.25)[:, :, None] for one in self.range_of_shares]
        up, down = np.maximum(coef, 0.0), np.minimum(coef, 0.0)
        steep = [(products[side] * up + products[1 - side] * down).sum(axis=1) for side in (0, 1)]
        upwards = coef.sum(axis=1) >= 0
        for own in range(n_classes):
            for rises in (upwards[own], ~upwards[own]):
                vertex = np.where(rises, inner.box[1], inner.box[0])
                for row, ends in self._by_choices(vertex, lone):
                    for side, sign in ((0, -1.0), (1, 1.0)):
                        # From a lower end features increase, from an upper one they decrease.
                        slopes = np.where(lone, np.where(rises, steep[1 - side][own], steep[side][own]), 0.0)
                        bound = np.zeros(width)
                        none, rest = ends[side][-1, own], ends[side][:-1, own]
                        bound[:d] = -slopes
                        bound[row] = none - rest
                        bound[self.shares.start + own] = 1.0
                        yield sign * bound, sign * (none - float(slopes[lone] @ vertex[lone]))

    def _by_choices(self, vertex: Floats, lone: npt.NDArray[np.bool_]) -> Iterator[tuple[Ints, Floats]]:
        """Yield the columns of each block, with the range of shares for each choice and for none, at a vertex."""
        low, high = (np.where(lone, vertex, side) for side in self.inner.box)
        for block in self.inner.blocks:
            columns = np.arange(block.columns.start, block.columns.stop)
            choices = np.eye(block.size + 1, block.size)[: block.size + block.at_most_one]
            lows, highs = (np.tile(side, (len(choices), 1)) for side in (low, high))
            lows[:, block.columns] = highs[:, block.columns] = choices
            found = self._shares(lows, highs)
            none = found[:, -1:] if block.at_most_one else np.zeros_like(found[:, :1])
            yield columns, np.concatenate([found[:, : block.size], none], axis=1)
        if not self.inner.blocks:
            yield np.zeros(0, dtype=np.int64), self._shares(low[None], high[None])


@dataclass(frozen=True, eq=False, kw_only=True)
class JointRegion(Region):
    """Region of extended records, and the queries about them that have the laws of the answers."""

    # `slack` bounds by how much the log-likelihoods of two records differ from those of the queries.

    inner: Region
    models: tuple[_Model, ...]
    answers: tuple[tuple[RegressionQuery, int], ...]
    slack: float

    @classmethod
    def of(cls, answers: Sequence[tuple[RegressionQuery | _LinearClasses, int]], inner: Region) -> "JointRegion | None":
        """Return the region of the answers, or None if they have too many classes or too large scores."""
        models: dict[bytes, list[_LinearClasses]] = {}
        for query, _ in answers:
            if isinstance(query, _LinearClasses) and _code_columns(query, inner) is None:
                models.setdefault(_content(query), []).append(query)
        d, blocks, found = inner.box.shape[1], list(inner.blocks), {}
        width = d
        for name, own in sorted(models.items()):
            n_codes, n_shares = (
                len(own[0].coef) * any(isinstance(query, kind) for query in own) for kind in (ClassQuery, SoftmaxQuery)
            )
            middle = width + n_codes
            found[name] = _Model(own[0], inner, slice(width, middle), slice(middle, middle + n_shares))
            width = middle + n_shares
        n_rows = sum(len(one.query.coef) ** 2 + 4 * len(one.query.coef) * len(inner.blocks) for one in found.values())
        if n_rows > _MOST_INEQUALITIES or any(not one.rounding < _MARGIN / 4 for one in found.values()):
            return None
        rows = [row for one in found.values() for row in one.inequalities(width)]
        coef = np.array([row for row, _ in rows]).reshape(-1, width)
        limits = np.array([limit for _, limit in rows]) + _MARGIN
        box, integer = np.zeros((2, width)), np.zeros(width, dtype=bool)
        box[:, :d], integer[:d] = inner.box, inner.integer
        for one in found.values():
            if one.codes.stop > one.codes.start:
                box[1, one.codes], integer[one.codes] = 1.0, True
                blocks.append(Block(one.codes, False))
            if one.shares.stop > one.shares.start:
                box[:, one.shares] = one.range_of_shares
        written = [_as_regression(query, output, width, inner, found) for query, output in answers]
        old = np.pad(inner.coef, ((0, 0), (0, width - d)))
        return cls(
            box, integer, tuple(blocks), np.concatenate([old, coef]), np.concatenate([inner.limits, limits]),
            inner=inner, models=tuple(found.values()), answers=tuple((query, output) for query, output, _ in written),
            slack=2 * sum(error for _, _, error in written) * (1 + 2.0**-20),
        )  # fmt: skip

    def move(self, rows: npt.ArrayLike) -> Floats:
        """Move records inside, and extend them by their codes and probabilities."""
        x = self.inner.move(np.asarray(rows, dtype=np.float64)[:, : self.inner.box.shape[1]])
        return np.concatenate([x, *(model.extended(x) for model in self.models)], axis=1)


def _content(query: _LinearClasses) -> bytes:
    """Return the model of a query."""
    return query.coef.tobytes() + query.intercept.tobytes()


def _code_columns(query: _LinearClasses, inner: Region) -> slice | None:
    """Return the columns of the block whose code is the class of a query, or None."""
    if isinstance(query, ClassQuery) and not query.intercept.any():
        for block in inner.blocks:
            own = np.eye(inner.box.shape[1])[block.columns]
            if not block.at_most_one and np.array_equal(query.coef, own):
                return block.columns
    return None


def _as_regression(
    query: RegressionQuery | _LinearClasses, output: int, width: int, inner: Region, models: dict[bytes, _Model]
) -> tuple[RegressionQuery, int, float]:
    """Return the query about the extended record with the same law, its output, and the error of the log-likelihood."""
    coef = np.zeros(width)
    if isinstance(query, RegressionQuery):
        coef[: query.n_features] = query.coef
        return replace(query, coef=coef), output, 0.0
    columns = _code_columns(query, inner)
    if isinstance(query, SoftmaxQuery):
        coef[models[_content(query)].shares.start + query.position] = 1.0
        return RegressionQuery("linear", coef, 0.0, (0.0, 1.0), query.epsilon), output, query.rounding
    coef[(models[_content(query)].codes if columns is None else columns).start + output] = 1.0
    share = RegressionQuery("linear", coef, 0.0, (0.0, 1.0), query.exact_epsilon)
    # The integers of the two laws have log-ratios that differ by up to e^epsilon / 2^64, and logarithms by a few ulps.
    return share, 1, query.exact_epsilon - share.exact_epsilon + 2.0**-44 * (2 + query.exact_epsilon)
