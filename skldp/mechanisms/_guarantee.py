"""What a release really promises: the exact worst-case loss, and how several releases add up."""

import json
import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from skldp._checks import check_between, check_fraction, check_whole
from skldp._tables import as_frame, html_table
from skldp.mechanisms._guarantee_steps import GuaranteeStep, add_up, sentence
from skldp.mechanisms._odds import product_above, sum_above

__all__ = ["PrivacyGuarantee", "check_pure_local"]

_UNITS = ("record", "label", "distance")
_MODELS = ("local", "central")


@dataclass(frozen=True)
class PrivacyGuarantee:
    r"""The privacy of a release: what was asked for beside what is proved.

    A mechanism M is :math:`(\varepsilon, \delta)`-locally differentially private if, for every two inputs of the
    declared domain and every set S of outputs, :math:`P(M(x) \in S) \le e^\varepsilon P(M(x') \in S) + \delta`.
    `epsilon` is the smallest such number that is proved, never the one that was asked for.

    Parameters
    ----------
    epsilon : float
        The exact worst-case log-likelihood ratio (natural log) over the declared domain; per unit of Euclidean
        distance when `unit` is ``"distance"``. Infinite when nothing is protected.
    delta : float, default=0.0
        What `basis` says it is.
    unit : {"record", "label", "distance"}, default="record"
        What may change from one input to the other: a row with all its features, one label, or a vector, by one
        unit of distance.
    per_feature : float, default=None
        The same epsilon for one feature alone, where that exists.
    stated : float, default=None
        The epsilon that was asked for.
    basis : str, default="exact"
        One line: exact, or which theorem.
    diameter : float, default=None
        For ``"distance"``: the largest distance between two inputs of the declared domain.
    figures : tuple of (str, float), default=()
        Other figures that are published for the same release, each with its name.
    seeded : bool, default=False
        Whether the noise comes from a seed; the guarantee is void against whoever knows it.
    model : {"local", "central"}, default="local"
        Whether each person's own release has the guarantee, or only the mixture that a trusted shuffler hands out.
    parts : tuple of GuaranteeStep, default=()
        What it adds up, as `steps` shows it; no part of what makes two guarantees equal. Parts that do not add up to
        epsilon and delta are left out: they are those of another guarantee, of which this one was made.

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
    parts: tuple[GuaranteeStep, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        check_between("epsilon", self.epsilon, 0, math.inf)
        check_between("delta", self.delta, 0, 1)
        for name in ("per_feature", "stated", "diameter"):
            if getattr(self, name) is not None:
                check_between(name, getattr(self, name), 0, math.inf)
        if self.unit not in _UNITS:
            raise ValueError(f"unit must be one of {_UNITS}. Got {self.unit!r} instead.")
        if self.model not in _MODELS:
            raise ValueError(f"model must be one of {_MODELS}. Got {self.model!r} instead.")
        if self.parts and not add_up(self.parts, self.epsilon, self.delta):
            object.__setattr__(self, "parts", ())

    @property
    def steps(self) -> tuple[GuaranteeStep, ...]:
        """What is counted, one step for each release; of a single one, itself."""
        return self.parts or (self.as_step(),)

    def as_step(self, name: str = "") -> GuaranteeStep:
        """As one step of a larger guarantee.

        Parameters
        ----------
        name : str, default=""

        Returns
        -------
        GuaranteeStep
        """
        return GuaranteeStep(name, self.epsilon, self.delta, self.unit, self.stated, self.basis)

    @property
    def plain_epsilon(self) -> float:
        """The epsilon between any two inputs of the declared domain; infinite where no diameter is declared."""
        if self.unit != "distance":
            return self.epsilon
        return math.inf if self.diameter is None else product_above(self.epsilon, self.diameter)

    def over_diameter(self, diameter: float | None = None) -> "PrivacyGuarantee":
        """Turn a guarantee per unit of distance into one per record.

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
            raise ValueError(
                "A guarantee per unit of distance says nothing about a whole record until the domain's diameter "
                "is declared: pass diameter."
            )
        return replace(
            self,
            epsilon=product_above(self.epsilon, declared),
            unit="record",
            stated=None,
            diameter=None,
            basis=f"{_number(self.epsilon)} per unit of distance over a diameter of {_number(declared)}; {self.basis}",
        )

    def shuffled(self, n: int, delta: float) -> "PrivacyGuarantee":
        r"""Give the central guarantee after a trusted shuffler has mixed the answers of `n` people.

        Parameters
        ----------
        n : int
            How many people answer with this same mechanism.
        delta : float
            In (0, 1).

        Returns
        -------
        PrivacyGuarantee
            With ``model="central"``.

        Raises
        ------
        ValueError
            If this guarantee is not pure and local, or a number is out of range.

        Notes
        -----
        The figure holds for every mechanism of this epsilon: binary randomized response is the worst, and its loss is
        computed from above in floating point. :func:`skldp.accounting.shuffled` uses a mechanism's own law instead,
        adds up rounds, and counts people who collude.

        References
        ----------
        Balle, Bell, Gascon and Nissim, "The privacy blanket of the shuffle model", CRYPTO 2019, Lemma 5.3; Feldman,
        McMillan and Talwar, "Stronger privacy amplification by shuffling for Renyi and approximate differential
        privacy", SODA 2023.

        Examples
        --------
        >>> from skldp.mechanisms._guarantee import PrivacyGuarantee
        >>> round(PrivacyGuarantee(2.0).shuffled(8_000, 1e-6).epsilon, 3)
        0.129
        """
        # Not at the top: whoever only prints a guarantee need not wait for scipy.
        from skldp.mechanisms._shuffling import MOST_EPSILON, any_law, shuffled_epsilon

        check_pure_local(self)
        check_whole("n", n, least=1, most=2**62)
        check_fraction("delta", delta)
        return replace(
            self,
            epsilon=shuffled_epsilon(any_law(min(self.epsilon, MOST_EPSILON)), n, delta, self.epsilon),
            delta=delta,
            per_feature=None,
            figures=(),
            model="central",
            basis=f"shuffled answers of {n:,} people, bounded from epsilon alone; each one's own: {self.basis}",
        )

    def __add__(self, other: Any) -> "PrivacyGuarantee":
        """Add two releases about the same person: epsilons and deltas add up (basic composition).

        A guarantee for the record and one for its label add up to one for the record with its label. One per unit
        of distance is first turned into one per record over its declared diameter.
        """
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        if self.model != other.model:
            raise ValueError(
                f"A local guarantee and a central one do not add up. Got {self.model!r} and {other.model!r} instead."
            )
        left, right = self, other
        if left.unit != right.unit and "distance" in (left.unit, right.unit):
            left, right = left.over_diameter(), right.over_diameter()
        parts = left._told_by_steps() + right._told_by_steps()
        return PrivacyGuarantee(
            epsilon=sum_above(left.epsilon, right.epsilon),
            delta=min(1.0, sum_above(left.delta, right.delta)),
            unit=left.unit if left.unit == right.unit else "record",
            stated=None if left.stated is None or right.stated is None else left.stated + right.stated,
            basis=sentence(parts),
            diameter=_common_diameter(left, right),
            seeded=left.seeded or right.seeded,
            model=left.model,
            parts=parts,
        )

    def __le__(self, other: Any) -> bool:
        """Whether this one protects at least as well: same unit and model, neither number larger."""
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        comparable = (self.unit, self.model) == (other.unit, other.model)
        return comparable and self.epsilon <= other.epsilon and self.delta <= other.delta

    def __ge__(self, other: Any) -> bool:
        """Whether the other one protects at least as well."""
        return other <= self if isinstance(other, PrivacyGuarantee) else NotImplemented

    def __str__(self) -> str:
        """One readable line."""
        return f"{self.headline()}; {self.basis}{'; void against whoever knows the seed' if self.seeded else ''}"

    def headline(self) -> str:
        """The figures alone, in a few words.

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
        return f"{text} ({', '.join(aside)})" if aside else text

    def to_dict(self) -> dict[str, Any]:
        """Every figure by its name, with the steps as a list of dicts.

        Examples
        --------
        >>> from skldp import PrivacyGuarantee
        >>> PrivacyGuarantee(1.5).to_dict()["steps"][0]["epsilon"]
        1.5
        """
        figures = asdict(replace(self, parts=()))
        del figures["parts"]
        return figures | {"figures": dict(self.figures), "steps": [step.to_dict() for step in self.steps]}

    def to_json(self) -> str:
        """`to_dict` as strict JSON, in which what is infinite is the string ``"inf"``.

        Examples
        --------
        >>> import json
        >>> from skldp import PrivacyGuarantee
        >>> json.loads(PrivacyGuarantee(float("inf")).to_json())["epsilon"]
        'inf'
        """
        return json.dumps(_without_infinity(self.to_dict()), allow_nan=False)

    def to_frame(self) -> Any:
        """The steps as a table, one row each; their column ``epsilon`` adds up to that of the whole.

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
        rows += [("model", self.model), ("basis", self.basis)]
        if self.seeded:
            rows.append(("noise", "from a seed: void against whoever knows it"))
        shown = html_table("Privacy guarantee", rows)
        if len(self.steps) == 1:
            return shown
        steps = ((step.name, _number(step.epsilon), _scope(step.unit), step.basis) for step in self.steps)
        return shown + html_table("Steps", steps, ("", "epsilon", "per", "basis"))

    def _told_by_steps(self) -> tuple[GuaranteeStep, ...]:
        """The steps, if the basis says no more than they do; else what it says as one step."""
        return self.parts if self.parts and self.basis == sentence(self.parts) else (self.as_step(),)

    def _asides(self) -> list[tuple[str, float]]:
        named = [("stated", self.stated), ("per feature", self.per_feature), *self.figures]
        if self.unit == "distance" and self.diameter is not None:
            named.append(("over the declared diameter", self.plain_epsilon))
        return [(name, value) for name, value in named if value is not None]


def check_pure_local(guarantee: PrivacyGuarantee) -> None:
    """Refuse a guarantee that a shuffler makes nothing of."""
    if guarantee.delta > 0 or guarantee.model != "local" or guarantee.unit == "distance":
        raise ValueError(f"Only a pure guarantee of one person's own release can be shuffled. Got {guarantee} instead.")


def _common_diameter(left: PrivacyGuarantee, right: PrivacyGuarantee) -> float | None:
    if left.unit != "distance" or left.diameter is None or right.diameter is None:
        return None
    return max(left.diameter, right.diameter)


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
