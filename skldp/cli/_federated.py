"""``skldp federated``: federated learning with features, gradients or labels perturbed, over epsilon."""

import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.model_selection import train_test_split

from skldp.cli._options import one_line_errors, parse_epsilons, parse_names, writable
from skldp.exceptions import SeededNoiseWarning
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, feature_mechanism, label_mechanism
from skldp.study._datasets import BUNDLED, load_study_data
from skldp.study._extras import require_pyplot
from skldp.study._federated.display import EPSILON_AXES, plot_federated
from skldp.study._federated.settings import (
    features_perturbed,
    gradients_anonymised,
    gradients_perturbed,
    labels_perturbed,
    noiseless,
)
from skldp.study._federated.study import federated_study

__all__ = ["federated"]

_MECHANISMS = f"none, or one or more with commas: {', '.join(FEATURE_MECHANISMS)}."


def federated(
    data: Annotated[str, typer.Argument(help=f"{', '.join(BUNDLED)}, or a .csv, .parquet or .npz file.")] = "digits",
    target: Annotated[str | None, typer.Option(help="The column (or npz array) of labels.")] = None,
    bounds: Annotated[str | None, typer.Option(help="low,high or a .csv file of column,low,high.")] = None,
    features: Annotated[str, typer.Option(help=f"On features, {_MECHANISMS}")] = "bitrand,bitrand-exact",
    gradients: Annotated[str, typer.Option(help=f"On gradients, {_MECHANISMS}")] = "none",
    anonymised: Annotated[str, typer.Option(help=f"On gradients with an anonymiser, {_MECHANISMS}")] = "none",
    labels: Annotated[str, typer.Option(help=f"With features, none or {', '.join(LABEL_MECHANISMS)}.")] = "none",
    label_epsilon: Annotated[float, typer.Option(help="The budget of the label.")] = 1.0,
    only_labels: Annotated[str, typer.Option(help=f"Labels alone: none, {', '.join(LABEL_MECHANISMS)}.")] = "none",
    epsilons: Annotated[str, typer.Option(help="Budgets, with commas.")] = "1,2,5,10",
    clients: Annotated[int, typer.Option(help="Clients that the training rows are dealt to.", min=1)] = 200,
    rounds: Annotated[int, typer.Option(help="Rounds of gradients.", min=1)] = 20,
    gradient_bound: Annotated[float, typer.Option(help="Where a perturbed gradient's coordinates are clipped.")] = 0.1,
    delta: Annotated[float, typer.Option(help="Of the shuffled guarantee.")] = 1e-6,
    model: Annotated[str, typer.Option(help="softmax or linear.")] = "softmax",
    seeds: Annotated[int, typer.Option(help="Trainings of each setting at each epsilon.", min=1)] = 3,
    seed: Annotated[int | None, typer.Option(help="Make the study repeatable.", min=0)] = None,
    jobs: Annotated[int | None, typer.Option(help="Trainings at once; -1 takes all cores.")] = None,
    csv_path: Annotated[Path, typer.Option("--csv", help="Where to write the table.")] = Path("federated.csv"),
    png_path: Annotated[Path, typer.Option("--png", help="Where to write the picture.")] = Path("federated.png"),
) -> None:
    """Train by FedSGD over many clients under local privacy, and compare what is perturbed."""
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with one_line_errors(ValueError, ImportError), warnings.catch_warnings():
        # The caption says that the noise comes from a seed.
        warnings.simplefilter("ignore", SeededNoiseWarning)
        require_pyplot()
        budgets = parse_epsilons(epsilons)
        writable(csv_path), writable(png_path)
        loaded = load_study_data(data, target=target, bounds=bounds)
        X = loaded.scaled()[0]
        settings = _settings(features, gradients, anonymised, labels, label_epsilon, only_labels, loaded.classes)
        X, X_test, y, y_test = train_test_split(X, loaded.y, test_size=0.25, stratify=loaded.y, random_state=0)
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("federated learning", total=None)
            table = federated_study(
                X,
                y,
                X_test,
                y_test,
                settings,
                epsilons=budgets,
                n_seeds=seeds,
                n_jobs=jobs,
                seed=seed,
                progress=lambda done, total: progress.update(bar, completed=done, total=total),
                n_clients=clients,
                n_rounds=rounds,
                gradient_bound=gradient_bound,
                delta=delta,
                model=model,
            )
    typer.echo(table)
    if seed is not None:
        typer.echo(f"The noise comes from seed {seed}: void against whoever knows it.")
    table.to_csv(csv_path)
    _draw(table, loaded.name, png_path)
    typer.echo(f"Wrote {csv_path} and {png_path}.")


def _settings(features, gradients, anonymised, labels, label_epsilon, only_labels, classes):
    label = None if labels == "none" else label_mechanism(labels, epsilon=label_epsilon, classes=classes)
    settings = [noiseless()]
    settings += [
        features_perturbed(feature_mechanism(name, transform_noise=False), label_mechanism=label, name=name)
        for name in _named(features)
    ]
    settings += [
        gradients_perturbed(feature_mechanism(name), name=f"{name} on gradients") for name in _named(gradients)
    ]
    settings += [
        gradients_anonymised(feature_mechanism(name), name=f"{name} anonymised") for name in _named(anonymised)
    ]
    settings += [
        labels_perturbed(label_mechanism(name, classes=classes), name=f"{name} on labels")
        for name in _named(only_labels)
    ]
    return settings


def _named(text):
    return [name for name in parse_names(text) if name != "none"]


def _draw(table, title, path):
    plt = require_pyplot()
    plt.switch_backend("Agg")
    axes_names = [
        name for name, (column, _) in EPSILON_AXES.items() if any(getattr(row, column) < 1e300 for row in table)
    ]
    figure, grid = plt.subplots(
        2,
        max(1, len(axes_names)),
        figsize=(5 * max(1, len(axes_names)), 8),
        sharey="row",
        layout="constrained",
        squeeze=False,
    )
    for row, metric in zip(grid, ("accuracy", "auc"), strict=True):
        for ax, name in zip(row, axes_names or ["exact"], strict=True):
            plot_federated(table, metric=metric, epsilon_axis=name, ax=ax)
    figure.suptitle(f"{title}: federated learning under local privacy")
    figure.savefig(path, dpi=150)
    plt.close(figure)
