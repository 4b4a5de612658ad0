"""
Balance classes with private labels
===================================

A rare class, private labels, and a sampler that balances the classes: the labels are randomized first, later
steps see only released labels.
"""

# %%
# One person in seven has the trait. The people's labels are private; their features are public here.
import matplotlib.pyplot as plt
from imblearn.pipeline import make_pipeline
from imblearn.under_sampling import RandomUnderSampler
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

from skldp import LabelPrivateClassifier, LabelRR, LabelSampler, privacy_guarantee

X, y = make_classification(6_000, n_features=10, n_informative=6, weights=[6 / 7], class_sep=1.5, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# ``LabelRR`` transforms y, and a pipeline transforms X only. ``LabelSampler`` makes it a step: a sampler that keeps X
# and releases y. The classes are declared, not learnt from the private labels.
scores = {}
for epsilon in (0.5, 1.0, 2.0, 4.0):
    pipeline = make_pipeline(
        LabelSampler(LabelRR(epsilon=epsilon, classes=[0, 1])),
        RandomUnderSampler(random_state=0),
        LogisticRegression(),
    )
    pipeline.fit(X_train, y_train)
    scores[epsilon] = balanced_accuracy_score(y_test, pipeline.predict(X_test))
    print(f"epsilon {epsilon}: balanced accuracy {scores[epsilon]:.2f}")

without = make_pipeline(RandomUnderSampler(random_state=0), LogisticRegression()).fit(X_train, y_train)
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.bar([f"{epsilon:g}" for epsilon in scores], scores.values(), color="tab:blue")
clean = balanced_accuracy_score(y_test, without.predict(X_test))
axis.axhline(clean, color="black", linestyle="--", label="without privacy")
axis.set(xlabel="epsilon of a label", ylabel="balanced accuracy", ylim=(0.5, 1))
axis.legend()
plt.show()

# %%
# What the last pipeline released. Later steps see released labels only.
print(pipeline[0].privacy_guarantee_)

# %%
# The guarantee of the pipeline is infinite, because a sampler may duplicate a record. It is finite if the labels
# are released once, before the pipeline.
released_once = LabelPrivateClassifier(without, label_mechanism=LabelRR(epsilon=4.0, classes=[0, 1]))
print(privacy_guarantee(released_once.fit(X_train, y_train)))

# %%
# The share of the rare class, from released labels alone, without bias and with its standard error.
label_rr = LabelRR(epsilon=1.0, classes=[0, 1])
released = label_rr.fit_transform(y_train)
estimate = label_rr.estimate_frequencies(released)
print(f"rare class: {estimate.frequencies[1]:.3f} +- {estimate.standard_errors[1]:.3f}, truly {y_train.mean():.3f}")
