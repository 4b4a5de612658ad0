"""
Compare scores over the exact epsilon
=====================================

Two tasks on 20,000 simulated people. Every epsilon below is exact: the worst-case log-likelihood ratio of everything
that one person releases, features and target together. Values of at most 4 are green in the figure.
"""

# %%
# The tasks are a regression on three features and a classification into three classes on six. All bounds are declared.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression

from skldp import LabelRR, PrivateLinearRegression, PrivateLogisticRegression, PrivUnitTransformer
from skldp.study import ReleasedRowsRegressor

PEOPLE, EPSILONS, RUNS = 20_000, [0.5, 1, 2, 4, 8], 10
rng = np.random.default_rng(0)
low, high = np.array([18, 6, 5]), np.array([70, 22, 60])  # age, years of school, hours of work a week
X = rng.uniform(low, high, (PEOPLE + 5_000, 3))
y = 1.2 + X @ [0.006, 0.07, 0.02] + rng.normal(0, 0.15, len(X))  # the logarithm of their pay
Z, kinds = make_classification(
    PEOPLE + 5_000, n_features=6, n_informative=6, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
)
Z = np.clip(Z, -5, 5)
clean = {
    "R2": LinearRegression().fit(X[:PEOPLE], y[:PEOPLE]).score(X[PEOPLE:], y[PEOPLE:]),
    "accuracy": LogisticRegression().fit(Z[:PEOPLE], kinds[:PEOPLE]).score(Z[PEOPLE:], kinds[PEOPLE:]),
}

# %%
# There are two ways to spend an epsilon. In the first, each person sends one report that is made for the model:


def regression_that_asks(epsilon):
    model = PrivateLinearRegression(epsilon, bounds=(low, high), target_bounds=(1, 6))
    return model.fit(X[:PEOPLE], y[:PEOPLE]).score(X[PEOPLE:], y[PEOPLE:])


def classifier_that_asks(epsilon):
    model = PrivateLogisticRegression(epsilon, bounds=(-5, 5), classes=range(3))
    return model.fit(Z[:PEOPLE], kinds[:PEOPLE]).score(Z[PEOPLE:], kinds[PEOPLE:])


# %%
# In the second, each person releases their record, and any model is trained on the releases. The regression releases
# features and target as one vector with its norm, because a direction would divide the target by the norm. The
# classifier releases labels separately, so it can release only the direction of the features. A direction has a third
# of the noise.


def regression_on_records(epsilon):
    release = PrivUnitTransformer(epsilon, norm=np.sqrt(4), transform_noise=False)
    model = ReleasedRowsRegressor(release, LinearRegression(), bounds=(low, high), target_bounds=(1, 6))
    return model.fit(X[:PEOPLE], y[:PEOPLE]).score(X[PEOPLE:], y[PEOPLE:])


def classifier_on_records(epsilon):
    release = PrivUnitTransformer(epsilon / 2, bounds=(-5, 5), transform_noise=False)
    labels = LabelRR(epsilon / 2, classes=range(3))
    model = LogisticRegression().fit(release.fit_transform(Z[:PEOPLE]), labels.fit_transform(kinds[:PEOPLE]))
    return model.score(release.transform(Z[PEOPLE:]), kinds[PEOPLE:])


# %%
# Each model runs ten times with new noise. The bands span the worst and the best run.

panels = {
    "R2": {"a model that asks": regression_that_asks, "a model on released records": regression_on_records},
    "accuracy": {"a model that asks": classifier_that_asks, "a model on released records": classifier_on_records},
}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for axis, (score, methods) in zip(axes, panels.items(), strict=True):
    for colour, (name, method) in zip(("tab:blue", "tab:orange"), methods.items(), strict=True):
        scores = np.array([[method(epsilon) for _ in range(RUNS)] for epsilon in EPSILONS])
        axis.plot(EPSILONS, scores.mean(axis=1), "o-", color=colour, label=name)
        axis.fill_between(EPSILONS, scores.min(axis=1), scores.max(axis=1), color=colour, alpha=0.2, linewidth=0)
        for epsilon, each in zip(EPSILONS, scores, strict=True):
            print(f"{score:<9} epsilon {epsilon:3}  {name:<28} {each.mean():.3f}, worst {each.min():.3f}")
    axis.axhline(clean[score], color="black", linestyle="--", linewidth=1, label="without privacy")
    axis.axvspan(EPSILONS[0], 4, color="tab:green", alpha=0.07, linewidth=0)
    axis.set(xscale="log", xticks=EPSILONS, xticklabels=EPSILONS, xlabel="exact epsilon of the complete record")
    axis.set(ylabel=score, ylim=(-0.1 if score == "R2" else 0.28, 1), title="a number" if score == "R2" else "a class")
    axis.minorticks_off()
axes[1].legend(loc="lower right", fontsize="small")
plt.show()
