r"""How far the mean of released products is off: what the release adds, and what the people themselves differ by."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skldp.learning._tasks import Task
from skldp.mechanisms._vector.privunit import PrivUnitBall

__all__ = ["ReleasedProducts"]


@dataclass(frozen=True)
class ReleasedProducts:
    r"""The law of the mean of what people release for one task of the form ``"products"``.

    A person's terms are :math:`v = (1, x)`, x being numbers whose mean is 0, and what the task makes of them is
    :math:`u = K v`, whose first number is a constant. The mean of the released products estimates
    :math:`M = E[v v^\top]`, and of it all that is asked for are numbers :math:`a^\top M b`.

    Parameters
    ----------
    task : Task
    n_people : int
    functionals : ndarray of shape (k, k)
        K, whose first row is 0 but for the first number.
    covariance : ndarray of shape (k - 1, k - 1)
        Of x: an estimate is enough.
    kurtosis : float, default=0.0
        The excess kurtosis of x in every direction over 3: 0 for normal people.
    cut : float, default=0.0
        What the radius cuts off at most, in units of the noise's standard error, which counts as an error more.

    Notes
    -----
    A release z of the vector p of products, in units of the radius, is a uniform point of a cap or its complement on a
    sphere that is known, about p lifted to it. So its second moments are known as well
    (:meth:`~skldp.mechanisms.PrivUnitBall.second_moments`): :math:`E[z z^\top \mid p] = \text{across}\, I +
    (\text{along} - \text{across})\, p p^\top`, and over all people

    .. math:: \operatorname{Cov} z = \text{across}\, I + (\text{along} - \text{across}) E[p p^\top] - E[p] E[p]^\top.

    Only :math:`E[p p^\top]`, the fourth moments of people, is not: it is taken as that of an elliptical law, whose
    products of four are those of a normal one and `kurtosis` times the same of x alone. It weighs little as long as
    the noise of the release is larger than what people differ by. The constant's own square is known, so that what is
    released of it is left out.

    References
    ----------
    Isserlis, "On a formula for the product-moment coefficient of any order of a normal frequency distribution",
    Biometrika, 1918. Muirhead, "Aspects of multivariate statistical theory", 1982, section 1.6, for elliptical laws.
    """

    task: Task
    n_people: int
    functionals: npt.NDArray[np.float64]
    covariance: npt.NDArray[np.float64]
    kurtosis: float = 0.0
    cut: float = 0.0

    def covariances(
        self,
        a: npt.NDArray[np.float64],
        b: npt.NDArray[np.float64],
        c: npt.NDArray[np.float64],
        d: npt.NDArray[np.float64],
    ) -> npt.NDArray[np.float64]:
        r"""Of the estimates of :math:`a^\top M b` and :math:`c^\top M d`.

        Parameters
        ----------
        a, b, c, d : ndarray of shape (..., k)
            Functionals of v, whose leading dimensions broadcast.

        Returns
        -------
        ndarray of shape (...)
        """
        along, across = PrivUnitBall(self.task.n_outputs, self.task.epsilon, 1.0).second_moments()
        a0, b0, c0, d0 = (one[..., 0] for one in (a, b, c, d))
        known = a0 * b0 * c0 * d0

        def centred(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            product: npt.NDArray[np.float64] = ((one[..., 1:] @ self.covariance) * other[..., 1:]).sum(axis=-1)
            return product

        ab, cd, ac, bd, ad, bc = (centred(*two) for two in ((a, b), (c, d), (a, c), (b, d), (a, d), (b, c)))
        of_people = (ac + a0 * c0) * (bd + b0 * d0) + (ad + a0 * d0) * (bc + b0 * c0) - 2 * known
        of_people = of_people + self.kurtosis * (ab * cd + ac * bd + ad * bc)
        # In the coordinates of the release, where the noise is the same in every direction.
        at = np.linalg.inv(self.functionals)
        a, b, c, d = (one @ at for one in (a, b, c, d))
        of_noise = ((a * c).sum(axis=-1) * (b * d).sum(axis=-1) + (a * d).sum(axis=-1) * (b * c).sum(axis=-1)) / 2
        of_noise = of_noise - a[..., 0] * b[..., 0] * c[..., 0] * d[..., 0]
        constant = self.functionals[0, 0] ** 2
        first = ab + a0 * b0 - constant * a[..., 0] * b[..., 0]
        second = cd + c0 * d0 - constant * c[..., 0] * d[..., 0]
        of_noise = of_noise * (1 + self.cut**2)
        total = self.task.radius**2 * across * of_noise + (along - across) * (of_people + first * second)
        result: npt.NDArray[np.float64] = (total - first * second) / self.n_people
        return result
