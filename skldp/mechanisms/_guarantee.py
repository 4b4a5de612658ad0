"""Guarantee of a release: the exact worst-case loss, and the composition of several releases."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from skldp._checks import check_between, check_choice
from skldp._tables import as_frame, html_table
from skldp.laws._odds import product_above, sum_above

# Name of the figure that is the delta of a published calibration.
PUBLISHED_DELTA = "delta as published"


@dataclass(frozen=True)
class GuaranteeStep:
    """One entry of a guarantee: a release, or the reason why the guarantee is infinite."""

    name: str
    epsilon: float
    delta: float = 0.0
    unit: str = "record"
    stated: float | None = None
    basis: str = "exact"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def sentence(steps: Iterable[GuaranteeStep]) -> str:
    """Return the bases of the steps in one line; equal steps are counted."""
    times = Counter(replace(step, name="") for step in steps)
    bases = [step.basis if n == 1 else f"{n} releases, each {step.basis}" for step, n in times.items()]
    if len(bases) == 1:
        return bases[0]
    *first, last = (f"({one})" for one in bases)
    return f"sum of {', '.join(first)} and {last}"


@dataclass(frozen=True)
class PrivacyGuarantee:
    r"""Privacy guarantee of a release: the proved and the requested epsilon.

    A mechanism M is :math:`(\varepsilon, \delta)`-locally differentially private if, for every two inputs of the
    declared domain and every set S of outputs, :math:`P(M(x) \in S) \le e^\varepsilon P(M(x') \in S) + \delta`.
    `epsilon` is the smallest such number that is proved, never the requested one.

    Parameters
    ----------
    epsilon : float
        The exact worst-case log-likelihood ratio (natural log) over the declared domain; per unit of Euclidean
        distance when `unit` is ``"distance"``. Infinite when nothing is protected.
    delta : float, default=0.0
        Probability that the bound fails, over what `basis` says; 0 for most mechanisms.
    unit : {"record", "label", "distance"}, default="record"
        Difference between the two inputs: a row with all its features, one label, or one unit of distance.
    per_feature : float, default=None
        Epsilon of one feature alone, if defined.
    stated : float, default=None
        Requested epsilon.
    basis : str, default="exact"
        One line: exact, or the theorem.
    diameter : float, default=None
        For ``"distance"``: the largest distance between two inputs of the declared domain.
    figures : tuple of (str, float), default=()
        Other published figures of the same release, each with its name.
    seeded : bool, default=False
        Whether the noise comes from a seed; the guarantee does not hold against anyone who knows it.
    model : {"local", "central"}, default="local"
        Whether the guarantee holds for each person's release, or only for the output of a trusted shuffler.
    unprotected : tuple of str, default=()
        "features" or "target", if the computation had them in the clear; the headline says so.
    covers : str, default=""
        What the guarantee is of, if it may be less than all that is released, as in an estimator's attribute.
    parts : tuple of GuaranteeStep, default=()
        The steps that add up to this guarantee; ignored by equality. Parts that do not add up to epsilon and delta are
        dropped.

    Raises
    ------
    ValueError
        If a number is NaN or out of its range.

    Examples
    --------
    >>> from skldp.mechanisms._guarantee import PrivacyGuarantee
    >>> features = PrivacyGuarantee(1.5, stated=1.5)
    >>> label = PrivacyGuarantee(0.5, unit="label", stated=0.5)
    >>> (features + label).epsilon
    2.0
    >>> print(features)
    epsilon 1.5 per record (stated 1.5); exact
    >>> [(step.epsilon, step.unit) for step in (features + label).steps]
    [(1.5, 'record'), (0.5, 'label')]
    """

    epsilon: float
    delta: float = 0.0
    unit: str = "record"
    per_feature: float | None = None
    stated: float | None = None
    basis: str = "exact"
    diameter: float | None = None
    figures: tuple[tuple[str, float], ...] = ()
    seeded: bool = False
    model: str = "local"
    unprotected: tuple[str, ...] = ()
    covers: str = field(default="", compare=False)
    parts: tuple[GuaranteeStep, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        check_between("epsilon", self.epsilon, 0, math.inf)
        check_between("delta", self.delta, 0, 1)
        for name in ("per_feature", "stated", "diameter"):
            if getattr(self, name) is not None:
                check_between(name, getattr(self, name), 0, math.inf)
        check_choice("unit", self.unit, ("record", "label", "distance"))
        check_choice("model", self.model, ("local", "central"))
        total = sum(part.epsilon for part in self.parts)
        delta = min(1.0, sum(part.delta for part in self.parts))
        if not (math.isclose(total, self.epsilon, rel_tol=1e-9) and math.isclose(delta, self.delta, rel_tol=1e-9)):
            object.__setattr__(self, "parts", ())

    @property
    def steps(self) -> tuple[GuaranteeStep, ...]:
        """One step for each release; a single release is its own step."""
        return self.parts or (self.as_step(),)

    def as_step(self, name: str = "") -> GuaranteeStep:
        """Return the guarantee as one step of a larger one.

        Parameters
        ----------
        name : str, default=""
            Name of the step.
        """
        return GuaranteeStep(name, self.epsilon, self.delta, self.unit, self.stated, self.basis)

    @property
    def plain_epsilon(self) -> float:
        """The epsilon between any two inputs of the declared domain; infinite where no diameter is declared."""
        if self.unit != "distance":
            return self.epsilon
        return math.inf if self.diameter is None else product_above(self.epsilon, self.diameter)

    def over_diameter(self, diameter: float | None = None) -> "PrivacyGuarantee":
        """Return the guarantee per record that follows from one per unit of distance.

        Parameters
        ----------
        diameter : float, default=None
            The largest distance between two inputs; None takes the declared one.

        Raises
        ------
        ValueError
            If no diameter is declared or given.
        """
        if self.unit != "distance":
            return self
        declared = self.diameter if diameter is None else diameter
        if declared is None:
            raise ValueError("`diameter` must be given to bound a record by an epsilon per unit of distance; got None.")
        return replace(
            self,
            epsilon=product_above(self.epsilon, declared),
            unit="record",
            stated=None,
            diameter=None,
            basis=f"{_number(self.epsilon)} per unit of distance over a diameter of {_number(declared)}; {self.basis}",
        )

    def __add__(self, other: Any) -> "PrivacyGuarantee":
        """Add two releases about the same person: epsilons and deltas add up (basic composition)."""
        # A loss per unit of distance is first turned into one per record over its declared diameter.
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        if self.model != other.model:
            raise ValueError(f"Guarantees must be of one model to be added; got {self.model!r} and {other.model!r}.")
        left, right = self, other
        if left.unit != right.unit and "distance" in (left.unit, right.unit):
            left, right = left.over_diameter(), right.over_diameter()
        parts = left._parts_to_add() + right._parts_to_add()
        diameters = [one.diameter for one in (left, right) if one.unit == "distance" and one.diameter is not None]
        return PrivacyGuarantee(
            epsilon=sum_above(left.epsilon, right.epsilon),
            delta=min(1.0, sum_above(left.delta, right.delta)),
            unit=left.unit if left.unit == right.unit else "record",
            stated=None if left.stated is None or right.stated is None else left.stated + right.stated,
            basis=sentence(parts),
            diameter=max(diameters) if len(diameters) == 2 else None,
            seeded=left.seeded or right.seeded,
            model=left.model,
            unprotected=tuple(dict.fromkeys(left.unprotected + right.unprotected)),
            parts=parts,
        )

    def __le__(self, other: Any) -> bool:
        """Return whether this guarantee protects at least as well: same unit and model, neither number larger."""
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        comparable = (self.unit, self.model) == (other.unit, other.model)
        return comparable and self.epsilon <= other.epsilon and self.delta <= other.delta

    def __str__(self) -> str:
        """Return the guarantee in one line."""
        return f"{self.headline()}; {self.basis}{'; void for anyone who knows the seed' if self.seeded else ''}"

    def headline(self) -> str:
        """Return the figures in a few words.

        Examples
        --------
        >>> from skldp import PrivacyGuarantee
        >>> PrivacyGuarantee(1.5, stated=1.0).headline()
        'epsilon 1.5 per record (stated 1)'
        """
        text = f"epsilon {_number(self.epsilon)}"
        if self.delta:
            text += f", delta {_number(self.delta)},"
        text += f" per {_scope(self.unit)}"
        if self.model == "central":
            text += " in the central model"
        aside = [f"{name} {_number(value)}" for name, value in self._asides()]
        if self.unit == "distance" and self.diameter is None and math.isfinite(self.epsilon):
            aside.append("infinite per record, as no diameter is declared")
        text += f" ({', '.join(aside)})" if aside else ""
        text += f"; {' and '.join(self.unprotected)} not protected" if self.unprotected else ""
        return f"{text}; {self.covers}" if self.covers else text

    def to_dict(self) -> dict[str, Any]:
        """Return every figure by name, with the steps as a list of dicts.

        Examples
        --------
        >>> from skldp import PrivacyGuarantee
        >>> PrivacyGuarantee(1.5).to_dict()["steps"][0]["epsilon"]
        1.5
        """
        figures = asdict(replace(self, parts=()))
        del figures["parts"]
        figures |= {"figures": dict(self.figures), "unprotected": list(self.unprotected)}
        return figures | {"steps": [step.to_dict() for step in self.steps]}

    def to_json(self) -> str:
        """Return `to_dict` as strict JSON, in which infinity is the string ``"inf"``.

        Examples
        --------
        >>> import json
        >>> from skldp import PrivacyGuarantee
        >>> json.loads(PrivacyGuarantee(float("inf")).to_json())["epsilon"]
        'inf'
        """
        return json.dumps(_without_infinity(self.to_dict()), allow_nan=False)

    def to_frame(self) -> Any:
        """Return the steps as a table, one row each; the column ``epsilon`` adds up to the guarantee's.

        Returns
        -------
        pandas.DataFrame
            With the columns ``name``, ``epsilon``, ``delta``, ``unit``, ``stated``, ``basis``.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        return as_frame([step.to_dict() for step in self.steps])

    def _repr_html_(self) -> str:
        rows = [("epsilon", _number(self.epsilon)), ("delta", _number(self.delta)), ("per", _scope(self.unit))]
        rows += [(name, _number(value)) for name, value in self._asides()]
        rows += [("model", self.model), ("basis", self.basis), *([("covers", self.covers)] if self.covers else [])]
        if self.unprotected:
            rows.append(("not protected", " and ".join(self.unprotected)))
        if self.seeded:
            rows.append(("noise", "from a seed: void for anyone who knows it"))
        shown = html_table("Privacy guarantee", rows)
        if len(self.steps) == 1:
            return shown
        steps = ((step.name, _number(step.epsilon), _scope(step.unit), step.basis) for step in self.steps)
        return shown + html_table("Steps", steps, ("", "epsilon", "per", "basis"))

    def _parts_to_add(self) -> tuple[GuaranteeStep, ...]:
        """Return the steps, or one step if the basis says more than they do."""
        return self.parts if self.parts and self.basis == sentence(self.parts) else (self.as_step(),)

    def _asides(self) -> list[tuple[str, float]]:
        named = [("stated", self.stated), ("per feature", self.per_feature), *self.figures]
        if self.unit == "distance" and self.diameter is not None:
            named.append(("over the declared diameter", self.plain_epsilon))
        return [(name, value) for name, value in named if value is not None]


def _scope(unit: str) -> str:
    return "unit of distance" if unit == "distance" else unit


def _without_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_infinity(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_infinity(one) for one in value]
    return str(value) if value in (math.inf, -math.inf) else value


def _number(value: float) -> str:
    return f"{value:.4g}" if not 1e4 <= value < 1e15 else f"{value:,.0f}"
