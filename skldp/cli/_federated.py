"""``skldp federated``: federated learning with features, gradients or labels perturbed, over epsilon."""

import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from sklearn.model_selection import train_test_split

from skldp.cli._options import (
    BoundsOption,
    ColumnsOption,
    EncodingOption,
    Epsilons,
    Missing,
    MissingOption,
    Names,
    SchemaOption,
    SepOption,
    TargetOption,
    printable,
    progress_bar,
    writable,
)
from skldp.exceptions import SeededNoiseWarning
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, feature_mechanism, label_mechanism
from skldp.study._comparison import notes_on_table
from skldp.study._datasets import BUNDLED, load_study_data
from skldp.study._extras import require
from skldp.study._federated.settings import (
    FederatedSetting,
    features_perturbed,
    gradients_anonymised,
    gradients_perturbed,
    labels_perturbed,
    noiseless,
)
from skldp.study._federated.study import FEDERATED_AXES, FederatedDisplay, FederatedTable, federated_study
from skldp.study._tables import TABLE_FILES

__all__ = ["federated"]

_CLASSES = [name for name, (_, _, of_target) in BUNDLED.items() if of_target is None]
_FEATURES, _NONE, _EPSILONS = Names("bitrand,bitrand-exact"), Names("none"), Epsilons("1,2,5,10")
_MECHANISMS = f"none, or one or more with commas: {', '.join(FEATURE_MECHANISMS)}."


class Model(StrEnum):
    """The models that can be trained."""

    SOFTMAX = "softmax"
    LINEAR = "linear"


def _names(about: str) -> Any:
    return typer.Option(help=about, parser=Names)


def federated(
    data: Annotated[str, typer.Argument(help=f"{', '.join(_CLASSES)}, or a {TABLE_FILES} or .npz file.")] = "digits",
    target: TargetOption = None,
    bounds: BoundsOption = None,
    columns: ColumnsOption = None,
    schema: SchemaOption = None,
    missing: MissingOption = Missing.REFUSE,
    sep: SepOption = None,
    encoding: EncodingOption = "utf-8",
    features: Annotated[Names, _names(f"On features, {_MECHANISMS}")] = _FEATURES,
    gradients: Annotated[Names, _names(f"On gradients, {_MECHANISMS}")] = _NONE,
    anonymised: Annotated[Names, _names(f"On gradients with an anonymiser, {_MECHANISMS}")] = _NONE,
    labels: Annotated[str, typer.Option(help=f"With features, none or {', '.join(LABEL_MECHANISMS)}.")] = "none",
    label_epsilon: Annotated[float, typer.Option(help="The budget of the label.")] = 1.0,
    only_labels: Annotated[Names, _names(f"Labels alone: none, {', '.join(LABEL_MECHANISMS)}.")] = _NONE,
    epsilons: Annotated[Epsilons, typer.Option(help="Budgets, with commas.", parser=Epsilons)] = _EPSILONS,
    clients: Annotated[int, typer.Option(help="Clients that the training rows are dealt to.", min=1)] = 200,
    rounds: Annotated[int, typer.Option(help="Rounds of gradients.", min=1)] = 20,
    gradient_bound: Annotated[float, typer.Option(help="Where a perturbed gradient's coordinates are clipped.")] = 0.1,
    delta: Annotated[float, typer.Option(help="Of the shuffled guarantee.")] = 1e-6,
    model: Annotated[Model, typer.Option(help="What is trained.")] = Model.SOFTMAX,
    seeds: Annotated[int, typer.Option(help="Trainings of each setting at each epsilon.", min=1)] = 3,
    seed: Annotated[int | None, typer.Option(help="Make the study repeatable.", min=0)] = None,
    jobs: Annotated[int | None, typer.Option(help="Trainings at once; -1 takes all cores.")] = None,
    csv_path: Annotated[
        Path, typer.Option("--csv", help="Where to write the table.", parser=writable(), metavar="PATH")
    ] = Path("federated.csv"),
    png_path: Annotated[
        Path, typer.Option("--png", help="Where to write the picture.", parser=writable(), metavar="PATH")
    ] = Path("federated.png"),
) -> None:
    """Train by FedSGD over many clients under local privacy, and compare what is perturbed."""
    # Asked before hours of work.
    require("matplotlib")
    loaded = load_study_data(
        data,
        target=target,
        bounds=bounds,
        task="classification",
        columns=columns,
        schema=schema,
        missing=missing.value,
        separator=sep,
        encoding=encoding,
    )
    X = loaded.scaled()[0]
    settings = _settings(features, gradients, anonymised, labels, label_epsilon, only_labels, loaded.classes)
    X, X_test, y, y_test = train_test_split(X, loaded.y, test_size=0.25, stratify=loaded.y, random_state=0)
    with progress_bar(Console()) as progress, warnings.catch_warnings():
        # The last line says that the noise comes from a seed.
        warnings.simplefilter("ignore", SeededNoiseWarning)
        bar = progress.add_task("federated learning", total=None)
        table = federated_study(
            X,
            y,
            X_test,
            y_test,
            settings,
            epsilons=epsilons,
            n_seeds=seeds,
            n_jobs=jobs,
            seed=seed,
            progress=lambda done, total: progress.update(bar, completed=done, total=total),
            n_clients=clients,
            n_rounds=rounds,
            gradient_bound=gradient_bound,
            delta=delta,
            model=model.value,
        )
    # Before anything is printed, which a terminal may refuse.
    table.to_csv(csv_path)
    _draw(table, loaded.name, png_path)
    typer.echo("\n".join(map(printable, str(table).split("\n"))))
    for line in notes_on_table(loaded):
        typer.echo(printable(line))
    if seed is not None:
        typer.echo(f"The noise comes from seed {seed}: void against whoever knows it.")
    typer.echo(printable(f"Wrote {csv_path} and {png_path}."))


def _settings(
    features: Names,
    gradients: Names,
    anonymised: Names,
    labels: str,
    label_epsilon: float,
    only_labels: Names,
    classes: Any,
) -> list[FederatedSetting]:
    label = None if labels == "none" else label_mechanism(labels, epsilon=label_epsilon, classes=classes)
    return [
        noiseless(),
        *(
            features_perturbed(feature_mechanism(name, transform_noise=False), label_mechanism=label, name=name)
            for name in _without_none(features)
        ),
        *(gradients_perturbed(feature_mechanism(n), name=f"{n} on gradients") for n in _without_none(gradients)),
        *(gradients_anonymised(feature_mechanism(n), name=f"{n} anonymised") for n in _without_none(anonymised)),
        *(
            labels_perturbed(label_mechanism(name, classes=classes), name=f"{name} on labels")
            for name in _without_none(only_labels)
        ),
    ]


def _without_none(named: Names) -> list[str]:
    return [name for name in named if name != "none"]


def _draw(table: FederatedTable, title: str, path: Path) -> None:
    columns = table.to_dict()
    axes = [axis for axis, (column, _) in FEDERATED_AXES.items() if (columns[column] < 1e300).any()] or ["exact"]
    figure = require("matplotlib.figure").Figure(figsize=(5 * len(axes), 8), layout="constrained")
    grid = figure.subplots(2, len(axes), sharey="row", squeeze=False)
    for row, metric in zip(grid, ("accuracy", "auc"), strict=True):
        for ax, axis in zip(row, axes, strict=True):
            FederatedDisplay.from_frame(table, metric=metric, epsilon_axis=axis, ax=ax)
    # The name of a file is no formula, whatever dollar signs it has.
    figure.suptitle(f"{title}: federated learning under local privacy", parse_math=False)
    figure.savefig(path, dpi=150)
