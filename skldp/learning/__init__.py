"""Floor 3: what is learnt from releases that are made for a model. Tasks that people answer once, and their sums."""

from skldp.learning._classification import ClassificationProtocol
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._person import Person
from skldp.learning._protocol import n_people_needed, sufficiency
from skldp.learning._regression import RegressionProtocol
from skldp.learning._simulation import simulate
from skldp.learning._tasks import Report, Task

__all__ = [
    "ClassificationProtocol",
    "DiscriminantProtocol",
    "Person",
    "RegressionProtocol",
    "Report",
    "Task",
    "n_people_needed",
    "simulate",
    "sufficiency",
]
