"""Floor 3: what is learnt from releases that are made for a model. Tasks that people answer once, and their sums."""

from skldp.learning._classification import ClassificationProtocol
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._inference import InferenceProtocol
from skldp.learning._linear_fit import LinearFit
from skldp.learning._moment_estimates import Correlations, MomentEstimates
from skldp.learning._moments import MomentsProtocol
from skldp.learning._person import Person
from skldp.learning._protocol import n_people_needed, sufficiency
from skldp.learning._regression import RegressionProtocol
from skldp.learning._simulation import simulate
from skldp.learning._survey_estimates import SurveyEstimate
from skldp.learning._tasks import Report, Task
from skldp.learning._uncertainty import Estimate

__all__ = [
    "ClassificationProtocol",
    "Correlations",
    "DiscriminantProtocol",
    "Estimate",
    "InferenceProtocol",
    "LinearFit",
    "MomentEstimates",
    "MomentsProtocol",
    "Person",
    "RegressionProtocol",
    "Report",
    "SurveyEstimate",
    "Task",
    "n_people_needed",
    "simulate",
    "sufficiency",
]
