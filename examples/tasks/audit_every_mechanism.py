"""
Audit the epsilon of every mechanism
====================================

A guarantee is a claim about a program. An audit attacks the program: it releases two inputs many times, guesses
the input from the output, and computes a lower bound on epsilon from the number of right guesses. A bound above the
claimed epsilon refutes it; a bound near it shows that the claim is tight.
"""

# %%
# Every mechanism
# ---------------
# The inputs are corners of the declared domain, the worst pair of them found by a pilot. A bound is wrong with a
# probability of at most one in a thousand.

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skldp import (
    BitRandTransformer,
    CategoricalPrivatizer,
    LabelRR,
    MultivariateLaplacePrivatizer,
    NumericPrivatizer,
    PrivUnitTransformer,
    RandomProjectionPrivatizer,
)
from skldp.exceptions import PrivacyGuaranteeWarning
from skldp.papers import LabelLaplace, LabelLaplaceVector, LatentTransformer, OMETransformer
from skldp.study import audit_epsilon, audit_estimator

warnings.simplefilter("ignore", PrivacyGuaranteeWarning)

one, four, eight = np.zeros((1, 1)), np.zeros((1, 4)), np.eye(8)[:1]
words = [["red", "green", "blue"]]
numeric = ["duchi", "three_outputs", "piecewise", "piecewise_sub", "piecewise_opt", "hybrid", "hybrid_tp", "laplace"]
cases = [
    ("LabelRR, 2 classes", LabelRR(1.0, classes=[0, 1]), [0, 1]),
    ("LabelRR, 10 classes", LabelRR(1.0, classes=range(10)), [0, 1]),
    ("LabelRR with prior", LabelRR(2.0, classes=range(4), prior=[0.4, 0.3, 0.2, 0.1]), [0, 1]),
    ("LabelLaplace, 5 classes", LabelLaplace(1.0, classes=range(5)), [0, 1]),
    ("LabelLaplaceVector, 5 classes", LabelLaplaceVector(1.0, classes=range(5)), [0, 1]),
    *[
        (f"Categorical {name}", CategoricalPrivatizer(1.0, mechanism=name, categories=words), [["red"]])
        for name in ("krr", "sue", "oue")
    ],
    ("BitRand published, 1 feature", BitRandTransformer(1.0), one),
    ("BitRand published, 4 features", BitRandTransformer(1.0), four),
    ("BitRand exact, 4 features", BitRandTransformer(4.0, calibration="exact"), four),
    ("BitRand unbiased, 1 feature", BitRandTransformer(1.0, calibration="exact", debias=True), one),
    ("LATENT, 2 bits", LatentTransformer(2.0, n_bits=2), one),
    ("OME, 2 bits", OMETransformer(2.0, n_bits=2), one),
    *[(f"{name}, 4 features", NumericPrivatizer(1.0, mechanism=name), four) for name in numeric],
    ("duchi_vector, 4 features", NumericPrivatizer(1.0, mechanism="duchi_vector"), four),
    ("gaussian, 4 features", NumericPrivatizer(1.0, mechanism="gaussian", delta=1e-3), four),
    ("MultivariateLaplace, 8-d", MultivariateLaplacePrivatizer(1.0), eight),
    ("RandomProjection, 8-d", RandomProjectionPrivatizer(1.0, sensitivity="spectral", n_components=4), eight),
    ("PrivUnit, 8-d", PrivUnitTransformer(2.0), eight),
]

proved = {}
print(f"{'mechanism':<32}{'exact eps':>10}{'at least':>10}{'trials':>10}{'seconds':>9}")
for name, estimator, X in cases:
    started = time.perf_counter()
    fitted = estimator.fit(X)
    delta = fitted.privacy_guarantee_.delta
    result = audit_estimator(fitted, n_trials=40_000, confidence=0.999, delta=delta)
    seconds = time.perf_counter() - started
    proved[name] = (result.epsilon_lower, result.claimed)
    print(f"{name:<32}{result.claimed:>10.4g}{result.epsilon_lower:>10.4g}{result.n_trials:>10,}{seconds:>9.2f}")

figure, axis = plt.subplots(figsize=(7, 6), layout="constrained")
for place, (lower, claimed) in enumerate(reversed(proved.values())):
    axis.barh(place, min(lower, 6), color="tab:blue", label="proved by the attack" if not place else None)
    axis.plot([min(claimed, 6)] * 2, [place - 0.45, place + 0.45], color="black", label=None if place else "claimed")
axis.set(yticks=range(len(proved)), yticklabels=reversed(proved), xlabel="epsilon (cut off at 6)", xlim=(0, 6.2))
axis.legend(loc="lower right")
plt.show()

# %%
# A fault
# -------
# Noise that is shared by all rows of a call looks random row by row, and hides nothing: two rows subtract to the
# difference of their secrets.

generator = np.random.default_rng(0)


def one_noise_for_all(rows):
    return rows + generator.laplace(scale=2.0, size=rows.shape[1])


print(audit_epsilon(one_noise_for_all, [1.0], [-1.0]).against(1.0))

# %%
# Bounds that are learnt from the data give themselves away when every trial is a call of its own, next to a public
# row.


def learnt_bounds(rows):
    low, high = rows.min(), rows.max()
    middle, half = (low + high) / 2, (high - low) / 2
    plus = generator.random(rows.shape) < 0.5 + (rows - middle) / max(half, 1e-9) * 0.23
    return middle + half * np.where(plus, 2.16, -2.16)


print(audit_epsilon(learnt_bounds, [1.0], [0.5], companion=[-1.0], rows_per_call=1, n_trials=1_000).against(1.0))
