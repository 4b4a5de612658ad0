"""The theory figures of the BitRand paper about single bits and labels, as tables with the exact epsilon beside.

Every table has a column ``exact_epsilon``: the exact worst-case loss of one whole record (or one label) that goes with
its row, over all codes. Where a baseline's two error probabilities differ, its q is their mean.
"""

from collections.abc import Iterable

import bit_laws
from bit_laws import baseline_laws, error_probabilities, exact_epsilon, top_k_means
from theory_table import TheoryTable

from skldp.mechanisms.bits._flip_laws import (
    bitrand_law,
    latent_corrected_ratio,
    latent_laws,
    ome_corrected_ratio,
    ome_laws,
)
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse

__all__ = [
    "bit_errors",
    "bit_flips",
    "bit_flips_over_bits",
    "bit_flips_over_features",
    "corrected_ratios",
    "label_flips",
]


def bit_flips(epsilons: Iterable[float] = (0.1, 1.0, 2.0), *, n_features: int = 1000, n_bits: int = 10) -> TheoryTable:
    """Tabulate how likely each bit is to flip, alone and on average over the first bits (Figures 4 and 12).

    Parameters
    ----------
    epsilons : iterable of float, default=(0.1, 1.0, 2.0)
        Stated, natural log. LATENT and OME run at the budget whose corrected level this is.
    n_features, n_bits : int
        r and l.

    Returns
    -------
    TheoryTable
        Columns mechanism, epsilon, bit, q, q_top_k, exact_epsilon.

    Notes
    -----
    The paper divides the sum of k + 1 probabilities by k, which has no value at k = 0; here it is their mean.

    References
    ----------
    BitRand, Figures 4 and 12.

    Examples
    --------
    >>> from theory_figures import bit_flips
    >>> table = bit_flips([1.0], n_features=768)
    >>> [float(q) for q in table.columns["q"][:3].round(3)], round(float(table.columns["exact_epsilon"][0]))
    ([0.294, 0.315, 0.337], 3311)
    """
    rows = []
    for epsilon in epsilons:
        for name, laws in baseline_laws(epsilon, n_features, n_bits).items():
            q, exact = error_probabilities(laws), exact_epsilon(laws, n_features)
            means = top_k_means(q)
            rows += [(name, epsilon, bit, q[bit], means[bit], exact) for bit in range(n_bits)]
    return TheoryTable.of_rows(
        "Figures 4 and 12: flip probability of each bit",
        "mechanism, epsilon, bit, q, q_top_k, exact_epsilon",
        rows,
        x="bit",
        y="q",
        lines=("mechanism",),
        panels="epsilon",
    )


def bit_errors(
    epsilons: Iterable[float] = (0.1, 1.0, 2.0), *, n_features: int = 1000, n_bits: int = 10, n_integer_bits: int = 5
) -> TheoryTable:
    r"""Tabulate the expected error that each bit adds, alone and on average over the first bits (Figure 11).

    Parameters
    ----------
    epsilons : iterable of float, default=(0.1, 1.0, 2.0)
    n_features, n_bits, n_integer_bits : int
        r, l and m.

    Returns
    -------
    TheoryTable
        Columns mechanism, epsilon, bit, error, error_top_k, exact_epsilon.

    Notes
    -----
    .. math:: \xi_i = q_i \Delta_i

    References
    ----------
    BitRand, Theorem 4 and Figure 11.

    Examples
    --------
    >>> from theory_figures import bit_errors
    >>> sorted(set(bit_errors([1.0]).columns["mechanism"].tolist()))
    ['LATENT corrected', 'OME corrected', 'f-RR', 'f-RR exact', 'f-RR without bit-awareness']
    """
    rows = []
    for epsilon in epsilons:
        for name, laws in baseline_laws(epsilon, n_features, n_bits, n_integer_bits).items():
            error, exact = bit_laws.bit_errors(laws, n_integer_bits), exact_epsilon(laws, n_features)
            means = top_k_means(error)
            rows += [(name, epsilon, bit, error[bit], means[bit], exact) for bit in range(n_bits)]
    return TheoryTable.of_rows(
        "Figure 11: expected error of each bit",
        "mechanism, epsilon, bit, error, error_top_k, exact_epsilon",
        rows,
        x="bit",
        y="error",
        lines=("mechanism",),
        panels="epsilon",
        log_y=True,
    )


