"""The computed tables of the pages. Each function gives a header and rows of text."""

import math
import re
import tomllib
import warnings
from pathlib import Path

import numpy as np
from bit_laws import baseline_laws, error_probabilities
from bit_laws import expected_error as expected_error_bound
from theory_errors import expected_errors, mean_errors
from theory_figures import bit_flips, corrected_ratios

from skldp import BitRandTransformer
from skldp.exceptions import PrivacyGuaranteeWarning
from skldp.mechanisms import FixedPoint, projected_dimension
from skldp.mechanisms.vector._projection import default_width, gordon_delta
from skldp.papers import LabelLaplace
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, make_named


def suspicion():
    """How far a release can move a suspicion of one in ten, in either direction."""
    rows = []
    for epsilon in (0.5, 1, 2, 4, 10):
        odds = math.exp(epsilon) / 9
        rows.append([f"{epsilon:g}", f"{1 / (1 + 9 * math.exp(epsilon)):.3g}", f"{odds / (1 + odds):.4f}"])
    return ["epsilon", "no lower than", "no higher than"], rows


def suspicion_of_one_in_a_thousand():
    """Return the largest probability after a release of what had one in a thousand before."""
    rows = [[f"{epsilon:g}", f"{1 / (1 + 999 * math.exp(-epsilon)):.1%}"] for epsilon in (0.5, 1, 2, 5, 10)]
    return ["epsilon", "at most"], rows


def bitrand():
    """Stated and exact epsilon of BitRand as published, 768 features of 10 bits."""
    rows = []
    for epsilon in (0.1, 1.0, 2.0, 5.0, 10.0):
        level = _published(epsilon, 768)
        rows.append([f"{epsilon:g}", f"{level:,.0f}", f"{level / 768:.2f}"])
    return ["stated", "exact, per record", "exact, per feature"], rows


def bitrand_flips():
    """Flip probability of every bit, as published and with the exact calibration."""
    table = bit_flips([1.0], n_features=1000)
    header = ["mechanism", "exact epsilon", *(f"bit {bit}" for bit in range(10))]
    rows = []
    for name in dict.fromkeys(table.columns["mechanism"].tolist()):
        part = table.where(mechanism=name).columns
        rows.append([name, _number(part["exact_epsilon"][0]), *(f"{q:.3f}" for q in part["q"])])
        if name.startswith("LATENT"):
            (latent,) = baseline_laws(1.0, 1000, 10)[name]
            rows.append(
                ["its q_X (Eq. 27), a 0 alone", rows[-1][1], *(f"{q * 2.0**-64:.3f}" for q in latent.from_zero)]
            )
    return header, rows


def expected_error():
    """Figure 3: expected error of one feature beside that of a constant 0."""
    epsilons = (0.1, 1.0, 2.0, 5.0, 10.0)
    table = expected_errors(epsilons)
    names = list(dict.fromkeys(table.columns["mechanism"].tolist()))
    header = ["mechanism", *(f"stated {epsilon:g}" for epsilon in epsilons), "exact, at stated 1"]
    rows = []
    for name in names:
        part = table.where(mechanism=name).columns
        at_one = float(part["exact_epsilon"][epsilons.index(1.0)])
        rows.append([name, *(_number(error) for error in part["error"]), _number(at_one)])
    return header, rows


def mean_error():
    """Figure 10: error of a mean over 1,000 people, at stated epsilon 1."""
    table = mean_errors([1.0])
    names = list(dict.fromkeys(table.columns["mechanism"].tolist()))
    rows = []
    for name in names:
        part = table.where(mechanism=name).columns
        rows.append([name, *(f"{error:.3g}" for error in part["rmse"]), _number(part["exact_epsilon"][0])])
    return ["mechanism", "RMSE, data around 0", "RMSE, data around a / 2", "exact epsilon"], rows


def corrections():
    """Figure 9: what the paper calls corrected, over the stated epsilon, and the exact ratio."""
    over_features = corrected_ratios(0.1)
    over_bits = corrected_ratios(0.1, n_features=[1000], n_bits=[5, 20, 100, 1000])
    rows = []
    for name in ("LATENT", "OME"):
        for table in (over_features, over_bits):
            columns = table.where(mechanism=name).columns
            for r, bits, ratio, exact in zip(
                columns["n_features"], columns["n_bits"], columns["ratio"], columns["exact_ratio"], strict=True
            ):
                rows.append([name, f"{r:,}", f"{bits:,}", f"{ratio:.4g}", f"{exact:.4g}"])
    return ["mechanism", "r", "l", "corrected / stated, as printed", "exact / stated"], rows


