"""One small comparison that several tests look at."""

from dataclasses import replace
from functools import cache

from skldp.study._comparison import ComparisonSettings, compare_mechanisms
from skldp.study._datasets import load_study_data

NAMES = ("bitrand", "bitrand-exact", "duchi", "piecewise", "hybrid", "privunit", "gaussian", "multivariate-laplace")
NASTY = "<img src=x onerror=alert(1)> & \"quotes\" 'too'"


@cache
def small_comparison():
    wine = replace(load_study_data("wine"), name=NASTY)
    return compare_mechanisms(wine, list(NAMES), ComparisonSettings(epsilons=(4.0, 40.0), folds=2, seed=0))
