from skldp.learning._classification import ClassificationProtocol
from skldp.learning._person import Person
from skldp.learning._protocol import n_people_needed, sufficiency
from skldp.learning._regression import RegressionProtocol
from skldp.learning._reports import Report
from skldp.learning._score import score_estimate, score_tasks

__all__ = [
    "ClassificationProtocol",
    "Person",
    "RegressionProtocol",
    "Report",
    "n_people_needed",
    "score_estimate",
    "score_tasks",
    "sufficiency",
]
