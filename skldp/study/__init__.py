"""What privacy costs: curves over epsilon, comparisons, audits, federated learning, and the theory of the papers."""

from skldp.study._audit.inversion import InversionAttack, InversionResult, audit_inversion
from skldp.study._audit.inversion_bound import inversion_bound
from skldp.study._audit.inversion_study import InversionDisplay, InversionRow, InversionTable, inversion_study
from skldp.study._audit.lower_bound import AuditResult, audit_epsilon, trials_needed
from skldp.study._audit.pairs import audit_estimator, candidate_pairs
from skldp.study._audit.tasks import audit_task, worst_records
from skldp.study._catalogue import (
    FEATURE_MECHANISMS,
    LABEL_MECHANISMS,
    PRIVATE_MODELS,
    feature_mechanism,
    label_mechanism,
    private_model,
)
from skldp.study._choice import smallest_epsilon, with_exact_epsilon
from skldp.study._comparison import ComparisonSettings, MechanismComparison, compare_mechanisms
from skldp.study._curve import privacy_utility_curve
from skldp.study._datasets import StudyData, StudyInputError, load_study_data
from skldp.study._display import PrivacyUtilityDisplay
from skldp.study._federated.hashed_labels import HashedLabels
from skldp.study._federated.learning import FederatedRun, federated_learning
from skldp.study._federated.settings import (
    FederatedSetting,
    features_perturbed,
    gradients_anonymised,
    gradients_perturbed,
    labels_perturbed,
    noiseless,
    random_guess,
    weights_anonymised,
)
from skldp.study._federated.study import (
    FederatedDisplay,
    FederatedRow,
    FederatedTable,
    MeanDifference,
    federated_study,
)
from skldp.study._learning_curve import PrivateLearningCurve, private_learning_curve
from skldp.study._learning_display import PrivateLearningCurveDisplay
from skldp.study._loss_display import PrivacyLossDisplay
from skldp.study._planning import QuestionPlan, plan_questions
from skldp.study._recommend import Recommendation, RecommendedOption, recommend
from skldp.study._report import html_report, plot_comparison
from skldp.study._results import CurvePoint, PrivacyUtilityCurve
from skldp.study._rivals import OneGradientClassifier, OneGradientRegressor, ReleasedRowsRegressor
from skldp.study._theory.bit_laws import expected_error, rival_laws
from skldp.study._theory.errors import expected_errors, mean_errors
from skldp.study._theory.figures import (
    bit_errors,
    bit_flips,
    bit_flips_over_bits,
    bit_flips_over_features,
    corrected_ratios,
    label_flips,
)
from skldp.study._theory.table import TheoryDisplay, TheoryTable

__all__ = [
    "FEATURE_MECHANISMS",
    "LABEL_MECHANISMS",
    "PRIVATE_MODELS",
    "AuditResult",
    "ComparisonSettings",
    "CurvePoint",
    "FederatedDisplay",
    "FederatedRow",
    "FederatedRun",
    "FederatedSetting",
    "FederatedTable",
    "HashedLabels",
    "InversionAttack",
    "InversionDisplay",
    "InversionResult",
    "InversionRow",
    "InversionTable",
    "MeanDifference",
    "MechanismComparison",
    "OneGradientClassifier",
    "OneGradientRegressor",
    "PrivacyLossDisplay",
    "PrivacyUtilityCurve",
    "PrivacyUtilityDisplay",
    "PrivateLearningCurve",
    "PrivateLearningCurveDisplay",
    "QuestionPlan",
    "Recommendation",
    "RecommendedOption",
    "ReleasedRowsRegressor",
    "StudyData",
    "StudyInputError",
    "TheoryDisplay",
    "TheoryTable",
    "audit_epsilon",
    "audit_estimator",
    "audit_inversion",
    "audit_task",
    "bit_errors",
    "bit_flips",
    "bit_flips_over_bits",
    "bit_flips_over_features",
    "candidate_pairs",
    "compare_mechanisms",
    "corrected_ratios",
    "expected_error",
    "expected_errors",
    "feature_mechanism",
    "features_perturbed",
    "federated_learning",
    "federated_study",
    "gradients_anonymised",
    "gradients_perturbed",
    "html_report",
    "inversion_bound",
    "inversion_study",
    "label_flips",
    "label_mechanism",
    "labels_perturbed",
    "load_study_data",
    "mean_errors",
    "noiseless",
    "plan_questions",
    "plot_comparison",
    "privacy_utility_curve",
    "private_learning_curve",
    "private_model",
    "random_guess",
    "recommend",
    "rival_laws",
    "smallest_epsilon",
    "trials_needed",
    "weights_anonymised",
    "with_exact_epsilon",
    "worst_records",
]
