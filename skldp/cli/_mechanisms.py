"""``skldp guarantee`` and ``skldp audit``: what a mechanism promises, and whether its outputs keep it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import numpy as np
import typer

from skldp.cli._options import Names
from skldp.exceptions import PrivacyGuaranteeWarning, SeededNoiseWarning
from skldp.study._audit.pairs import audit_estimator
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, feature_mechanism, label_mechanism, takes_delta
from skldp.study._datasets import StudyInputError

__all__ = ["audit", "guarantee"]

_NAMES = ", ".join([*FEATURE_MECHANISMS, *LABEL_MECHANISMS])
_ALL = Names("all")

Epsilon = Annotated[float, typer.Option(help="What is asked for: natural log, one record or one label.")]
Features = Annotated[int, typer.Option(help="Numeric features of one record.", min=1)]
Bits = Annotated[int, typer.Option(help="Bits per feature, for the bit-flipping mechanisms.")]
Low = Annotated[float, typer.Option(help="Least value of a feature.")]
High = Annotated[float, typer.Option(help="Largest value of a feature.")]


def guarantee(
    mechanism: Annotated[str, typer.Argument(help=f"One of: {_NAMES}.")],
    epsilon: Epsilon = 1.0,
    features: Features = 64,
    bits: Bits = 10,
    classes: Annotated[int, typer.Option(help="Number of classes, for labels.", min=1)] = 2,
    low: Low = -1.0,
    high: High = 1.0,
    delta: Annotated[
        float | None, typer.Option(help="Only for gaussian and best.", show_default="1e-06 for gaussian, else 0")
    ] = None,
) -> None:
    """Print the guarantee of a mechanism at given sizes: stated beside exact."""
    # From the middle of the bounds to a corner.
    radius = (high - low) / 2 * features**0.5 if low < high else None
    with _both_figures_are_printed():
        fitted = _fitted(mechanism, epsilon, features, classes, low, high, delta, n_bits=bits, radius=radius)
    typer.echo(f"{mechanism}: {fitted.privacy_guarantee_}")


def audit(
    mechanism: Annotated[
        Names, typer.Argument(help=f"all, or one or more with commas: {_NAMES}.", parser=Names)
    ] = _ALL,
    epsilon: Epsilon = 1.0,
    features: Features = 2,
    bits: Bits = 10,
    classes: Annotated[int, typer.Option(help="Number of classes, for labels.", min=2)] = 2,
    low: Low = -1.0,
    high: High = 1.0,
    trials: Annotated[int, typer.Option(help="Outputs to look at.")] = 20_000,
    confidence: Annotated[float, typer.Option(help="Of every lower bound.")] = 0.9999,
    delta: Annotated[float | None, typer.Option(help="For mechanisms that have one; without, their default.")] = None,
) -> None:
    """Bound the epsilon of a mechanism from below, from its outputs alone; exit code 1 if a claim is refuted."""
    everything = mechanism == _ALL
    refuted = False
    with _both_figures_are_printed():
        for name in [*FEATURE_MECHANISMS, *LABEL_MECHANISMS] if everything else mechanism:
            # With all of them, it is for those that have one.
            given = None if everything and not takes_delta(name) else delta
            fitted = _fitted(name, epsilon, features, classes, low, high, given, n_bits=bits)
            delta_claimed = fitted.privacy_guarantee_.delta
            result = audit_estimator(fitted, n_trials=trials, confidence=confidence, delta=delta_claimed)
            refuted |= result.refutes_claim
            typer.echo(f"{name}: {result}")
    if refuted:
        raise typer.Exit(1)


@contextmanager
def _both_figures_are_printed() -> Iterator[None]:
    """The stated epsilon stands beside the exact one in the line that is printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
        yield


def _fitted(
    name: str,
    epsilon: float,
    features: int,
    classes: int,
    low: float,
    high: float,
    delta: float | None,
    **options: Any,
) -> Any:
    """The mechanism of a name, fitted to public sizes alone."""
    if name in LABEL_MECHANISMS:
        labels = np.arange(classes)
        return label_mechanism(name, epsilon=epsilon, classes=labels).fit(labels)
    if delta is not None:
        if not takes_delta(name):
            having = ", ".join(filter(takes_delta, FEATURE_MECHANISMS))
            raise StudyInputError(f"--delta is for {having}; {name} has none.")
        options["delta"] = delta
    made = feature_mechanism(name, epsilon=epsilon, bounds=(low, high), **options)
    return made.fit(np.full((1, features), (low + high) / 2))
