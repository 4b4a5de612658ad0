"""Mechanisms, and what is seen of their draws, wherever a test of charged releases needs no more than that."""

import math

from skldp.accounting.ledger import _ledger_answers as ledger_answers
from skldp.mechanisms import Gaussian, RandomizedResponse
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures

UNITS = 2**60


def rr(epsilon, n_classes=3):
    """Randomized response, of three classes."""
    return RandomizedResponse(epsilon, n_classes)


def gaussian(epsilon=0.5, delta=1e-6, n_values=2):
    """Numbers from 0 to 1 with Gaussian noise."""
    return BoundedFeatures(
        Gaussian(epsilon, delta, n_values), (0.0,) * n_values, (1.0,) * n_values, n_sampled=n_values, stated=epsilon
    )


def weight(law, output, code):
    """A whole number to which the chance of an output for a true code is proportional, from the law's own integers."""
    law = law.parts[0] if isinstance(law, CategoricalRecord) else law
    if isinstance(law, RandomizedResponse):
        return law.law.own_count if code == output else law.law.other_count
    ones = [law.law.own_count if place == code else law.law.other_count for place in range(law.n_classes)]
    bits = [output >> place & 1 for place in range(law.n_classes)]
    return math.prod(one if bit else 2**64 - one for one, bit in zip(ones, bits, strict=True))


class Watched:
    """Counts what is drawn through a mechanism, and in which order it is drawn and committed."""

    def __init__(self, monkeypatch, ledger):
        self.events, draw, write = [], RandomizedResponse._draw, ledger_answers.write_release

        def drawn(mechanism, rows, *arguments):
            self.events.append(len(rows))
            return draw(mechanism, rows, *arguments)

        def written(*arguments, **options):
            self.events.append("written")
            return write(*arguments, **options)

        monkeypatch.setattr(RandomizedResponse, "_draw", drawn)
        monkeypatch.setattr(ledger_answers, "write_release", written)