def gordon():
    """Failure probability that Gordon's theorem proves for the paper's own dimensions."""
    d, delta = 300, 1e-6
    width = default_width(d)
    rows = []
    for beta in (0.93, 0.66, 0.468):
        m = projected_dimension(d, beta, delta)
        proved, whole = gordon_delta(m, beta, width), gordon_delta(m, beta, math.sqrt(d))
        rows.append([f"{beta:g}", str(m), f"{delta:g}", f"{proved:.2g}", f"{whole:.2g}"])
    header = ["beta", "m", "delta stated", "delta proved, directions of width sqrt(log2 d)", "proved, all directions"]
    return header, rows


def even_duchi():
    """Exact epsilon of Duchi's mechanism for an even number of values with the halves as Wang et al. print them."""
    rows = []
    for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0):
        rows.append([f"{epsilon:g}", f"{_level_of_overlapping_halves(4, epsilon):.4f}", f"{epsilon:g}"])
    return ["asked", "halves with ties in both (Wang et al.)", "ties in one half (here)"], rows


def theorem_4():
    """Theorem 4's sum beside the expected error itself, by enumerating every mask and every code."""
    encoding = FixedPoint(10, 5)
    codes = np.arange(1024, dtype=np.uint64)
    bits = (codes[:, None] >> np.arange(9, -1, -1, dtype=np.uint64)) & np.uint64(1)
    values = encoding.decode(codes)
    rows = []
    for epsilon in (0.1, 1.0, 2.0, 5.0, 10.0):
        laws = baseline_laws(epsilon, 1000, 10)["f-RR"]
        q = error_probabilities(laws)
        masks = np.where(bits == 1, q, 1 - q).prod(axis=1)
        true = sum(masks[mask] * np.abs(values[codes ^ mask] - values).mean() for mask in codes)
        rows.append([f"{epsilon:g}", f"{expected_error_bound(laws, 5):.3g}", f"{true:.3g}"])
    return ["stated", "sum of Theorem 4", "expected error, by enumeration"], rows


def label_laplace():
    """Exact epsilon of Label-Laplace."""
    rows = []
    for epsilon in (0.5, 1.0, 2.5, 5.0):
        exact = [LabelLaplace(epsilon, classes=range(n)).fit([0]).privacy_guarantee_.epsilon for n in (2, 4, 10, 100)]
        rows.append([f"{epsilon:g}", *(f"{value:.3f}" for value in exact)])
    return ["stated", "2 classes", "4 classes", "10 classes", "100 classes"], rows


def guarantees():
    """Stated and exact epsilon of every named mechanism, for a record of 64 features or a label of 10 classes."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        for name, (estimator, fixed) in (FEATURE_MECHANISMS | LABEL_MECHANISMS).items():
            X = np.arange(10) if name in LABEL_MECHANISMS else np.zeros((1, 64))
            found = make_named(name, classes=np.arange(10)).fit(X).privacy_guarantee_
            call = f"{estimator.__name__}({', '.join(f'{key}={value!r}' for key, value in fixed.items())})"
            delta = f", delta {found.delta:.3g}" if found.delta else ""
            rows.append([f"``{name}``", f"``{call}``", f"{found.epsilon:.4g}{delta}", found.unit])
    return ["name", "estimator", "exact, at a stated 1", "per"], rows


def _published(epsilon, n_features):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        release = BitRandTransformer(epsilon, n_bits=10, n_integer_bits=5, bounds=(-32, 32))
        return release.fit([[0.0] * n_features]).privacy_guarantee_.epsilon


def _level_of_overlapping_halves(d, epsilon):
    """By enumeration: uniform over {s.v >= 0} with the larger chance, else over {s.v <= 0}."""
    signs = np.array(np.meshgrid(*[[-1, 1]] * d)).reshape(d, -1).T
    products = signs @ signs.T
    chance = 1 / (1 + math.exp(-epsilon))
    above, below = products >= 0, products <= 0
    law = chance * above / above.sum(axis=1, keepdims=True) + (1 - chance) * below / below.sum(axis=1, keepdims=True)
    return float(np.log(law.max(axis=0) / law.min(axis=0)).max())


def _number(value):
    if value == 0:
        return "0"
    if value < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.2g}"


def extras():
    """Optional packages that a user may want, from the package's own metadata."""
    purposes = {
        "study": "the command line, studies and plots",
        "arrow": "files of Arrow and Parquet",
        "fast": "compiled steps of BitRand, LATENT and OME",
        "postgres": "a ledger that several hosts share",
        "flower": "federated training with Flower",
        "dask": "releases of dask arrays and dataframes",
        "test": "the tests",
        "docs": "this site",
    }
    with (Path(__file__).parents[1] / "pyproject.toml").open("rb") as file:
        declared = tomllib.load(file)["project"]["optional-dependencies"]
    rows = []
    for name, purpose in purposes.items():
        packages = ", ".join(re.split("[><=]", package)[0] for package in declared[name])
        rows.append([f"``{name}``", purpose, packages])
    return ["extra", "for", "packages"], rows
