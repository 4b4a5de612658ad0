"""What the bits of a few buckets that a person chose say of the bucket of a number: dBitFlip's histogram, as scores."""

import numpy as np
import numpy.typing as npt

from skldp.learning._answer_scores import Answers, Floats, PartScores, whole_answers
from skldp.mechanisms._longitudinal_laws import LongitudinalHistogramLaw

__all__ = ["BucketScores"]


class BucketScores(PartScores):
    """Of a law of chosen buckets: of each the score of its bit, and of all others 0.

    Parameters
    ----------
    law : LongitudinalHistogramLaw
    combine : ndarray of shape (n_sums, n_buckets), default=None
        Score these sums of buckets instead.

    Attributes
    ----------
    response : ndarray of shape (n_buckets, 2 * n_buckets)
        How likely any one of an answer's bits is of which bucket, and set or not, given the number's bucket.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning._bucket_scores import BucketScores
    >>> from skldp.mechanisms._longitudinal_laws import LongitudinalHistogramLaw
    >>> law = LongitudinalHistogramLaw(2, 2, 1, 2**62)
    >>> BucketScores(law).scores(np.array([1, 2], dtype=np.uint8), 0).tolist()
    [-0.5, 1.5]
    """

    def __init__(self, law: LongitudinalHistogramLaw, combine: Floats | None = None) -> None:
        self._law = law
        self._combine = np.eye(law.n_buckets) if combine is None else combine
        self._of_bits = np.array([law.score(0), law.score(1)])
        # At most, and at least, as many buckets are chosen as are.
        each = np.sort(self._combine[:, :, None] * self._of_bits, axis=2)
        least, most = np.sort(each[:, :, 0], axis=1), np.sort(each[:, :, 1], axis=1)
        self.low, self.high = least[:, : law.n_chosen].sum(axis=1), most[:, -law.n_chosen :].sum(axis=1)

    @property
    def response(self) -> Floats:
        """The chances of cells, of which each bucket has that of a bit which is not set, and that of one which is."""
        n, (own, other) = self._law.n_buckets, self._law.support
        chances = np.broadcast_to(np.array([1 - other, other]), (n, n, 2)).copy()
        chances[np.arange(n), np.arange(n)] = 1 - own, own
        return chances.reshape(n, 2 * n) / n

    def combined(self, combine: Floats) -> "BucketScores":
        """The scores of sums of buckets, shape (n_sums, n_buckets)."""
        return BucketScores(self._law, combine)

    def counts(self, answers: Answers) -> Floats:
        """How many bits each cell has. Bits of one answer count each on its own."""
        return np.bincount(self._cells(answers).reshape(-1), minlength=2 * self._law.n_buckets).astype(np.float64)

    def scores(self, answers: Answers, part: int) -> Floats:
        """The scores of one sum of buckets."""
        return self._scores(self._cells(answers), part)

    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        """The sums of all sums of buckets."""
        cells = self._cells(answers)
        found = [self._scores(cells, part) for part in range(self.n_parts)]
        return np.array([weights @ one for one in found]), np.array([weights @ one**2 for one in found])

    def _scores(self, cells: npt.NDArray[np.int64], part: int) -> Floats:
        return np.asarray((self._combine[part][cells // 2] * self._of_bits[cells % 2]).sum(axis=1))

    def _cells(self, answers: Answers) -> npt.NDArray[np.int64]:
        """Of each answer the chosen buckets, twice their number plus their bit, shape (n, n_chosen)."""
        different, place = whole_answers(answers)
        told = [[2 * bucket + bit for bucket, bit in self._law.told(one)] for one in different]
        return np.array(told, dtype=np.int64).reshape(-1, self._law.n_chosen)[place]
