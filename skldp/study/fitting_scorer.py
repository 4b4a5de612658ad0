"""A scorer that refuses, in one line, to score what it does not fit."""

import warnings

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skldp.untold import told

__all__ = ["FittingScorer"]


class FittingScorer:
    """A scorer with an error that says that it is the score that does not fit, and not the mechanism.

    Parameters
    ----------
    scorer : callable
        As ``scorer(estimator, X, y)``.
    name : str
        What the error calls it.

    Raises
    ------
    ValueError
        At a call, if the scorer raises, or gives NaN or infinity.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.metrics import get_scorer
    >>> from skldp.study.fitting_scorer import FittingScorer
    >>> model = DummyClassifier().fit([[0], [1], [2]], [0, 1, 2])
    >>> FittingScorer(get_scorer("accuracy"), "accuracy")(model, [[0], [1]], [0, 1])
    0.5
    """

    def __init__(self, scorer, name):
        self.scorer = scorer
        self.name = name

    def __call__(self, estimator, *args, **kwargs):
        """Score."""
        try:
            with warnings.catch_warnings():
                # What is undefined comes as NaN, which is refused below.
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                score = self.scorer(estimator, *args, **kwargs)
        except (AttributeError, TypeError, ValueError) as error:
            shown = (told(error) or "").strip().splitlines() or [f"it raised {type(error).__name__}"]
            reason = shown[0].removesuffix(".")
            raise ValueError(f"scoring must fit the estimator and the target: {reason}. Got {self.name!r}.") from None
        if not np.isfinite(score):
            raise ValueError(f"scoring must give finite numbers on every fold. Got {score} from {self.name!r} instead.")
        return score

    def get_metadata_routing(self):
        """Ask for what the scorer asks for."""
        return self.scorer.get_metadata_routing()
