"""``skldp study``: what privacy costs on a data set, with nothing to write."""

import csv
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from skldp.cli.options import one_line_errors, parse_epsilons, parse_names, writable
from skldp.estimators.label_private_classifier import LabelPrivateClassifier
from skldp.exceptions import PrivacyGuaranteeWarning, SeededNoiseWarning
from skldp.study.catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, feature_mechanism, label_mechanism
from skldp.study.curve import privacy_utility_curve
from skldp.study.datasets import BUNDLED, StudyInputError, load_study_data
from skldp.study.display import PrivacyUtilityDisplay
from skldp.study.extras import require_pyplot

__all__ = ["study"]

_FILES = "File options"


def study(
    data: Annotated[str, typer.Argument(help=f"{', '.join(BUNDLED)}, or a .csv, .parquet or .npz file.")] = "digits",
    target: Annotated[
        str | None, typer.Option(help="The column (or npz array) of labels.", rich_help_panel=_FILES)
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            help="The declared bounds of the features: low,high or a .csv file of column,low,high.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    mechanism: Annotated[
        str, typer.Option(help=f"One or more, with commas: none, {', '.join(FEATURE_MECHANISMS)}.")
    ] = "bitrand,bitrand-exact",
    labels: Annotated[str, typer.Option(help=f"none, {', '.join(LABEL_MECHANISMS)}.")] = "label-rr",
    epsilons: Annotated[str, typer.Option(help="The budgets of a record's features, with commas.")] = "1,2,5,10,20,50",
    label_epsilon: Annotated[
        float | None, typer.Option(help="A fixed budget of the label. Without it, the label gets the features' budget.")
    ] = None,
    bits: Annotated[int, typer.Option(help="Bits per feature, for the bit-flipping mechanisms.")] = 10,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", min=2)] = 5,
    repeats: Annotated[int, typer.Option(help="Releases of every fold.", min=1)] = 1,
    clean_test: Annotated[
        bool,
        typer.Option(
            "--clean-test/--private-test",
            help="Whether test rows stay with their people (encoded, without noise), as in the papers, or are "
            "released like the training rows.",
        ),
    ] = True,
    seed: Annotated[int | None, typer.Option(help="Make the noise repeatable. Folds always are.", min=0)] = None,
    jobs: Annotated[int | None, typer.Option(help="Fits at once; -1 takes all cores.")] = None,
    csv_path: Annotated[Path, typer.Option("--csv", help="Where to write the table.")] = Path("study.csv"),
    png_path: Annotated[Path, typer.Option("--png", help="Where to write the picture.")] = Path("study.png"),
) -> None:
    """Train a linear model on private features and labels over a range of epsilon, and compare."""
    console = Console()
    with one_line_errors(ImportError):
        require_pyplot()
        budgets = parse_epsilons(epsilons)
        names = parse_names(mechanism)
        writable(csv_path), writable(png_path)
        loaded = load_study_data(data, target=target, bounds=bounds, folds=folds)
        X, n_moved = loaded.scaled()
        plans = {
            name: _pipeline(name, labels, label_epsilon, loaded.classes, clean_test=clean_test, bits=bits)
            for name in names
        }
        if not plans:
            raise StudyInputError("--mechanism needs at least one name.")

    curves = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress, warnings.catch_warnings():
        # Both epsilons are in the table, and the seed is in its caption.
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
        for name, (pipeline, param_name) in plans.items():
            bar = progress.add_task(name, total=None)
            with one_line_errors():
                curves[name] = privacy_utility_curve(
                    pipeline,
                    X,
                    loaded.y,
                    param_name=param_name,
                    epsilons=budgets,
                    cv=StratifiedKFold(folds, shuffle=True, random_state=0),
                    n_repeats=repeats,
                    n_jobs=jobs,
                    random_state=seed,
                    progress=lambda done, total, bar=bar: progress.update(bar, completed=done, total=total),
                )
    caption = _caption(loaded, n_moved, labels, label_epsilon, clean_test, seed, folds, repeats)
    console.print(_table(curves, caption))
    _write_csv(curves, csv_path)
    _draw(curves, loaded.name, png_path)
    console.print(f"Wrote {csv_path} and {png_path}.")


