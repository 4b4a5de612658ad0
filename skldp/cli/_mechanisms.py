"""``skldp guarantee`` and ``skldp audit``: the guarantee of a mechanism, and an audit of its outputs."""

import warnings
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from skldp._checks import check_choice, check_epsilon
from skldp.cli import _names
from skldp.cli._options import Names, made_up_row
from skldp.exceptions import PrivacyGuaranteeWarning, SeededNoiseWarning, TooFewPeopleWarning

# Few rows: nothing is learnt from them.
_MADE_UP = 60
_AUDITED = (*_names.FEATURES, *_names.LABELS)
_ALL = Names("all")
# An audit of all of some 30 mechanisms refutes a correct one with a probability of at most 0.3%.
_CONFIDENCE = 0.9999

EPILOGS = {
    "guarantee": _names.epilog(
        "skldp guarantee bitrand --epsilon 1 --features 768",
        "skldp guarantee table --epsilon 2 --schema people.json",
        names={f"for {kind}": names for kind, names in _names.GUARANTEED.items()},
    ),
    "audit": _names.epilog(
        "skldp audit all --trials 100000",
        "skldp audit piecewise,duchi --epsilon 2",
        names={"mechanisms": _AUDITED},
    ),
}

Epsilon = Annotated[float, typer.Option(help="Budget of one record or one label, natural log.")]
Features = Annotated[int, typer.Option(help="Numeric features of one record.", min=1)]
Bits = Annotated[int, typer.Option(help="Bits per feature, for the bit-flipping mechanisms.")]
Low = Annotated[float, typer.Option(help="Least value of a feature.")]
High = Annotated[float, typer.Option(help="Largest value of a feature.")]


def guarantee(
    mechanism: Annotated[str, typer.Argument(help="Mechanism or model, one of the names below.")],
    epsilon: Epsilon = 1.0,
    features: Features = 64,
    bits: Bits = 10,
    classes: Annotated[int, typer.Option(help="Classes of a label, or categories of a column.", min=1)] = 2,
    low: Low = -1.0,
    high: High = 1.0,
    delta: Annotated[
        float | None, typer.Option(help="Delta, for gaussian and best. Default: 1e-06 for gaussian, else 0.")
    ] = None,
    schema: Annotated[str | None, typer.Option(help="Columns of a table: a .json file, or its text.")] = None,
) -> None:
    """Print the stated and the exact epsilon of a mechanism.

    Sizes are those of the records that it releases. A model that learns from people is a mechanism as well.
    """
    from skldp.study._table_files import read_study_schema

    # Distance from the middle of the bounds to a corner.
    radius = (high - low) / 2 * features**0.5 if low < high else None
    columns = None if schema is None else read_study_schema(schema)
    sizes: dict[str, Any] = {"n_features": features, "n_classes": classes, "bounds": (low, high), "n_bits": bits}
    fitted = fitted_mechanism(mechanism, epsilon, **sizes, delta=delta, schema=columns, radius=radius)
    typer.echo(f"{mechanism}: {fitted.privacy_guarantee_}")


def audit(
    mechanism: Annotated[
        Names, typer.Argument(help="all, or one or more of the names below, with commas.", parser=Names)
    ] = _ALL,
    epsilon: Epsilon = 1.0,
    features: Features = 2,
    bits: Bits = 10,
    classes: Annotated[int, typer.Option(help="Number of classes, for labels.", min=2)] = 2,
    low: Low = -1.0,
    high: High = 1.0,
    trials: Annotated[int, typer.Option(help="Number of outputs.")] = 20_000,
    delta: Annotated[float | None, typer.Option(help="Delta, for mechanisms that have one.")] = None,
) -> None:
    """Test the epsilon of a mechanism by its outputs alone.

    The printed lower bound holds with a confidence of 99.99%. The exit code is 1 if it refutes a guarantee.
    """
    from skldp.study._audit import audit_estimator
    from skldp.study._catalogue import takes_delta
    from skldp.study._table_files import StudyInputError

    everything = mechanism == _ALL
    for name in () if everything else mechanism:
        check_choice("The mechanism", name, _AUDITED, StudyInputError)
    refuted = False
    sizes: dict[str, Any] = {"n_features": features, "n_classes": classes, "bounds": (low, high), "n_bits": bits}
    with warnings.catch_warnings():
        # The printed line has both epsilons.
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
        for name in _AUDITED if everything else mechanism:
            # With all mechanisms, delta is only for those that have one.
            given = None if everything and not takes_delta(name) else delta
            fitted = fitted_mechanism(name, epsilon, **sizes, delta=given)
            delta_claimed = fitted.privacy_guarantee_.delta
            result = audit_estimator(fitted, n_trials=trials, confidence=_CONFIDENCE, delta=delta_claimed)
            refuted |= result.refutes_claim
            typer.echo(f"{name}: {result}")
    if refuted:
        raise typer.Exit(1)


def fitted_mechanism(
    name: str,
    epsilon: float,
    *,
    n_features: int = 64,
    n_classes: int = 2,
    bounds: tuple[float, float] = (-1.0, 1.0),
    delta: float | None = None,
    schema: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Fit a mechanism or a model to made-up rows of given sizes; raise StudyInputError for an option that it lacks."""
    import numpy as np

    from skldp.study._catalogue import make_named, takes_delta
    from skldp.study._table_files import StudyInputError

    check_epsilon(epsilon)
    kind = next((kind for kind, names in _names.GUARANTEED.items() if name in names), "")
    if delta is not None and kind and not takes_delta(name):
        having = ", ".join(filter(takes_delta, _names.FEATURES))
        raise StudyInputError(f"--delta is for {having}; {name} has none.")
    if name == "table" and schema is None:
        raise StudyInputError("table needs --schema, the domains of its columns.")
    if kind and name != "table" and schema is not None:
        raise StudyInputError(f"--schema is for table; {name} has none.")
    options |= {} if delta is None else {"delta": delta}
    options |= {} if schema is None else {"schema": dict(schema)}
    classes, n = np.arange(n_classes), max(_MADE_UP, n_classes)
    made = make_named(
        name,
        epsilon=epsilon,
        bounds=bounds,
        target_bounds=bounds,
        classes=classes,
        categories=[classes] * n_features,
        **options,
    )
    rows, codes = np.full((n, n_features), bounds[0] / 2 + bounds[1] / 2), np.zeros((1, n_features), dtype=int)
    data: dict[str, tuple[Any, ...]] = {
        "rows of numbers": (rows[:1],),
        "categories": (codes,),
        "tables with a --schema": (schema and made_up_row(list(schema.values())),),
        "labels": (classes,),
        "labels as vectors": (classes,),
        "several labels": (codes,),
        "targets": (rows[:, 0],),
        "regressions": (rows, rows[:, 0]),
        "classifications": (rows, np.arange(n) % n_classes),
        "moments": (rows,),
    }
    with warnings.catch_warnings():
        # The guarantee shows both epsilons, and nothing is learnt.
        for category in (PrivacyGuaranteeWarning, SeededNoiseWarning, TooFewPeopleWarning):
            warnings.simplefilter("ignore", category)
        return made.fit(*data[kind])
