r"""Region of a person's records: a box with integer columns, one-hot blocks and inequalities.

A :class:`Region` is made from declared bounds or a ``Domain``. A part of it is a box, with integer sides for integer
columns. If a column of a block is 1 throughout a part, the other columns of the block are 0; a column that is 0
throughout cannot be chosen. :meth:`Region.tightened` applies these rules, so a tree of cuts by columns or by answers'
arguments works for boxes and domains.

The maximum of a linear form over a part is exact. It is the sum of the maxima over columns and over blocks, where a
block's maximum is the largest coefficient that may still be chosen. Inequalities are included with any prices
:math:`\mu \ge 0`:

.. math:: \max_{x \in P,\, A x \le b} c \cdot x \le \max_{x \in P} (c - \mu A) \cdot x + \mu \cdot b .
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from skldp._arrays import Bools, Floats, Ints
from skldp.accounting._units import LARGEST
from skldp.domains._column import Column
from skldp.domains._columns import Columns
from skldp.domains._constraints import Constrained, OneHot
from skldp.domains._domain import Box, Domain

Bounds = tuple[npt.ArrayLike, npt.ArrayLike] | Domain
UNIT = 2.0**-53
# Approximate number of entries in a temporary array.
_BLOCK = 1 << 20


def checked_box(bounds: Any, *, n_features: int | None = None) -> Floats:
    """Return checked bounds as an array with one column per feature. Shapes: returns (2, n_features)."""
    try:
        low, high = bounds
        low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be (low, high), two numbers or two lists of one number per column; got {bounds!r}."
        ) from None
    if n_features is None:
        n_features = max(1, low.size, high.size)
    for side in (low, high):
        if side.ndim > 1 or (side.ndim == 1 and side.size != n_features):
            raise ValueError(
                f"bounds must be (low, high), each a number or one number for each of the {n_features} features; "
                f"got {bounds!r}."
            )
    box = np.stack([np.broadcast_to(low, n_features), np.broadcast_to(high, n_features)])
    if not np.isfinite(box).all() or (box[0] > box[1]).any():
        raise ValueError(f"bounds must be finite, with low <= high; got {bounds!r}.")
    # Larger values are clipped to LARGEST; the certified domain must equal the sampled one.
    if (np.abs(box) > LARGEST).any():
        raise ValueError(f"bounds must lie within -{LARGEST:g} and {LARGEST:g}; got {bounds!r}.")
    return box


def middle_and_half(box: Floats) -> tuple[Floats, Floats]:
    """Return the center and half the width of a box without overflow, each of shape (n_features,)."""
    low, high = box / 2
    return low + high, high - low


@dataclass(frozen=True)
class Block:
    """One-hot columns of a category, all of which may be 0 if `at_most_one`."""

    columns: slice
    at_most_one: bool

    @property
    def size(self) -> int:
        """Number of columns."""
        return int(self.columns.stop - self.columns.start)


def box_region(box: Floats) -> "Region":
    """Return the region of a plain box. Shapes: box (2, n_features)."""
    d = box.shape[1]
    return Region(box, np.zeros(d, dtype=bool), (), np.zeros((0, d)), np.zeros(0))


def region_of(bounds: Bounds, *, n_features: int | None = None) -> "Region":
    """Return the region of declared bounds or of a domain."""
    if not isinstance(bounds, Domain):
        return box_region(checked_box(bounds, n_features=n_features))
    domain, d = bounds, bounds.n_features
    if n_features not in (None, d):
        raise ValueError(f"The domain must have a column for each of {n_features} features; got {d} columns.")
    region = Region(np.zeros((2, d)), np.zeros(d, dtype=bool), (), np.zeros((0, d)), np.zeros(0), domain)
    blocks: list[Block] = []
    rows: list[tuple[Floats, float]] = []
    _write_out(domain, 0, region, blocks, rows)
    coef = np.array([row for row, _ in rows]).reshape(-1, d)
    limits = np.array([limit for _, limit in rows])
    reach = np.abs(coef) @ np.abs(region.box).max(axis=0)
    if (np.abs(region.box) > LARGEST).any() or (reach > LARGEST).any() or (np.abs(limits) > LARGEST).any():
        raise ValueError(
            f"The bounds of a domain and the sums in its inequalities must be at most {LARGEST:g} in magnitude; "
            "got larger ones."
        )
    # Membership of the domain includes the rounding of d products and d sums.
    limits = limits + (4 * d + 8) * UNIT * (reach + np.abs(limits))
    return Region(region.box, region.integer, tuple(blocks), coef, limits, domain)


def _write_out(
    domain: Domain, start: int, region: "Region", blocks: list[Block], rows: list[tuple[Floats, float]]
) -> None:
    """Add a domain whose first column is `start`."""
    columns = slice(start, start + domain.n_features)
    if isinstance(domain, Box):
        region.box[:, columns] = domain.ends
    elif isinstance(domain, Column) and not domain.has_codes and not domain.may_be_nan:
        region.box[:, start] = domain.ends
        region.integer[start] = domain.whole
    elif isinstance(domain, OneHot):
        region.box[1, columns] = 1.0
        region.integer[columns] = True
        blocks.append(Block(columns, domain.at_most_one))
    elif isinstance(domain, Columns):
        for names, part in domain.parts:
            _write_out(part, start, region, blocks, rows)
            start += len(names)
    elif isinstance(domain, Constrained):
        _write_out(domain.domain, start, region, blocks, rows)
        for own, limit in zip(*domain.inequalities, strict=True):
            row = np.zeros(region.box.shape[1])
            row[columns] = own
            rows.append((row, float(limit)))
    else:
        raise ValueError(
            "The domain of a ledger or filter must consist of Column (of numbers), Box, OneHot, Columns or "
            f"Constrained; got {type(domain).__name__}."
        )


@dataclass(frozen=True)
class _Choice:
    """Choices of a block or of a column: its integers, or both ends of an interval."""

    columns: slice
    at_most_one: bool
    ends: tuple[float, float, bool] | None = None

    @property
    def size(self) -> int:
        """Number of choices."""
        if self.ends is None:
            return int(self.columns.stop - self.columns.start) + int(self.at_most_one)
        low, high, is_integer = self.ends
        return int(high - low) + 1 if is_integer else 2

    def terms(self, coef: Floats) -> Floats:
        """Return the contribution of each choice to each linear form, shape (size, n)."""
        own = coef[:, self.columns].T
        if self.ends is None:
            return np.concatenate([own, np.zeros((1, len(coef)))]) if self.at_most_one else own
        return np.array([self.values(digit) for digit in range(self.size)]) * own

    def values(self, digit: int) -> Floats:
        """Return the values of the columns for one choice."""
        if self.ends is None:
            return np.where(np.arange(self.columns.start, self.columns.stop) == self.columns.start + digit, 1.0, 0.0)
        low, high, is_integer = self.ends
        return np.array([low + digit if is_integer else (low, high)[digit]])

    def cut(self, digit: int) -> tuple[int, float, int]:
        """Return the cut between a choice and the next ones: column, position and half."""
        if self.ends is None:
            return int(self.columns.start) + digit, 0.0, 1
        return int(self.columns.start), self.ends[0] + digit, 0


@dataclass(frozen=True, eq=False)
class Region:
    """Domain with integer columns, one-hot blocks and inequalities; see the module."""

    # Shapes: `box` (2, n_features); `coef, limits` (n_inequalities, n_features) and (n_inequalities,).

    box: Floats
    integer: Bools
    blocks: tuple[Block, ...]
    coef: Floats
    limits: Floats
    domain: Domain | None = None

    @cached_property
    def is_box(self) -> bool:
        """True if the region is a plain box."""
        return not self.integer.any() and not len(self.limits)

    @cached_property
    def in_block(self) -> Bools:
        """Mask of the columns in a block."""
        inside = np.zeros(self.box.shape[1], dtype=bool)
        for block in self.blocks:
            inside[block.columns] = True
        return inside

    @cached_property
    def is_finite(self) -> bool:
        """True if the region has finitely many points."""
        return bool((self.integer | (self.box[0] == self.box[1])).all())

    @cached_property
    def is_curbed(self) -> bool:
        """True if an inequality between continuous columns adds vertices."""
        return bool(self.coef[:, ~self.integer & (self.box[0] < self.box[1])].any())

    def n_points(self, used: Bools) -> int:
        """Return the number of points that :meth:`sums` evaluates."""
        return math.prod(choice.size for choice in self.choices(used))

    def sums(self, coef: Floats, used: Bools, at_once: int) -> Iterator[tuple[Ints, Floats]]:
        """Yield codes and linear forms (k, n) of all members, or of vertices if some columns are continuous."""
        # Choices without a member are omitted.
        choices = self.choices(used)
        chosen, settled = np.zeros(len(used), dtype=bool), np.zeros(len(used), dtype=bool)
        for choice in choices:
            chosen[choice.columns] = True
            settled[choice.columns] = self.integer[choice.columns]
        still = coef @ np.where(chosen, 0.0, self.box[0])
        # Undetermined columns contribute their minimum to each inequality.
        curbs = np.where(settled, self.coef, 0.0)
        open_part = -self.largest(-(self.coef - curbs), self.box[:1], self.box[1:])[0]
        tables = [(choice.terms(coef), choice.terms(curbs)) for choice in choices]
        for first in range(0, self.n_points(used), at_once):
            codes = np.arange(first, min(first + at_once, self.n_points(used)))
            sums, left, rest = np.tile(still, (len(codes), 1)), np.tile(open_part, (len(codes), 1)), codes
            for terms, curbing in tables:
                rest, digit = np.divmod(rest, len(terms))
                sums += terms[digit]
                left += curbing[digit]
            held = (left <= self._loose_limits).all(axis=1)
            yield codes[held], sums[held]

    def point(self, code: int, used: Bools) -> Floats:
        """Return a point of :meth:`sums` by its code, with the least value in unused columns."""
        point: Floats = self.box[0].copy()
        for choice in self.choices(used):
            code, digit = divmod(code, choice.size)
            point[choice.columns] = choice.values(digit)
        return point

    def tightened(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return parts of the region, tightened by the one-hot columns that are determined."""
        # Shapes: `low, high` (k, n_features).
        if not self.blocks:
            return low, high
        low, high = low.copy(), high.copy()
        for block in self.blocks:
            chosen = np.asarray(low[:, block.columns] >= 1)
            high[:, block.columns] = np.where(chosen.any(axis=1, keepdims=True) & ~chosen, 0.0, high[:, block.columns])
            if not block.at_most_one:
                left = high[:, block.columns] >= 1
                last = left & (np.count_nonzero(left, axis=1) == 1)[:, None]
                low[:, block.columns] = np.where(last, 1.0, low[:, block.columns])
        return low, high

    def is_possible(self, low: Floats, high: Floats) -> Bools:
        """Return whether tightened parts can contain a record; False is certain."""
        # Shapes: `low, high` (k, n_features).
        possible = np.asarray((low <= high).all(axis=1))
        for block in self.blocks:
            if not block.at_most_one:
                possible &= (high[:, block.columns] >= 1).any(axis=1)
        if len(self.limits):
            possible &= (-self.largest(-self.coef, low, high) <= self._loose_limits).all(axis=1)
        return possible

    def largest(self, coef: Floats, low: Floats, high: Floats) -> Floats:
        """Return the maximum of each linear form over each part, without the inequalities."""
        # Shapes: `coef` (n, n_features); `low, high` (k, n_features); result (k, n).
        lone = ~self.in_block
        up, down = np.maximum(coef[:, lone], 0.0).T, np.minimum(coef[:, lone], 0.0).T
        found: Floats = high[:, lone] @ up + low[:, lone] @ down
        for block in self.blocks:
            found += self._largest_of_block(block, coef[:, block.columns], low, high)
        return found

    def largest_each(self, coef: Floats, low: Floats, high: Floats) -> Floats:
        """Return the maximum of one linear form per part, as :meth:`largest`; shapes (k, n_features) and (k,)."""
        lone = ~self.in_block
        found: Floats = np.maximum(coef[:, lone] * low[:, lone], coef[:, lone] * high[:, lone]).sum(axis=1)
        for block in self.blocks:
            best = np.where(high[:, block.columns] >= 1, coef[:, block.columns], -np.inf).max(axis=1)
            found += np.where(_may_be_none(block, low), np.maximum(best, 0.0), best)
        return found

    def largest_priced(self, coef: Floats, prices: Floats | None, low: Floats, high: Floats) -> Floats:
        """Return an upper bound of :meth:`largest_each` subject to the inequalities, for any prices."""
        # Shapes: `coef, low, high` (k, n_features); `prices` (k, n_inequalities); result (k,).
        unpriced = self.largest_each(coef, low, high)
        if prices is None or not len(self.limits):
            return unpriced
        paid = np.maximum(np.nan_to_num(prices, posinf=0.0, neginf=0.0), 0.0)
        reach = np.abs(self.coef) @ np.abs(self.box).max(axis=0) + np.abs(self.limits)
        # The rounding includes a product for each price, and sums over inequalities and columns.
        rounding = (paid @ reach) * (4 * (sum(self.coef.shape) + 8) * UNIT)
        priced = self.largest_each(coef - paid @ self.coef, low, high) + paid @ self.limits + rounding
        # Drop prices that worsen the bound, and NaN.
        least: Floats = np.fmin(unpriced, priced)
        return least

    @cached_property
    def block_rows(self) -> tuple[Floats, Floats]:
        """Return an indicator row per block: blocks that sum to 1, and blocks that sum to at most 1."""
        rows = np.zeros((len(self.blocks), len(self.integer)))
        for row, block in zip(rows, self.blocks, strict=True):
            row[block.columns] = 1.0
        may_be_none = np.array([block.at_most_one for block in self.blocks], dtype=bool)
        return rows[~may_be_none], rows[may_be_none]

    def range_of(self, coef: Floats) -> tuple[float, float]:
        """Bound a linear form over the region, up to the rounding of one evaluation. Shapes: `coef` (n_features,)."""
        ends = self.box[:1], self.box[1:]
        both = np.stack([-coef, coef])
        if not len(self.limits):
            low, high = (float(self.largest_each(one[None, :], *ends)[0]) for one in both)
            return -low, high
        exact, at_most = self.block_rows
        found = []
        for one in both:
            # Any prices prove a bound, so the solver need not be accurate.
            solved = linprog(
                -one,
                A_ub=np.concatenate([self.coef, at_most]),
                b_ub=np.concatenate([self.limits, np.ones(len(at_most))]),
                A_eq=exact if len(exact) else None,
                b_eq=np.ones(len(exact)) if len(exact) else None,
                bounds=self.box.T,
                method="highs-ds",
            )
            prices = None if solved.x is None else -solved.ineqlin.marginals[None, : len(self.limits)]
            found.append(float(self.largest_priced(one[None, :], prices, *ends)[0]))
        return -found[0], found[1]

    def move(self, rows: npt.ArrayLike) -> Floats:
        """Move any rows inside; NaN becomes the least number and infinity the largest."""
        with np.errstate(all="ignore"):
            given = np.asarray(rows, dtype=np.float64)
            given = np.nan_to_num(np.clip(given, -LARGEST, LARGEST), nan=-LARGEST)
            moved = np.clip(given, *self.box) if self.domain is None else self.domain.clip(given).rows
            return np.asarray(moved, dtype=np.float64)

    @cached_property
    def _loose_limits(self) -> Floats:
        """Limits, widened by the rounding of one evaluation of the inequalities."""
        reach = np.abs(self.coef) @ np.abs(self.box).max(axis=0) + np.abs(self.limits)
        loose: Floats = self.limits + (4 * len(self.integer) + 8) * UNIT * reach
        return loose

    def choices(self, used: Bools) -> list["_Choice"]:
        """Return the choices of each block and other used column, the digits of a code, least significant first."""
        lone = np.flatnonzero(~self.in_block & (self.box[0] < self.box[1]) & used)
        return [
            *(_Choice(block.columns, block.at_most_one) for block in self.blocks if used[block.columns].any()),
            *(
                _Choice(slice(column, column + 1), False, (*self.box[:, column], bool(self.integer[column])))
                for column in lone
            ),
        ]

    def _largest_of_block(self, block: Block, coef: Floats, low: Floats, high: Floats) -> Floats:
        may = high[:, block.columns] >= 1
        found = np.empty((len(low), len(coef)))
        step = max(1, _BLOCK // max(1, coef.size))
        for first in range(0, len(low), step):
            part = slice(first, first + step)
            found[part] = np.where(may[part, None, :], coef, -np.inf).max(axis=2)
        return np.where(_may_be_none(block, low)[:, None], np.maximum(found, 0.0), found)


def _may_be_none(block: Block, low: Floats) -> Bools:
    """Return a mask of the parts in which all columns of a block may be 0."""
    none: Bools = np.full(len(low), block.at_most_one) & ~(low[:, block.columns] >= 1).any(axis=1)
    return none
