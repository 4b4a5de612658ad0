"""The two inputs that randomized bits tell apart best, among the codes that declared bounds reach.

Bits are randomized independently, so that a pair of codes costs the sum over the bits in which they differ. Within the
bounds not every two codes occur: the worst pair is found by dynamic programming over the bits, from the last to the
first, with what each of the two codes is still tied to (the first or the last reachable magnitude) as its state.
"""

import numpy as np
import numpy.typing as npt

__all__ = ["worst_pair_costs"]

_CHUNK = 2048
# A state says whether the bits so far equal those of the first, and of the last, reachable magnitude.
_TIED_FIRST = np.array([False, False, True, True])
_TIED_LAST = np.array([False, True, False, True])
_PAIR_ROUNDING = 1 + 128 * np.finfo(np.float64).eps


def worst_pair_costs(costs: npt.NDArray[np.float64], reachable: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Largest cost between two reachable codes, for each interval of codes.

    Parameters
    ----------
    costs : ndarray of shape (n_bits, 2, 2)
        ``[i, b, c]`` is what bit i costs if it is b in the one code and c in the other. Bit 0 is the sign.
    reachable : ndarray of uint64, shape (n, 2, 2)
        ``[:, s]``: first and last magnitude with sign bit s; the first exceeds the last where there is none.

    Returns
    -------
    ndarray of shape (n,)
        Rounded up.
    """
    distinct, inverse = np.unique(reachable.reshape(len(reachable), 4), axis=0, return_inverse=True)
    ends = distinct.reshape(-1, 2, 2)
    worst = np.zeros(len(ends))
    for sign in range(2):
        for other in range(2):
            exists = (ends[:, sign, 0] <= ends[:, sign, 1]) & (ends[:, other, 0] <= ends[:, other, 1])
            for rows in np.array_split(np.flatnonzero(exists), max(1, len(ends) // _CHUNK)):
                magnitudes = _magnitude_costs(costs[1:], ends[rows, sign], ends[rows, other])
                worst[rows] = np.maximum(worst[rows], costs[0, sign, other] + magnitudes)
    return worst[inverse.reshape(-1)] * _PAIR_ROUNDING


def _magnitude_costs(
    costs: npt.NDArray[np.float64], one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]
) -> npt.NDArray[np.float64]:
    rows = np.arange(len(one))[:, None, None, None, None]
    best = np.zeros((len(one), 4, 4))
    for place in range(len(costs)):
        cost = costs[len(costs) - 1 - place]
        next_one, legal_one = _step(one, place)
        next_other, legal_other = _step(other, place)
        after = (
            best[rows, next_one[:, :, :, None, None], next_other[:, None, None, :, :]] + cost[None, None, :, None, :]
        )
        legal = legal_one[:, :, :, None, None] & legal_other[:, None, None, :, :]
        best = np.where(legal, after, -np.inf).max(axis=(2, 4))
    return best[:, 3, 3]


def _step(ends: npt.NDArray[np.uint64], place: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Next state and legality of bit values 0 and 1 at a place (0 the last), shape (n, 4 states, 2 values)."""
    digits = ((ends >> np.uint64(place)) & np.uint64(1)).astype(bool)
    first, last = digits[:, :1, None], digits[:, 1:, None]
    value = np.array([False, True])
    tied_first, tied_last = _TIED_FIRST[:, None], _TIED_LAST[:, None]
    legal = ~(tied_first & ~value & first) & ~(tied_last & value & ~last)
    state = 2 * (tied_first & (value == first)) + 1 * (tied_last & (value == last))
    return state.astype(np.intp), legal
