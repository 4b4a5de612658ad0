"""
Ask the same people several questions
=====================================

Five teams each want to know one thing about the same 300 patients. Each has trained a regression on other, public data,
and wants the mean of its predictions over these patients. Every patient has one privacy budget for all
answers, kept by name in a ledger that survives crashes, copies and cross-validation.

.. code-block:: bash

    python examples/tasks/survey_with_budgets.py
"""

# %%
# The bundled diabetes data are split into public data to train on and private people to ask. A person's record is age,
# sex, body mass index and blood pressure; the teams predict other measurements from it.
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldp import BayesianFilter, PrivacyLedger
from skldp.accounting import ledger_report
from skldp.study import PrivacyLossDisplay

X, progression = load_diabetes(return_X_y=True)
public, people = X[:142, :4], X[142:, :4]
ids = [f"patient {number}" for number in range(len(people))]

# The domain is public knowledge. Values outside are clipped silently.
bounds = (-0.15, 0.15)

# %%
# One ledger, in a file: each patient may lose at most 2 nats, over all teams together.
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "patients.ledger"
ledger = PrivacyLedger(2.0, bounds=bounds, path=path)

teams = {
    "progression": (LinearRegression(), progression[:142]),
    "cholesterol": (make_pipeline(StandardScaler(), Ridge(10.0)), X[:142, 4]),
    "lipoproteins": (LinearRegression(), X[:142, 6]),
    "triglycerides": (Lasso(1e-4), X[:142, 8]),
    "blood sugar": (LinearRegression(), X[:142, 9]),
}

# %%
# Every team asks at epsilon 1. Basic composition would refuse the third team and all later ones. The Bayesian filter
# certifies what each patient's answers have revealed, and lets them answer while it is safe. A refusal depends on
# earlier answers, so late means cover fewer patients, and late teams must take that into account.
filters = {}
for team, (model, target) in teams.items():
    survey = BayesianFilter(model, epsilon=1.0, ledger=ledger).fit(public, target)
    result = survey.query(people, ids=ids)
    truth = survey.estimator_.predict(people.clip(*bounds)).mean()
    print(
        f"{team:13}: {result.accepted.sum():3} of {len(ids)} answer; mean {result.mean:8.3f} "
        f"+- {result.standard_error:.3f} (all, without privacy: {truth:.3f})"
    )
    filters[team] = survey

# %%
# The same question again costs nothing: the recorded answers are returned.
before = ledger.realized_loss(ids)
again = filters["progression"].query(people, ids=ids)
changed = bool((ledger.realized_loss(ids) != before).any())
print(f"asked again: {again.fresh.sum()} fresh answers, budgets changed: {changed}")

# %%
# Clones made by cross-validation share the ledger, so the questions of all folds are charged to the people that the
# index of the table names.
volunteers = pd.DataFrame(np.random.default_rng(0).uniform(-0.1, 0.1, (60, 4)))
volunteers.index = pd.Index([f"volunteer {number}" for number in range(60)], name="person")
survey = BayesianFilter(Ridge(), epsilon=1.0, ledger=ledger, ids="person")
cross_val_score(survey, volunteers, volunteers.sum(axis=1))
print("answers of each person after cross-validation:", {len(ledger.history(name)) for name in volunteers.index})

# %%
# Another process opens the same file, reads the remaining budgets and verifies every decision.
print(ledger.summary())
report = ledger_report(path, verify=True)
print("loss quantiles:", {quantile: round(loss, 3) for quantile, loss in report["loss_quantiles"].items()})
print("verified:", report["verification"]["ok"])
assert clone(filters["progression"]).ledger is ledger

# %%
# The loss of the patient who answered most often, beside the sum of epsilons.
one = max(ids, key=lambda name: len(ledger.history(name)))
PrivacyLossDisplay.from_history(ledger.history(one), bounds=bounds, epsilon=ledger.epsilon, name=one)
lost = ledger.realized_loss([one])[0]
print(f"{one} has answered {len(ledger.history(one))} queries and lost {lost:.3f} of {ledger.epsilon}")
ledger.close()
folder.cleanup()
