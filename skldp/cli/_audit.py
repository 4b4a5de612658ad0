"""``skldp audit``: attack a mechanism and print how much epsilon its outputs give away."""

import warnings
from typing import Annotated

import numpy as np
import typer

from skldp.cli._options import delta_option, one_line_errors, parse_names
from skldp.exceptions import PrivacyGuaranteeWarning, SeededNoiseWarning
from skldp.study._audit.pairs import audit_estimator
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, feature_mechanism, label_mechanism, takes_delta

__all__ = ["audit"]

_NAMES = ", ".join([*FEATURE_MECHANISMS, *LABEL_MECHANISMS])


def audit(
    mechanism: Annotated[str, typer.Argument(help=f"all, or one or more with commas: {_NAMES}.")] = "all",
    epsilon: Annotated[float, typer.Option(help="What the mechanism is asked for: natural log.")] = 1.0,
    features: Annotated[int, typer.Option(help="Numeric features of one record.", min=1)] = 2,
    bits: Annotated[int, typer.Option(help="Bits per feature, for the bit-flipping mechanisms.")] = 10,
    classes: Annotated[int, typer.Option(help="Number of classes, for labels.", min=2)] = 2,
    low: Annotated[float, typer.Option(help="Least value of a feature.")] = -1.0,
    high: Annotated[float, typer.Option(help="Largest value of a feature.")] = 1.0,
    trials: Annotated[int, typer.Option(help="Outputs to look at.")] = 20_000,
    confidence: Annotated[float, typer.Option(help="Of every lower bound.")] = 0.9999,
    delta: Annotated[float | None, typer.Option(help="For mechanisms that have one; without, their default.")] = None,
) -> None:
    """Bound the epsilon of a mechanism from below, from its outputs alone; exit code 1 if a claim is refuted."""
    names = [*FEATURE_MECHANISMS, *LABEL_MECHANISMS] if mechanism == "all" else parse_names(mechanism)
    refuted = False
    with one_line_errors(ValueError), warnings.catch_warnings():
        # What is claimed is the exact figure, and it is in the line that is printed.
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
        for name in names:
            # With all of them, it is for those that have one.
            refuses = mechanism == "all" and not takes_delta(name)
            given = {} if refuses or name in LABEL_MECHANISMS else delta_option(name, delta)
            if name in LABEL_MECHANISMS:
                fitted = label_mechanism(name, epsilon=epsilon, classes=np.arange(classes)).fit(np.arange(classes))
            else:
                made = feature_mechanism(name, epsilon=epsilon, bounds=(low, high), n_bits=bits, **given)
                fitted = made.fit(np.full((1, features), (low + high) / 2))
            result = audit_estimator(
                fitted, n_trials=trials, confidence=confidence, delta=fitted.privacy_guarantee_.delta
            )
            refuted |= result.refutes_claim
            typer.echo(f"{name}: {result}")
    if refuted:
        raise typer.Exit(1)