def _pipeline(name, labels, label_epsilon, classes, *, clean_test, bits):
    """The pipeline of one mechanism, and the parameters that take the epsilon."""
    steps, param_names = [], []
    if name != "none":
        private = feature_mechanism(name, transform_noise=not clean_test, n_bits=bits)
        steps.append(private)
        param_names.append(f"{type(private).__name__.lower()}__epsilon")
    model = LogisticRegression(max_iter=1000)
    if labels != "none":
        randomised = label_mechanism(labels, epsilon=1.0 if label_epsilon is None else label_epsilon, classes=classes)
        model = LabelPrivateClassifier(model, label_mechanism=randomised)
        if label_epsilon is None:
            param_names.append("labelprivateclassifier__label_mechanism__epsilon")
    if not param_names:
        raise StudyInputError("Nothing takes the epsilons: choose a --mechanism, or --labels without --label-epsilon.")
    return make_pipeline(*steps, model), param_names


def _caption(loaded, n_moved, labels, label_epsilon, clean_test, seed, folds, repeats):
    n_rows, n_features = loaded.X.shape
    lines = [
        f"{loaded.name}: {n_rows:,} rows, {n_features} features, {len(loaded.classes)} classes; {folds} folds"
        + (f" x {repeats} releases." if repeats > 1 else "."),
        f"Features are scaled to [-1, 1] by their {loaded.bounds_source}"
        + (f"; {n_moved:,} values lay outside and were clipped." if n_moved else "."),
        "Training rows are released; test rows stay with their people (--clean-test)."
        if clean_test
        else "Training and test rows are released (--private-test).",
    ]
    if labels == "none":
        lines.append("Training labels are not private.")
    else:
        budget = "the same epsilon as the features" if label_epsilon is None else f"epsilon {label_epsilon:g}"
        lines.append(f"Training labels are randomised by {labels} with {budget}; both epsilons count the sum.")
    lines.append("Exact is the worst-case loss of one person's whole record. Only exact is a guarantee.")
    if seed is not None:
        lines.append(f"The noise comes from seed {seed}: void against whoever knows it.")
    return "\n".join(lines)


def _table(curves, caption):
    table = Table(title="What privacy costs", caption=caption, caption_justify="left")
    table.add_column("mechanism")
    for heading in ("stated eps", "exact eps", "accuracy", "fit s", "score s"):
        table.add_column(heading, justify="right", no_wrap=True)
    first = next(iter(curves.values()))
    table.add_row("without privacy", "", "inf", f"{first.clean_mean:.3f} ± {first.clean_std:.3f}", "", "")
    table.add_row(
        "majority class", "", "0", f"{first.majority_mean:.3f} ± {first.majority_std:.3f}", "", "", end_section=True
    )
    for name, curve in curves.items():
        for point in curve:
            table.add_row(
                name,
                f"{point.stated_epsilon:g}",
                _exact(point),
                f"{point.score_mean:.3f} ± {point.score_std:.3f}",
                f"{point.fit_time:.2f}",
                f"{point.score_time:.3f}",
                end_section=point is curve[len(curve) - 1],
            )
    return table


def _exact(point):
    epsilon = f"{point.exact_epsilon:,.4g}" if point.exact_epsilon < 1000 else f"{point.exact_epsilon:,.0f}"
    return f"{epsilon}, δ {point.delta:g}" if point.delta else epsilon


def _write_csv(curves, path):
    baselines = ("clean_mean", "clean_std", "majority_mean", "majority_std")
    rows = [
        {"mechanism": name} | asdict(point) | {key: getattr(curve, key) for key in baselines}
        for name, curve in curves.items()
        for point in curve
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _draw(curves, title, path):
    plt = require_pyplot()
    plt.switch_backend("Agg")
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for ax, epsilon_axis in zip(axes, ("stated", "exact"), strict=True):
        last = list(curves)[-1]
        for name, curve in curves.items():
            PrivacyUtilityDisplay.from_curve(curve, epsilon_axis=epsilon_axis, name=name, ax=ax, baselines=name == last)
    axes[0].get_legend().remove()
    axes[1].set_ylabel("")
    figure.suptitle(f"{title}: what privacy costs")
    figure.savefig(path, dpi=150)
    plt.close(figure)
