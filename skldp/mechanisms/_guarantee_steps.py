"""What a guarantee adds up: one step for each release, and the sentence that is made of them."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from skldp.mechanisms._odds import product_above

__all__ = ["GuaranteeStep", "add_up", "sentence"]


@dataclass(frozen=True)
class GuaranteeStep:
    """One thing that a guarantee counts: a release, or what makes the guarantee infinite.

    Attributes
    ----------
    name : str
        Where it is: the step of a pipeline, by the name that ``get_params`` gives it, or the column of a table.
    epsilon : float
        Of one release, natural log.
    delta : float
    unit : {"record", "label", "distance"}
    releases : int
        How often one person's record goes through it.
    stated : float or None
        The epsilon that one release was asked for.
    basis : str
        Exact, or which theorem; or why nothing is protected.
    """

    name: str
    epsilon: float
    delta: float = 0.0
    unit: str = "record"
    releases: int = 1
    stated: float | None = None
    basis: str = "exact"

    @property
    def total(self) -> float:
        """The epsilon of all its releases together, rounded up."""
        return product_above(self.epsilon, self.releases)

    def to_dict(self) -> dict[str, Any]:
        """Its figures by name, with that of all its releases as ``total``."""
        return asdict(self) | {"total": self.total}


def add_up(steps: Iterable[GuaranteeStep], epsilon: float, delta: float) -> bool:
    """Whether these steps are what an (epsilon, delta) is made of, but for rounding."""
    listed = list(steps)
    total = sum(step.total for step in listed)
    deltas = min(1.0, sum(step.delta * step.releases for step in listed))
    return math.isclose(total, epsilon, rel_tol=1e-9) and math.isclose(deltas, delta, rel_tol=1e-9)


def sentence(steps: Iterable[GuaranteeStep]) -> str:
    """What the steps rest on, in one line: like ones once, and how often.

    Examples
    --------
    >>> from skldp.mechanisms._guarantee_steps import GuaranteeStep, sentence
    >>> sentence([GuaranteeStep("a", 1.0), GuaranteeStep("b", 1.0), GuaranteeStep("c", 2.0, basis="by a theorem")])
    'sum of (2 releases, each exact) and (by a theorem)'
    """
    times: Counter[GuaranteeStep] = Counter()
    for step in steps:
        times[replace(step, name="", releases=1)] += step.releases
    told = [step.basis if n == 1 else f"{n} releases, each {step.basis}" for step, n in times.items()]
    if len(told) == 1:
        return told[0]
    *first, last = (f"({one})" for one in told)
    return f"sum of {', '.join(first)} and {last}"
