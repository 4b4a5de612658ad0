"""The probability of one class of a softmax model, asked of people through a filter."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skldp import BayesianFilter, PrivacyLedger
from skldp.accounting._class_query import SoftmaxQuery
from skldp.estimators._from_estimator import query_from_estimator

X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
Y = np.array(["a", "b", "c"])[np.digitize(X @ [1.0, 0.5], [-0.4, 0.4])]
IDS = list(range(300))


@pytest.mark.parametrize("of_class", ["a", "b", "c"])
@pytest.mark.parametrize("model", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())])
def test_the_question_is_the_models_own_probability(model, of_class):
    fitted = clone(model).fit(X, Y)
    query = query_from_estimator(fitted, epsilon=0.5, bounds=(-1, 1), of_class=of_class)
    assert isinstance(query, SoftmaxQuery)
    place = list(fitted.classes_).index(of_class)
    np.testing.assert_allclose(query.unit_response(X), fitted.predict_proba(X)[:, place], atol=1e-9)


@pytest.mark.slow
def test_people_are_asked_and_their_mean_probability_is_estimated(tmp_path):
    """Each answer is 0 or 1; a second filter asks of another class under the same budgets."""
    with PrivacyLedger(6.0, bounds=(-1, 1), path=tmp_path / "a.ledger") as ledger:
        survey = BayesianFilter(LogisticRegression(), epsilon=2.0, ledger=ledger, of_class="c").fit(X, Y)
        result = survey.query(X, ids=IDS)
        assert result.accepted.all()
        assert set(result.outputs.tolist()) <= {0.0, 1.0}
        truth = survey.estimator_.predict_proba(X)[:, 2].mean()
        assert survey.prior_ == pytest.approx(truth)
        # Never by chance: the estimates are answers on a known scale.
        np.testing.assert_allclose(result.estimates, survey.query_.estimate(result.outputs.astype(int)))
        assert np.isfinite(survey.score(X, Y, ids=IDS))
        again = survey.query(X, ids=IDS)
        assert not again.fresh.any()
        other = BayesianFilter(LogisticRegression(), epsilon=2.0, ledger=ledger, of_class="a").fit(X, Y)
        assert other.query(X, ids=IDS).accepted.all()
        losses, grid = ledger.realized_loss(IDS), np.stack(np.meshgrid(*[np.linspace(-1, 1, 9)] * X.shape[1]), -1)
        for person, loss in enumerate(losses[:20]):
            pairs = [(entry["query"], entry["output"]) for entry in ledger.history(IDS[person])]
            told = sum(query.log_likelihood(output, grid.reshape(-1, X.shape[1])) for query, output in pairs)
            # Together at most what both cost by themselves.
            assert np.ptp(told) - 1e-9 <= loss <= 4.0
        assert ledger.verify().ok


@pytest.mark.parametrize(
    ("model", "target", "of_class", "match"),
    [
        (LogisticRegression(), Y, "d", "one of the model's classes"),
        (LogisticRegression(), Y == "a", True, "more than two classes"),
        (LinearRegression(), X[:, 0], "a", "more than two classes"),
        (LinearSVC(), Y, "a", "predict_proba is the softmax"),
        (OneVsRestClassifier(LogisticRegression()), Y, "a", "row of coef_ per class"),
    ],
    ids=["no class", "two classes", "regressor", "no probabilities", "no softmax"],
)
def test_what_has_no_such_probability_is_refused(model, target, of_class, match):
    with pytest.raises(ValueError, match=match):
        BayesianFilter(model, bounds=(-1, 1), of_class=of_class).fit(X, target)


def test_another_link_is_noticed_by_its_probabilities():
    class Flattened(LogisticRegression):
        def predict_proba(self, X):
            return 0.5 * super().predict_proba(X) + 0.5 / 3

    with pytest.raises(ValueError, match="predict_proba is the softmax"):
        BayesianFilter(Flattened(), bounds=(-1, 1), of_class="a").fit(X, Y)
