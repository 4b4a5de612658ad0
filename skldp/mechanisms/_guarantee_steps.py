"""What a guarantee adds up: one step for each release, and the sentence that is made of them."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = ["GuaranteeStep", "add_up", "sentence"]


@dataclass(frozen=True)
class GuaranteeStep:
    """One thing that a guarantee counts: a release, or what makes the guarantee infinite.

    Attributes
    ----------
    name : str
        Where it is: the step of a pipeline, by the name that ``get_params`` gives it, or the column of a table.
    epsilon : float
        Natural log.
    delta : float
    unit : {"record", "label", "distance"}
    stated : float or None
        The epsilon that was asked for.
    basis : str
        Exact, or which theorem; or why nothing is protected.
    """

    name: str
    epsilon: float
    delta: float = 0.0
    unit: str = "record"
    stated: float | None = None
    basis: str = "exact"

    def to_dict(self) -> dict[str, Any]:
        """Its figures by name."""
        return asdict(self)


def add_up(steps: Iterable[GuaranteeStep], epsilon: float, delta: float) -> bool:
    """Whether these steps are what an (epsilon, delta) is made of, but for rounding."""
    listed = list(steps)
    total = sum(step.epsilon for step in listed)
    deltas = min(1.0, sum(step.delta for step in listed))
    return math.isclose(total, epsilon, rel_tol=1e-9) and math.isclose(deltas, delta, rel_tol=1e-9)


def sentence(steps: Iterable[GuaranteeStep]) -> str:
    """What the steps rest on, in one line: like ones once, and how often.

    Examples
    --------
    >>> from skldp.mechanisms._guarantee_steps import GuaranteeStep, sentence
    >>> sentence([GuaranteeStep("a", 1.0), GuaranteeStep("b", 1.0), GuaranteeStep("c", 2.0, basis="by a theorem")])
    'sum of (2 releases, each exact) and (by a theorem)'
    """
    times = Counter(replace(step, name="") for step in steps)
    told = [step.basis if n == 1 else f"{n} releases, each {step.basis}" for step, n in times.items()]
    if len(told) == 1:
        return told[0]
    *first, last = (f"({one})" for one in told)
    return f"sum of {', '.join(first)} and {last}"