def bit_flips_over_features(
    epsilons: Iterable[float] = (0.1, 1.0, 2.0),
    *,
    n_features: Iterable[int] = (10, 100, 1000, 10_000),
    n_bits: int = 10,
    bits: Iterable[int] = (0, 2, 5, 9),
) -> TheoryTable:
    """Tabulate BitRand's flip probabilities over the number of features (Figures 5 and 13).

    Parameters
    ----------
    epsilons : iterable of float, default=(0.1, 1.0, 2.0)
    n_features : iterable of int, default=(10, 100, 1000, 10000)
        r.
    n_bits : int, default=10
        l. The paper also draws 5, 20, 100 and 1000.
    bits : iterable of int, default=(0, 2, 5, 9)
        The bits to show.

    Returns
    -------
    TheoryTable
        Columns epsilon, n_features, bit, q, exact_epsilon.

    Notes
    -----
    The probabilities hardly depend on r, as the paper says. The exact epsilon of a record therefore grows in
    proportion to r: the privacy is not "dimension-elastic".

    References
    ----------
    BitRand, Figures 5 and 13.

    Examples
    --------
    >>> from theory_figures import bit_flips_over_features
    >>> table = bit_flips_over_features([1.0], n_features=[100, 10_000], bits=[0])
    >>> [float(q) for q in table.columns["q"].round(3)], [round(float(e)) for e in table.columns["exact_epsilon"]]
    ([0.294, 0.294], [431, 43116])
    """
    rows = []
    for epsilon in epsilons:
        for r in n_features:
            laws = (bitrand_law(epsilon, r, n_bits),)
            q, exact = error_probabilities(laws), exact_epsilon(laws, r)
            rows += [(epsilon, r, bit, q[bit], exact) for bit in bits]
    return TheoryTable.of_rows(
        "Figures 5 and 13: flip probability over the number of features",
        "epsilon, n_features, bit, q, exact_epsilon",
        rows,
        x="n_features",
        y="q",
        lines=("bit",),
        panels="epsilon",
        log_x=True,
    )


