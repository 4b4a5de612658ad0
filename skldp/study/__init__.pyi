from skldp.collection._precision import plan_survey
from skldp.study._audit import audit_epsilon, audit_estimator, trials_needed
from skldp.study._choice import plan_questions, smallest_epsilon
from skldp.study._curve import privacy_utility_curve
from skldp.study._displays import PrivacyLossDisplay, PrivacyUtilityDisplay
from skldp.study._federated_learning import federated_learning
from skldp.study._inversion import audit_inversion
from skldp.study._recommend import recommend
from skldp.study._released_rows import ReleasedRowsRegressor

__all__ = [
    "PrivacyLossDisplay",
    "PrivacyUtilityDisplay",
    "ReleasedRowsRegressor",
    "audit_epsilon",
    "audit_estimator",
    "audit_inversion",
    "federated_learning",
    "plan_questions",
    "plan_survey",
    "privacy_utility_curve",
    "recommend",
    "smallest_epsilon",
    "trials_needed",
]
