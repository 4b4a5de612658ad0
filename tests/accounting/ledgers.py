"""A small ledger, what it is asked, and what everybody answers, wherever a test needs no more than that."""

import numpy as np
from postgres_server import run_at

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery


def linear(slope, epsilon=0.3):
    """One feature of [-1, 1], times this."""
    return RegressionQuery("linear", [float(slope)], 0.0, (-abs(slope), abs(slope)), epsilon)


def ones(positions):
    """Everybody answers 1."""
    return np.ones(len(positions), dtype=int)


def new_ledger(place, **changes):
    """A ledger at a file or a URL that adds up to 1, but for what is changed."""
    return PrivacyLedger(**{"epsilon": 1.0, "bounds": (-1, 1), "path": place, "rule": "basic"} | changes)


def n_releases(place):
    """How many releases are recorded there."""
    return run_at(place, "SELECT COUNT(*) FROM releases")[0][0]
