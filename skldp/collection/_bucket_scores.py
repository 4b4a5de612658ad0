"""Scores of dBitFlip: bucket frequencies of a number from the bits of a few sampled buckets."""

import numpy as np
import numpy.typing as npt

from skldp.collection._answer_scores import Answers, Floats, PartScores, whole_answers
from skldp.laws._longitudinal_laws import LongitudinalHistogramLaw


class BucketScores(PartScores):
    """Scores of sampled buckets: the score of each sampled bit, and 0 for all other buckets.

    Shapes: `combine` (n_sums, n_buckets); `response` (n_buckets, 2 * n_buckets).
    """

    def __init__(self, law: LongitudinalHistogramLaw, combine: Floats | None = None) -> None:
        self._law = law
        self._combine = np.eye(law.n_buckets) if combine is None else combine
        self._of_bits = np.array([law.score(0), law.score(1)])
        # The number of sampled buckets is fixed.
        each = np.sort(self._combine[:, :, None] * self._of_bits, axis=2)
        least, most = np.sort(each[:, :, 0], axis=1), np.sort(each[:, :, 1], axis=1)
        self.low, self.high = least[:, : law.n_chosen].sum(axis=1), most[:, -law.n_chosen :].sum(axis=1)

    @property
    def response(self) -> Floats:
        """Return the output probabilities of each bucket, for an unset and a set bit."""
        n, (own, other) = self._law.n_buckets, self._law.support
        chances = np.broadcast_to(np.array([1 - other, other]), (n, n, 2)).copy()
        chances[np.arange(n), np.arange(n)] = 1 - own, own
        return chances.reshape(n, 2 * n) / n

    def combined(self, combine: Floats) -> "BucketScores":
        """Return the scores of sums of buckets, shape (n_sums, n_buckets)."""
        return BucketScores(self._law, combine)

    def counts(self, answers: Answers) -> Floats:
        """Count the bits of each cell; every bit of an answer counts."""
        return np.bincount(self._cells(answers).reshape(-1), minlength=2 * self._law.n_buckets).astype(np.float64)

    def scores(self, answers: Answers, part: int) -> Floats:
        """Return the scores of one sum of buckets."""
        return self._scores(self._cells(answers), part)

    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        """Return the sums of all sums of buckets."""
        cells = self._cells(answers)
        found = [self._scores(cells, part) for part in range(self.n_parts)]
        return np.array([weights @ one for one in found]), np.array([weights @ one**2 for one in found])

    def _scores(self, cells: npt.NDArray[np.int64], part: int) -> Floats:
        return np.asarray((self._combine[part][cells // 2] * self._of_bits[cells % 2]).sum(axis=1))

    def _cells(self, answers: Answers) -> npt.NDArray[np.int64]:
        """Return twice the number plus the bit of each sampled bucket, shape (n, n_chosen)."""
        different, place = whole_answers(answers)
        told = [[2 * bucket + bit for bucket, bit in self._law.bits_of(one)] for one in different]
        return np.array(told, dtype=np.int64).reshape(-1, self._law.n_chosen)[place]
