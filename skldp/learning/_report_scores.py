"""Scores of the codes of laws whose report is a number of its own: local hashing and Hadamard response."""

from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.learning._answer_scores import PartScores, SupportScores
from skldp.mechanisms._categorical.local_hashing import support_of_others
from skldp.mechanisms._category_laws import HadamardLaw, HashingLaw
from skldp.mechanisms._odds import TWO_64

__all__ = ["SignScores", "hashing_scores"]

_Floats = npt.NDArray[np.float64]
_Answers = npt.NDArray[np.unsignedinteger[Any]]


def hashing_scores(law: HashingLaw) -> SupportScores:
    """The scores of the codes of local hashing: an answer supports those that its hash function takes to its bucket.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning._report_scores import hashing_scores
    >>> from skldp.mechanisms import LocalHashing, integer_law
    >>> hashing_scores(integer_law(LocalHashing(1.0, 50))).n_parts
    50
    """
    g, keep = law.n_buckets, TWO_64 - (law.n_buckets - 1) * law.other_count

    def supports(answers: _Answers, code: int) -> npt.NDArray[np.bool_]:
        hashes, buckets = np.divmod(answers.astype(np.int64), g)
        hashes, own = hashes + 1, np.zeros(len(answers), dtype=np.int64)
        while code:
            own += hashes % g * (code % g)
            hashes, code = hashes // g, code // g
        return np.asarray(own % g == buckets)

    def held(answers: _Answers, weights: _Floats) -> _Floats:
        # Of equal answers once.
        different, place = np.unique(answers, return_inverse=True)
        summed = np.bincount(place.reshape(-1), weights, len(different))
        return np.array([summed[supports(different, code)].sum() for code in range(law.n_codes)])

    q = support_of_others(keep / TWO_64, law.other_count / TWO_64, g, law.n_codes)
    return SupportScores(law.n_codes, keep / TWO_64, q, supports, held)


class SignScores(PartScores):
    """Of Hadamard response: the sign of an answer in a code's row, which is 0 on average for any other code.

    Parameters
    ----------
    law : HadamardLaw

    Raises
    ------
    ValueError
        If the answers do not depend on the code.
    """

    def __init__(self, law: HadamardLaw) -> None:
        own = law.block_size // 2
        held = (TWO_64 - law.miss_count) * (law.n_answers - own) - law.miss_count * own
        if not held:
            raise ValueError("Answers must depend on the category. Got a law of epsilon 0 instead.")
        self.law, self.gain = law, held / (TWO_64 * (law.n_answers - own))
        self.high = np.full(law.n_codes, 1 / self.gain)
        self.low = -self.high

    def scores(self, answers: _Answers, part: int) -> _Floats:
        """The scores of one code: 0 for answers of other blocks."""
        size = self.law.block_size
        block, row = divmod(part, size - 1)
        blocks, columns = np.divmod(answers.astype(np.int64), size)
        common = columns & (row + 1)
        for shift in (16, 8, 4, 2, 1):
            common ^= common >> shift
        return np.asarray(np.where(blocks == block, 1.0 - 2.0 * (common & 1), 0.0) / self.gain)

    def sums(self, answers: _Answers, weights: _Floats) -> tuple[_Floats, _Floats]:
        """The sums of all codes."""
        different, place = np.unique(answers, return_inverse=True)
        summed = np.bincount(place.reshape(-1), weights, len(different))
        each = [self.scores(different, code) for code in range(self.law.n_codes)]
        return np.array([one @ summed for one in each]), np.array([one**2 @ summed for one in each])
