"""
Realized loss: the paper's two small examples
=============================================

An object X has a value from 0 to 10. The question about X^i is answered 1 with probability 0.2 (x/10)^i + 0.4
(Pan 2025, Examples 2 and 3). Every answer is ln(3/2)-LDP; what three answers really give away can be as little as one.

.. code-block:: bash

    python examples/papers/realized_loss_running_examples.py
"""

# %%
# A mechanism with finitely many outputs over a finite domain is its table.
import math
import os
from pathlib import Path

import numpy as np

from skldp.accounting import BayesianPrivacyFilter, FiniteQuery, g_leakage_bound, realized_loss


def question(power):
    of_one = 0.2 * (np.arange(11) / 10) ** power + 0.4
    return FiniteQuery.from_probabilities(np.column_stack([1 - of_one, of_one]))


# %%
# Example 2: the answers 1, 0, 1. Basic composition would say a factor of 3.375.
queries, outputs = [question(1), question(2), question(3)], [1, 0, 1]
loss = realized_loss(queries, outputs)
print(f"Example 2: a factor of {math.exp(loss.upper):.4f}; no g-leakage is above {g_leakage_bound(loss.upper):.4f}")

# %%
# Example 3: a filter with a budget of 2 ln(3/2). The paper's table reaches that budget exactly; a bound that is rounded
# outward needs a hair more.
person = BayesianPrivacyFilter(2 * math.log(1.5) + 1e-9)
factors = [1.0]
for power, output in enumerate([1, 0, 1, 1], start=1):
    print(f"Example 3: question {power} admitted: {person.admits(question(power))}", end="; ")
    person.record(question(power), output)
    factors.append(math.exp(person.realized_loss))
    print(f"answer {output}, factor {factors[-1]:.2f}")
print("Example 3: question 5 admitted:", person.admits(question(5)))

# %%
# Picture.
try:
    import matplotlib.pyplot as plt
except ImportError:
    print("Install matplotlib for the picture.")
else:
    figure, axis = plt.subplots(figsize=(5, 4), layout="constrained")
    axis.step(range(5), factors, where="post", label="realized")
    axis.plot(range(5), 1.5 ** np.arange(5), "k--", label="basic composition")
    axis.axhline(2.25, color="r", linewidth=1, label="budget")
    axis.set(xlabel="answers", ylabel="largest likelihood ratio")
    axis.legend()
    if "SKLDP_FIGURES" in os.environ:
        figure.savefig(Path(os.environ["SKLDP_FIGURES"]) / "realized_loss_running_examples.png", dpi=150)
    plt.show()
