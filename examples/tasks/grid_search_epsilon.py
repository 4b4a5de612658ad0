"""
Search for the smallest sufficient epsilon
==========================================

A grid search with scikit-learn's default `refit` takes the best score, which is the largest epsilon. With
``refit=smallest_epsilon(0.02)`` it takes the smallest one whose mean score is within 0.02 of the best.
"""

# %%
# The digits have 64 features from 0 to 16, as the description of the data says. ``calibration="exact"`` makes the
# epsilon of a complete record equal to the searched one, and ``debias=True`` makes the release unbiased. Test rows stay
# with their people, so they are encoded without noise. Labels have a fixed budget.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skldp import BitRandTransformer, LabelPrivateClassifier, LabelRR, privacy_guarantee
from skldp.study import smallest_epsilon

X, y = load_digits(return_X_y=True)
model = make_pipeline(
    BitRandTransformer(bounds=(0, 16), calibration="exact", debias=True, transform_noise=False),
    LabelPrivateClassifier(LinearDiscriminantAnalysis(), label_mechanism=LabelRR(epsilon=5, classes=range(10))),
)
search = GridSearchCV(
    model,
    {"bitrandtransformer__epsilon": [2, 5, 10, 20, 40, 80]},
    refit=smallest_epsilon(0.02),
    cv=3,
)
search.fit(X, y)

# %%
# Scores rise with epsilon and level off; the search stops where more would buy less than 0.02.

for candidate, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
    mark = "  <- chosen" if candidate == search.best_params_ else ""
    print(f"epsilon {candidate['bitrandtransformer__epsilon']:5}: accuracy {score:.3f}{mark}")

epsilons = [candidate["bitrandtransformer__epsilon"] for candidate in search.cv_results_["params"]]
scores, chosen = search.cv_results_["mean_test_score"], search.best_params_["bitrandtransformer__epsilon"]
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.axhspan(scores.max() - 0.02, scores.max(), color="tab:green", alpha=0.15, label="within 0.02 of the best")
axis.semilogx(epsilons, scores, "o-", color="tab:blue")
axis.plot(chosen, scores[epsilons.index(chosen)], "o", markersize=14, fillstyle="none", color="black", label="chosen")
axis.set(xlabel="epsilon of the features", ylabel="accuracy", xticks=epsilons, xticklabels=epsilons)
axis.minorticks_off()
axis.legend(loc="lower right")
plt.show()

# %%
# What the chosen model releases about one person: features and label together.

print(privacy_guarantee(search.best_estimator_))

# %%
# That is the guarantee of one release. The search itself is a simulation: it released every person's record once for
# each candidate and fold, and scored with true labels, which no epsilon covers: ``privacy_guarantee(search)`` is
# infinite. Choose epsilon this way on public data, or with people's consent. Then ask everyone else once, at
# the chosen epsilon.
