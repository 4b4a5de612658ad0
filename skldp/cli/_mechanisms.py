"""``skldp guarantee`` and ``skldp audit``: what a mechanism promises, and whether its outputs keep it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from skldp.cli._options import Names
from skldp.exceptions import PrivacyGuaranteeWarning, SeededNoiseWarning
from skldp.study._audit.pairs import audit_estimator
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, takes_delta
from skldp.study._features import read_study_schema
from skldp.study._guarantees import GUARANTEED, Sizes, fitted_mechanism
from skldp.study._tables import StudyInputError

__all__ = ["audit", "guarantee"]

_AUDITED = (*FEATURE_MECHANISMS, *LABEL_MECHANISMS)
_NAMES = ", ".join(_AUDITED)
_ALL = Names("all")
_GUARANTEED = "; ".join(f"of {what}: {', '.join(names)}" for what, names in GUARANTEED.items())

Epsilon = Annotated[float, typer.Option(help="What is asked for: natural log, one record or one label.")]
Features = Annotated[int, typer.Option(help="Numeric features of one record.", min=1)]
Bits = Annotated[int, typer.Option(help="Bits per feature, for the bit-flipping mechanisms.")]
Low = Annotated[float, typer.Option(help="Least value of a feature.")]
High = Annotated[float, typer.Option(help="Largest value of a feature.")]


def guarantee(
    mechanism: Annotated[str, typer.Argument(help=f"One, {_GUARANTEED}.")],
    epsilon: Epsilon = 1.0,
    features: Features = 64,
    bits: Bits = 10,
    classes: Annotated[int, typer.Option(help="Classes of a label, or categories of a column.", min=1)] = 2,
    low: Low = -1.0,
    high: High = 1.0,
    delta: Annotated[
        float | None, typer.Option(help="Only for gaussian and best.", show_default="1e-06 for gaussian, else 0")
    ] = None,
    schema: Annotated[str | None, typer.Option(help="Of a table: a .json file, or its text.")] = None,
) -> None:
    """Print the guarantee of a mechanism, or of a model that learns, at given sizes: stated beside exact."""
    # From the middle of the bounds to a corner.
    radius = (high - low) / 2 * features**0.5 if low < high else None
    columns = None if schema is None else read_study_schema(schema)
    sizes = Sizes(features, classes, low, high, bits, delta, columns)
    fitted = fitted_mechanism(mechanism, epsilon, sizes, radius=radius)
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
    unknown = [name for name in mechanism if name not in _AUDITED]
    if unknown and not everything:
        raise StudyInputError(f"The mechanism must be one of {_NAMES}. Got {unknown[0]!r} instead.")
    refuted = False
    with _both_figures_are_printed():
        for name in _AUDITED if everything else mechanism:
            # With all of them, it is for those that have one.
            given = None if everything and not takes_delta(name) else delta
            fitted = fitted_mechanism(name, epsilon, Sizes(features, classes, low, high, bits, given))
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
