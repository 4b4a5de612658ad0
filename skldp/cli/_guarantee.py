"""``skldp guarantee``: what a mechanism really promises at given sizes, without any data."""

import warnings
from typing import Annotated

import numpy as np
import typer

from skldp.cli._options import delta_option, one_line_errors
from skldp.exceptions import PrivacyGuaranteeWarning
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, feature_mechanism, label_mechanism

__all__ = ["guarantee"]

_NAMES = ", ".join([*FEATURE_MECHANISMS, *LABEL_MECHANISMS])


def guarantee(
    mechanism: Annotated[str, typer.Argument(help=f"One of: {_NAMES}.")],
    epsilon: Annotated[float, typer.Option(help="What is asked for: natural log, one record or one label.")] = 1.0,
    features: Annotated[int, typer.Option(help="Numeric features of one record.", min=1)] = 64,
    bits: Annotated[int, typer.Option(help="Bits per feature, for the bit-flipping mechanisms.")] = 10,
    classes: Annotated[int, typer.Option(help="Number of classes, for labels.", min=1)] = 2,
    low: Annotated[float, typer.Option(help="Least value of a feature.")] = -1.0,
    high: Annotated[float, typer.Option(help="Largest value of a feature.")] = 1.0,
    delta: Annotated[
        float | None, typer.Option(help="Only for gaussian and best.", show_default="1e-06 for gaussian, else 0")
    ] = None,
) -> None:
    """Print the guarantee of a mechanism at given sizes: stated beside exact."""
    with one_line_errors(ValueError), warnings.catch_warnings():
        # Both figures are in the line that is printed.
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        given = delta_option(mechanism, delta) if mechanism in FEATURE_MECHANISMS else {}
        if mechanism in LABEL_MECHANISMS:
            fitted = label_mechanism(mechanism, epsilon=epsilon, classes=np.arange(classes)).fit(np.arange(classes))
        else:
            made = feature_mechanism(
                mechanism,
                epsilon=epsilon,
                bounds=(low, high),
                n_bits=bits,
                # From the middle of the bounds to a corner.
                radius=(high - low) / 2 * features**0.5 if low < high else None,
                **given,
            )
            fitted = made.fit(np.full((1, features), (low + high) / 2))
    typer.echo(f"{mechanism}: {fitted.privacy_guarantee_}")
