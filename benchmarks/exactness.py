"""How exact the numeric mechanisms are: epsilon, bias and variance of what is really sampled.

For each mechanism and epsilon, from the released law:

- the exact epsilon less the asked one, as a part of the asked one (never above 0, at least -1e-6);
- the largest bias over inputs, in standard deviations of the answer, from exact fractions;
- the largest difference, as a part, of the exact variance and the papers' formula;
- the largest difference, as a part, of `variance` and the variance of the enumerated law, on a coarse lattice where the
  law has too many outputs to list.

Run ``python benchmarks/exactness.py``.
"""

import math
from fractions import Fraction

import numpy as np

from skldp.mechanisms._numeric.additive import Gaussian, Laplace, analytic_gaussian_sigma
from skldp.mechanisms._numeric.duchi import Duchi, DuchiVector
from skldp.mechanisms._numeric.hybrid import HYBRID_THRESHOLD, Hybrid, HybridThreeOutputs
from skldp.mechanisms._numeric.piecewise import Piecewise, piecewise_shape
from skldp.mechanisms._numeric.three_outputs import ThreeOutputs, three_outputs_zero_probability

EPSILONS = (0.01, 0.1, 0.5, 0.62, 1.0, 2.0, 4.0, 8.0)
INPUTS = np.array([-1.0, -0.83, -1 / 3, -1e-12, 0.0, 0.25, math.sqrt(0.5), 1.0])
N_VALUES = 5
DELTA = 1e-5
MECHANISMS = {
    "duchi": (Duchi, Duchi),
    "three_outputs": (ThreeOutputs, ThreeOutputs),
    "piecewise": (Piecewise, lambda eps: Piecewise(eps, "pm", 7)),
    "piecewise_sub": (lambda eps: Piecewise(eps, "sub"), lambda eps: Piecewise(eps, "sub", 7)),
    "piecewise_opt": (lambda eps: Piecewise(eps, "opt"), lambda eps: Piecewise(eps, "opt", 7)),
    "hybrid": (Hybrid, lambda eps: Hybrid(eps, 7)),
    "hybrid_tp": (HybridThreeOutputs, lambda eps: HybridThreeOutputs(eps, 7)),
    f"duchi_vector (d={N_VALUES})": (lambda eps: DuchiVector(eps, N_VALUES), lambda eps: DuchiVector(eps, N_VALUES)),
    "laplace": (Laplace, lambda eps: Laplace(eps, 4)),
    f"gaussian (delta={DELTA:g})": (
        lambda eps: Gaussian(eps, DELTA),
        lambda eps: Gaussian(eps, DELTA, lattice_bits=11),
    ),
}


def paper_variance(name, mechanism, x):
    """The variance as the papers print it."""
    eps, x = mechanism.epsilon, np.abs(x)
    odds = math.exp(eps)

    def piecewise(variant):
        t = piecewise_shape(eps, variant)
        return (t + 1) * x**2 / (odds - 1) + (t + odds) * ((t + 1) ** 3 + odds - 1) / (3 * t**2 * (odds - 1) ** 2)

    def three_outputs():
        a = three_outputs_zero_probability(eps)
        c = odds * (odds + 1) / ((odds - 1) * (odds - a))
        return c**2 * (1 - a + a * (1 - 1 / odds) * x) - x**2

    duchi = ((odds + 1) / (odds - 1)) ** 2 - x**2
    if name.startswith("duchi_vector"):
        d, agree = mechanism.n_values, 2 ** (mechanism.n_values - 1)
        return ((2**d + agree * (odds - 1)) / (math.comb(d - 1, d // 2) * (odds - 1))) ** 2 - x**2
    if name.startswith("gaussian"):
        return np.full(len(x), analytic_gaussian_sigma(eps, mechanism.delta, 2.0) ** 2)
    if name.startswith("piecewise"):
        return piecewise(mechanism.variant)
    if name == "hybrid":
        part = 1 - math.exp(-eps / 2) if eps > HYBRID_THRESHOLD else 0.0
        return part * piecewise("pm") + (1 - part) * duchi
    if name == "hybrid_tp":
        part = mechanism.piecewise_probability
        return part * piecewise("sub") + (1 - part) * three_outputs()
    if name == "laplace":
        return np.full(len(x), 8 / eps**2)
    if name == "three_outputs":
        return three_outputs()
    return duchi


def enumerated_variance(mechanism, x):
    """The variance of the listed law, for one input (the same for every value of a joint mechanism)."""
    if hasattr(mechanism, "output_law"):
        outputs, weights = mechanism.output_law(np.full(N_VALUES, x) if mechanism.n_outputs > 1 else float(x))
        values = [Fraction(value) for value in (outputs[:, 0] if outputs.ndim == 2 else outputs).tolist()]
        total = sum(weights)
        mean = sum(value * weight for value, weight in zip(values, weights, strict=True)) / total
        return float(sum(value**2 * weight for value, weight in zip(values, weights, strict=True)) / total - mean**2)
    reach = math.ceil((1 + 45 * math.sqrt(mechanism.worst_variance)) / mechanism.step)
    outputs = np.arange(-reach, reach + 1) * mechanism.step
    return float(np.exp(mechanism.log_likelihood(outputs, x)) @ (outputs - x) ** 2)


def main():
    print(f"{'mechanism':<24}{'epsilon':>8}{'eps part':>11}{'bias / sd':>11}{'vs paper':>11}{'vs listed':>11}")
    worst = {"eps": 0.0, "bias": 0.0, "paper": 0.0, "listed": 0.0}
    for name, (make, make_coarse) in MECHANISMS.items():
        for eps in EPSILONS:
            mechanism, coarse = make(eps), make_coarse(eps)
            exact = mechanism.guarantee().epsilon / eps - 1
            variance = mechanism.variance(INPUTS)
            bias = np.abs(mechanism.bias(INPUTS) / np.sqrt(np.maximum(variance, 1e-300))).max()
            paper = np.abs(variance / paper_variance(name, mechanism, INPUTS) - 1).max()
            listed = max(abs(float(coarse.variance(x)) / enumerated_variance(coarse, x) - 1) for x in INPUTS)
            print(f"{name:<24}{eps:>8g}{exact:>11.1e}{bias:>11.1e}{paper:>11.1e}{listed:>11.1e}")
            assert -1e-6 <= exact <= 0
            for key, value in (("eps", -exact), ("bias", bias), ("paper", paper), ("listed", listed)):
                worst[key] = max(worst[key], value)
    print(
        f"\nlargest: epsilon below the asked one by {worst['eps']:.1e} of it, bias {worst['bias']:.1e} standard "
        f"deviations, variance off the paper's by {worst['paper']:.1e}, off the listed law's by {worst['listed']:.1e}"
    )


if __name__ == "__main__":
    main()
