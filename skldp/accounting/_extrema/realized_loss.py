r"""Certified bounds on the realized privacy loss of a set of answers.

The realized loss of outputs :math:`y_1, \dots, y_n` is (Pan 2025, Eq. 10)

.. math:: L(y) = \ln \max_x \prod_i P(y_i \mid x) - \ln \min_x \prod_i P(y_i \mid x).

Both extrema are enclosed from both sides: a point where the value is attained, and a bound that no point of the domain
exceeds. A search finds both, and neither is taken on its word: the bound is what the independent check
(:mod:`~skldp.accounting._extrema.certificate`) proves from what was found, and the value is computed from the very
integers that answers are drawn with. Which method searches depends on the answers alone: none of them takes a time
limit, so that a decision is the same on every machine.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.certificate import certified_loss, loss_between
from skldp.accounting._extrema.loss_search import Search, enclose
from skldp.accounting._extrema.sampled_law import Bounds, checked_box, middle_and_half, sampled_law
from skldp.accounting._query import FiniteQuery, Query, RegressionQuery

__all__ = ["LossBounds", "g_leakage_bound", "loss_over_box", "loss_over_points", "realized_loss"]

Floats = npt.NDArray[np.float64]


def realized_loss(
    queries: Sequence[Query],
    outputs: Sequence[int],
    *,
    bounds: Bounds | None = None,
    domain: npt.ArrayLike | None = None,
    tol: float = 1e-3,
    group_size: int | None = None,
    threshold: float | None = None,
) -> "LossBounds":
    """Enclose the realized privacy loss of some answers of one person.

    Parameters
    ----------
    queries : sequence of RegressionQuery or FiniteQuery
    outputs : sequence of int
        The output of each query: 0 or 1 for a regression (0 means a, 1 means b).
    bounds : tuple (low, high), default=None
        The box of x, each side a number or one per feature.
    domain : array-like of shape (n_points, n_features), default=None
        A finite domain instead of a box. A FiniteQuery speaks of its points by their index; with finite queries only,
        no domain needs to be given.
    tol : float, default=1e-3
        Aim for `upper` minus `lower`, in nats.
    group_size : int, default=None
        Bound groups of so many answers one by one and add up (Appendix C of the paper): looser, but the work grows
        linearly with the answers. None treats all answers jointly.
    threshold : float, default=None
        Stop as soon as the loss is known to be at most this, or above it.

    Returns
    -------
    LossBounds

    Raises
    ------
    ValueError
        If the queries and outputs do not match, the domain is not given, or it has another number of features.

    Notes
    -----
    The order of the answers does not matter. `upper` is safe whether the search converged or not.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Eq. 10, Sections 5.1 and 5.2,
    Appendices C and D. Algorithm 6 is misprinted there: its loop must run while LB < UB_g - delta, and
    UB_g = min(UB_g, UB).

    Examples
    --------
    >>> from skldp.accounting._extrema.realized_loss import realized_loss
    >>> from skldp.accounting._query import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> round(realized_loss([query], [1], bounds=(-1, 1)).upper, 6)
    0.5
    >>> round(realized_loss([query, query], [1, 0], bounds=(-1, 1)).upper, 3)
    0.062
    """
    if isinstance(tol, bool) or not isinstance(tol, Real) or not 0 < float(tol) < math.inf:
        raise ValueError(f"tol must be a finite number above 0. Got {tol!r} instead.")
    queries, outputs = list(queries), list(outputs)
    if len(queries) != len(outputs):
        raise ValueError(
            f"Every query needs one output. Got {len(queries)} queries and {len(outputs)} outputs instead."
        )
    _check_outputs(queries, outputs)
    if group_size is not None:
        if isinstance(group_size, bool) or not isinstance(group_size, int) or group_size < 1:
            raise ValueError(f"group_size must be a positive int or None. Got {group_size!r} instead.")
        starts = range(0, len(queries), group_size)
        ends = [slice(first, first + group_size) for first in starts]
        parts = [
            realized_loss(queries[part], outputs[part], bounds=bounds, domain=domain, tol=tol / len(ends))
            for part in ends
        ]
        return _grouped(parts)
    finite = [query for query in queries if isinstance(query, FiniteQuery)]
    if finite or domain is not None:
        return loss_over_points(queries, outputs, domain)
    if not queries:
        return LossBounds(0.0, 0.0, None, None, True, "nothing was answered")
    if bounds is None:
        raise ValueError("Regression queries need the bounds of x, or a finite domain. Got neither.")
    box = checked_box(bounds, n_features=_common_features(queries))
    return loss_over_box([q for q in queries if isinstance(q, RegressionQuery)], outputs, box, tol, threshold)


def g_leakage_bound(loss: float) -> float:
    """Bound every realized g-leakage, for every gain function and every prior, by a realized loss.

    Parameters
    ----------
    loss : float
        A realized privacy loss or an upper bound of one, in nats.

    Returns
    -------
    float
        e^loss: the largest factor by which any adversary's g-vulnerability can have grown.

    References
    ----------
    M. Pan, 2025, Theorem 3.3.

    Examples
    --------
    >>> from skldp.accounting._extrema.realized_loss import g_leakage_bound
    >>> round(g_leakage_bound(0.405465), 4)
    1.5
    """
    if not loss >= 0:
        raise ValueError(f"loss must be a number >= 0. Got {loss!r} instead.")
    return math.nextafter(math.exp(loss), math.inf)


def loss_over_points(queries: Sequence[Query], outputs: Sequence[int], domain: Any) -> "LossBounds":
    """Enclose the loss over a finite domain by looking at every point."""
    points = None if domain is None else np.asarray(domain, dtype=np.float64)
    if points is not None and (points.ndim != 2 or not len(points)):
        raise ValueError(f"domain must have shape (n_points, n_features). Got shape {points.shape} instead.")
    sizes = {query.n_points for query in queries if isinstance(query, FiniteQuery)}
    if points is not None:
        sizes.add(len(points))
    if len(sizes) > 1:
        raise ValueError(f"All queries must speak of the same finite domain. Got sizes {sorted(sizes)} instead.")
    size = sizes.pop() if sizes else 1
    total, error = np.zeros(size), 0.0
    # In a fixed order, so that the sum is the same in whatever order the answers came.
    for query, output in sorted(zip(queries, outputs, strict=True), key=lambda pair: (pair[0].key, pair[1])):
        if isinstance(query, FiniteQuery):
            total += query.log_likelihood(int(output), np.arange(size))
            # A logarithm below 37, within 4 units in the last place.
            error += 2.0**-44
        else:
            if points is None:
                raise ValueError(
                    "Regression queries beside finite ones need the points of the domain. Got domain=None."
                )
            total += query.log_likelihood(int(output), points)
            error += sampled_law([query], [int(output)], np.stack([points.min(axis=0), points.max(axis=0)])).allowance
    # A sum of n terms is off by at most n roundings of its size.
    error += 2.0**-52 * len(queries) * float(np.abs(total).max(initial=0.0))
    high, low = int(total.argmax()), int(total.argmin())
    loss = float(total[high] - total[low])
    x_high, x_low = (None, None) if points is None else (points[high], points[low])
    return LossBounds(max(0.0, loss - 2 * error), loss + 2 * error, x_high, x_low, True, "every point was looked at")


def loss_over_box(
    queries: Sequence[RegressionQuery],
    outputs: Sequence[int],
    box: Floats,
    tol: float,
    threshold: float | None = None,
) -> "LossBounds":
    """Enclose the loss over a box."""
    law = sampled_law(queries, outputs, box)
    middle, half = middle_and_half(box)
    if not len(law):
        return LossBounds(0.0, 0.0, middle, middle, True, "no answer depends on x")
    # No answer costs more than its own budget: the sampled integers see to that.
    ceiling = math.nextafter(math.fsum(query.exact_epsilon for query in queries), math.inf)
    # Rounding alone would take every bound past the ceiling: there is nothing to search for.
    if 2 * law.allowance >= ceiling:
        return LossBounds(0.0, ceiling, middle, middle, False, "the predictions are too large for their rounding")
    high, low = Search(law, 1), Search(law, -1)
    if threshold is None:
        enclose(high, low, tol, -math.inf, math.inf)
    elif ceiling > threshold:
        # The check adds what rounding may do, and a search that stops just short of its goal may fail it.
        limit = threshold - 4 * law.allowance - 1e-9 * threshold
        enclose(high, low, tol, limit, threshold)
    is_open = threshold is None or high.lower + low.lower <= threshold < ceiling
    # What has certainly lost more is not worth a proof.
    proofs = ([high.proof], [low.proof]) if is_open else ([], [])
    upper = certified_loss(queries, outputs, box, *proofs)
    ends = np.clip(middle + half * np.stack([high.point, low.point]), box[0], box[1])
    lower = min(loss_between(queries, outputs, ends), upper)
    # What rounding may do is no fault of the search, as long as it is less than was asked for.
    converged = upper - lower <= tol + min(4 * law.allowance, tol)
    if converged:
        reason = "the bounds meet within tol"
    elif threshold is not None and not lower <= threshold < upper:
        reason = "the threshold is decided"
    elif 4 * law.allowance > tol:
        reason = "the predictions are too large for their rounding"
    else:
        reason = "the search reached its limit of nodes"
    return LossBounds(lower, upper, ends[0], ends[1], converged, reason)


def _check_outputs(queries: Sequence[Query], outputs: Sequence[int]) -> None:
    for query, output in zip(queries, outputs, strict=True):
        if isinstance(output, bool | np.bool_) or output not in range(query.n_outputs):
            raise ValueError(f"An output must be an integer from 0 to {query.n_outputs - 1}. Got {output!r} instead.")


def _common_features(queries: Sequence[Query]) -> int:
    sizes = {query.n_features for query in queries if isinstance(query, RegressionQuery)}
    if len(sizes) != 1:
        raise ValueError(f"All queries must read the same features. Got {sorted(sizes)} features instead.")
    return sizes.pop()


def _grouped(parts: Sequence["LossBounds"]) -> "LossBounds":
    upper = math.fsum(part.upper for part in parts)
    converged = len(parts) <= 1 and all(part.converged for part in parts)
    reason = "the sum of the groups' bounds" if len(parts) != 1 else parts[0].reason
    one = parts[0] if len(parts) == 1 else None
    return LossBounds(
        one.lower if one else 0.0,
        math.nextafter(upper, math.inf) if parts else 0.0,
        one.x_high if one else None,
        one.x_low if one else None,
        converged or not parts,
        reason,
    )


@dataclass(frozen=True)
class LossBounds:
    """What is known of a realized privacy loss, in nats.

    Attributes
    ----------
    lower, upper : float
        The true loss lies between them; `upper` is the one to account with, and what the independent check has
        proved. Both are rounded outward, and allow for the rounding of the law that is really sampled.
    x_high, x_low : ndarray of shape (n_features,) or None
        Points between which at least `lower` is realized.
    converged : bool
        Whether ``upper - lower`` is within the tolerance asked for.
    reason : str
        Why the search ended.
    """

    lower: float
    upper: float
    x_high: Floats | None
    x_low: Floats | None
    converged: bool
    reason: str

    @property
    def gap(self) -> float:
        """How far the bounds are apart."""
        return self.upper - self.lower
