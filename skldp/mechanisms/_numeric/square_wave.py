r"""The square wave: numbers released so that their whole distribution can be estimated well."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from skldp._arrays import as_numbers
from skldp._checks import check_whole
from skldp.mechanisms._law_of import integer_law
from skldp.mechanisms._number_laws import LatticeLaw
from skldp.mechanisms._numeric.distribution import (
    DistributionEstimate,
    lattice_response,
    likeliest_shares,
    quantile_knots,
)
from skldp.mechanisms._numeric.piecewise import Piecewise

__all__ = ["SquareWave"]


@dataclass(frozen=True)
class SquareWave(Piecewise):
    r"""One number in [-1, 1] answered with a number near it, or anywhere in a range: for distributions.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6. What exceeds 24 is not used.
    lattice_bits : int, default=24
        The outputs are up to 2^lattice_bits whole multiples of a power of two.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number of at least 1e-6, or `lattice_bits` not from 3 to 30.

    See Also
    --------
    Piecewise : The family.

    Notes
    -----
    For a number v in [0, 1], the paper's answer lies in :math:`[-b, 1 + b]`, with :math:`e^\varepsilon` times the
    density within b of v:

    .. math:: b = \frac{\varepsilon e^\varepsilon - e^\varepsilon + 1}
                       {2 e^\varepsilon (e^\varepsilon - 1 - \varepsilon)}

    This is the piecewise mechanism of shape :math:`t = 1 / (2 b)`, scaled: an interval of one length that moves from
    one end of the range to the other as the number does. It is sampled as that, on its lattice, with the same exact
    integers, and scaled so that its mean is the number: what is released serves for means and models as well.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Li and Škoric, "Estimating numerical distributions under local differential privacy",
    SIGMOD 2020, Section 5.2 for the wave and its b, Section 5.4 for the estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import SquareWave, noise_from
    >>> law = SquareWave(2.0)
    >>> released = law.release(np.full((1000, 1), 0.5), noise_from()).rows
    >>> found = law.estimate_distribution(released, n_bins=16)
    >>> found.shares.shape, round(float(found.shares.sum()), 9), bool(-1 <= found.quantile(0.5) <= 1)
    ((16,), 1.0, True)
    """

    variant: str = field(default="square_wave", init=False, repr=False)

    def estimate_distribution(self, released: npt.ArrayLike, *, n_bins: int | None = None) -> DistributionEstimate:
        """Estimate the likeliest distribution of the numbers, by expectation and maximisation.

        Parameters
        ----------
        released : array-like
            Released numbers, at least one.
        n_bins : int, default=None
            From 2 to 1,024. None follows from epsilon and the number of answers, so that bias vanishes as these grow.

        Returns
        -------
        DistributionEstimate
            Of the bounds -1 and 1.

        Raises
        ------
        ValueError
            If there is nothing, or something that this mechanism does not release.
        """
        law = integer_law(self)
        assert isinstance(law, LatticeLaw)
        cells = as_numbers(released, dtype=np.float64).reshape(-1) / self.step + law.n_cells // 2
        if not cells.size or not ((cells >= 0) & (cells < law.n_cells) & (cells == np.floor(cells))).all():
            raise ValueError("released must be what this mechanism releases, and at least one. Got something else.")
        knots = quantile_knots(law, cells.size)
        if n_bins is not None:
            check_whole("n_bins", n_bins, least=2, most=1024)
            knots = np.linspace(-1.0, 1.0, int(n_bins))
        starts, response = lattice_response(law, knots, spread=True)
        counts = np.histogram(cells, starts)[0].astype(np.float64)
        return DistributionEstimate.around(knots, likeliest_shares(counts, response), cells.size)
