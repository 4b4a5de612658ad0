r"""How many dimensions to project to, and what Gordon's theorem promises for so many."""

import math

from skldp.mechanisms.vector.gaussian_width import default_width
from skldp.mechanisms.vector.parameters import check_dimension, check_fraction

__all__ = ["gordon_delta", "projected_dimension"]


def projected_dimension(d: int, beta: float, delta: float, width: float | None = None) -> int:
    r"""Number of dimensions m to project to.

    Parameters
    ----------
    d : int
        Number of features.
    beta : float
        Distortion, in (0, 1).
    delta : float
        In (0, 1).
    width : float, default=None
        Gaussian width of the vectors; None is :func:`~skldp.mechanisms.vector.gaussian_width.default_width`.

    Returns
    -------
    int
        From 1 to d.

    Notes
    -----
    .. math:: m = \operatorname{round}\Bigl(\frac{(\omega + \sqrt{\ln(1 / \delta)})^2}{\beta^2}\Bigr)

    The paper's :math:`\Omega(\cdot)` hides a constant; 1 gives its own dimensions.

    References
    ----------
    Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Algorithm 1.

    Examples
    --------
    >>> from skldp.mechanisms.vector.dimension import projected_dimension
    >>> [projected_dimension(300, beta, 1e-6) for beta in (0.93, 0.66, 0.468)]
    [50, 100, 198]
    """
    check_dimension(d, least=1)
    check_fraction("beta", beta)
    check_fraction("delta", delta)
    width = default_width(d) if width is None else width
    if not 0 <= width < math.inf:
        raise ValueError(f"The Gaussian width must be a finite number >= 0. Got {width!r} instead.")
    return int(min(max(round((width + math.sqrt(-math.log(delta))) ** 2 / beta**2), 1), d))


def gordon_delta(m: int, beta: float, width: float) -> float:
    r"""Probability, over the draw of a Gaussian Phi, that it stretches some distance by more than 1 + beta.

    Parameters
    ----------
    m : int
    beta : float
    width : float
        Gaussian width of the set of DIRECTIONS of the differences of two records.

    Returns
    -------
    float
        An upper bound; 1 where the theorem says nothing.

    Notes
    -----
    Gordon's inequality and Gaussian concentration give

    .. math:: P\Bigl(\sup_{u \in S} \|\Phi u\| > 1 + \beta\Bigr) \le e^{-(\beta \sqrt m - \omega(S))^2 / 2},

    so that m of :func:`projected_dimension` has the failure probability :math:`\sqrt\delta`, not :math:`\delta`.
    Lemma 4 of the paper takes for S the set of differences itself. The width of their directions can be much larger:
    for vectors in an open set, however small, S is the whole sphere and its width about :math:`\sqrt d`.

    Examples
    --------
    >>> from skldp.mechanisms.vector.dimension import gordon_delta
    >>> round(gordon_delta(50, 0.93, 2.87), 5)
    0.00104
    """
    margin = beta * math.sqrt(m) - width
    return math.exp(-margin * margin / 2) if margin > 0 else 1.0
