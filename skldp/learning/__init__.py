"""Learning from releases made for a model: public tasks, one answer per person, and sums of reports."""

from skldp.learning._classification import ClassificationProtocol
from skldp.learning._moments import MomentsProtocol
from skldp.learning._person import Person
from skldp.learning._protocol import n_people_needed, sufficiency
from skldp.learning._regression import RegressionProtocol
from skldp.learning._reports import Report
from skldp.learning._score import ScoreEstimate, score_estimate, score_tasks
from skldp.learning._tasks import Task

__all__ = [
    "ClassificationProtocol",
    "MomentsProtocol",
    "Person",
    "RegressionProtocol",
    "Report",
    "ScoreEstimate",
    "Task",
    "n_people_needed",
    "score_estimate",
    "score_tasks",
    "sufficiency",
]