def bit_flips_over_bits(
    epsilons: Iterable[float] = (0.1, 1.0, 2.0),
    *,
    n_features: int = 1000,
    n_bits: Iterable[int] = (5, 10, 20, 100, 1000),
) -> TheoryTable:
    """Tabulate BitRand's flip probabilities over the number of bits, at fixed relative places (Figures 6 and 14).

    Parameters
    ----------
    epsilons : iterable of float, default=(0.1, 1.0, 2.0)
    n_features : int, default=1000
        r. The paper also draws 10, 100 and 10,000.
    n_bits : iterable of int, default=(5, 10, 20, 100, 1000)
        l.

    Returns
    -------
    TheoryTable
        Columns epsilon, n_bits, place, q, exact_epsilon; place is "sign", "last integer bit" (m = l // 2) or "last".

    References
    ----------
    BitRand, Figures 6 and 14.

    Examples
    --------
    >>> from theory_figures import bit_flips_over_bits
    >>> table = bit_flips_over_bits([1.0], n_bits=[10, 1000])
    >>> [float(q) for q in table.columns["q"].round(2)]
    [0.29, 0.41, 0.51, 0.28, 0.39, 0.52]
    """
    rows = []
    for epsilon in epsilons:
        for length in n_bits:
            laws = (bitrand_law(epsilon, n_features, length),)
            q, exact = error_probabilities(laws), exact_epsilon(laws, n_features)
            places = {"sign": 0, "last integer bit": length // 2, "last": length - 1}
            rows += [(epsilon, length, place, q[bit], exact) for place, bit in places.items()]
    return TheoryTable.of_rows(
        "Figures 6 and 14: flip probability over the number of bits",
        "epsilon, n_bits, place, q, exact_epsilon",
        rows,
        x="n_bits",
        y="q",
        lines=("place",),
        panels="epsilon",
        log_x=True,
    )


def label_flips(
    epsilons: Iterable[float] = (0.1, 1.0, 2.5, 5.0), *, n_classes: Iterable[int] = (2, 5, 10, 100, 1000)
) -> TheoryTable:
    """Tabulate how likely label randomized response is to change a label, over the number of classes (Figure 7).

    Parameters
    ----------
    epsilons : iterable of float, default=(0.1, 1.0, 2.5, 5.0)
    n_classes : iterable of int, default=(2, 5, 10, 100, 1000)
        C.

    Returns
    -------
    TheoryTable
        Columns epsilon, n_classes, q, exact_epsilon.

    References
    ----------
    BitRand, Equation 3, Theorem 3 and Figure 7.

    Examples
    --------
    >>> from theory_figures import label_flips
    >>> [float(q) for q in label_flips([1.0], n_classes=[2, 100]).columns["q"].round(3)]
    [0.269, 0.973]
    """
    rows = []
    for epsilon in epsilons:
        for n in n_classes:
            law = RandomizedResponse(epsilon, n)
            rows.append((epsilon, n, 1 - law.p, law.exact_epsilon))
    return TheoryTable.of_rows(
        "Figure 7: probability of a false label",
        "epsilon, n_classes, q, exact_epsilon",
        rows,
        x="n_classes",
        y="q",
        lines=("epsilon",),
        log_x=True,
    )


def corrected_ratios(
    epsilon: float = 0.1,
    *,
    n_features: Iterable[int] = (10, 100, 1000, 10_000),
    n_bits: Iterable[int] = (10,),
    latent_alpha: float = 7.0,
    ome_alpha: float = 100.0,
) -> TheoryTable:
    """Tabulate what the paper calls corrected, over the stated epsilon, for LATENT and OME (Figure 9).

    Parameters
    ----------
    epsilon : float, default=0.1
    n_features, n_bits : iterable of int
        Every combination is a row. Figure 9a varies the first, 9b the second (5, 10, 20, 100, 1000 at r = 1000).
    latent_alpha, ome_alpha : float

    Returns
    -------
    TheoryTable
        Columns mechanism, n_features, n_bits, ratio, magnitude, exact_ratio, exact_epsilon. Ratio is Theorem 5's or 6's
        as printed, with its sign; exact_ratio is exact_epsilon over the stated one.

    Notes
    -----
    Theorem 6's ratio is negative for alpha > 1, which no privacy loss can be; the paper plots its magnitude.

    References
    ----------
    BitRand, Theorems 5 and 6 and Figure 9.

    Examples
    --------
    >>> from theory_figures import corrected_ratios
    >>> table = corrected_ratios(n_features=[1000])
    >>> [f"{ratio:.3g}" for ratio in table.columns["ratio"]], [f"{ratio:.3g}" for ratio in table.columns["exact_ratio"]]
    (['4.57', '-4.6e+07'], ['0.875', '6.9e+05'])
    """
    n_features, n_bits, rows = list(n_features), list(n_bits), []
    for r in n_features:
        for n in n_bits:
            share = epsilon / (r * n)
            exact = exact_epsilon(latent_laws(share, n, latent_alpha), r)
            ratio = latent_corrected_ratio(share, latent_alpha)
            rows.append(("LATENT", r, n, ratio, abs(ratio), exact / epsilon, exact))
            exact = exact_epsilon(ome_laws(share, n, ome_alpha), r)
            ratio = ome_corrected_ratio(epsilon, r * n, ome_alpha)
            rows.append(("OME", r, n, ratio, abs(ratio), exact / epsilon, exact))
    over_features = len(set(n_features)) > 1
    return TheoryTable.of_rows(
        "Figure 9: corrected over stated epsilon",
        "mechanism, n_features, n_bits, ratio, magnitude, exact_ratio, exact_epsilon",
        rows,
        x="n_features" if over_features else "n_bits",
        y="magnitude",
        lines=("mechanism", "n_bits") if over_features and len(set(n_bits)) > 1 else ("mechanism",),
        log_x=True,
        log_y=True,
    )
