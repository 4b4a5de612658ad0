"""``skldp study``: what privacy costs on a data set, with nothing to write."""

import csv
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from skldp.cli._options import one_line_errors, parse_epsilons, parse_names, writable
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS
from skldp.study._comparison import ComparisonSettings, compare_mechanisms
from skldp.study._datasets import BUNDLED, StudyInputError, load_study_data
from skldp.study._extras import require_pyplot
from skldp.study._report.html_report import html_report
from skldp.study._report.panels import plot_comparison

__all__ = ["study"]

_FILES = "File options"
# For all mechanisms, less of each: about a minute on the digits instead of several.
_FEW_EPSILONS, _FEW_FOLDS = "1,2,5,10,20", 3
_EPSILONS, _FOLDS = "1,2,5,10,20,50", 5
# Above, a line for every point is more than a screen.
_FEW_MECHANISMS = 4


def study(
    context: typer.Context,
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
    radius: Annotated[
        float | None,
        typer.Option(
            help="Declares that rows have norms of at most this, for mechanisms of distances. Without, it is that of "
            "the corner of the bounds.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    mechanism: Annotated[
        str, typer.Option(help=f"all, or one or more with commas: none, {', '.join(FEATURE_MECHANISMS)}.")
    ] = "bitrand,bitrand-exact",
    labels: Annotated[str, typer.Option(help=f"none, {', '.join(LABEL_MECHANISMS)}.")] = "label-rr",
    epsilons: Annotated[
        str | None,
        typer.Option(
            help="The budgets of a record's features, with commas.",
            show_default=f"{_EPSILONS}; for all {_FEW_EPSILONS}",
        ),
    ] = None,
    label_epsilon: Annotated[
        float | None, typer.Option(help="A fixed budget of the label. Without it, the label gets the features' budget.")
    ] = None,
    bits: Annotated[int, typer.Option(help="Bits per feature, for the bit-flipping mechanisms.")] = 10,
    folds: Annotated[
        int | None,
        typer.Option(help="Folds of the cross-validation.", min=2, show_default=f"{_FOLDS}; for all {_FEW_FOLDS}"),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Releases of every fold.", min=1)] = 1,
    clean_test: Annotated[
        bool,
        typer.Option(
            "--clean-test/--private-test",
            help="Whether test rows stay with their people (encoded, without noise), as in the papers, or are "
            "released like the training rows.",
        ),
    ] = True,
    scoring: Annotated[
        str | None, typer.Option(help="A score of scikit-learn, such as f1_macro.", show_default="accuracy")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Make the noise repeatable. Folds always are.", min=0)] = None,
    jobs: Annotated[int | None, typer.Option(help="Fits at once; -1 takes all cores.")] = None,
    csv_path: Annotated[Path, typer.Option("--csv", help="Where to write the table.")] = Path("study.csv"),
    picture_path: Annotated[
        Path, typer.Option("--picture", "--png", help="Where to write the picture, a .png, .svg or .pdf file.")
    ] = Path("study.png"),
    report_path: Annotated[
        Path | None, typer.Option("--report", help="Where to write everything as one .html file.")
    ] = None,
) -> None:
    """Train a linear model on private features and labels over a range of epsilon, and compare."""
    console = Console()
    everything = mechanism.strip() == "all"
    # What a mechanism, a label or a scorer refuses is about the input too.
    with one_line_errors(ImportError, ValueError):
        require_pyplot()
        settings = ComparisonSettings(
            epsilons=tuple(parse_epsilons(epsilons or (_FEW_EPSILONS if everything else _EPSILONS))),
            labels=labels,
            label_epsilon=label_epsilon,
            bits=bits,
            folds=folds or (_FEW_FOLDS if everything else _FOLDS),
            repeats=repeats,
            clean_test=clean_test,
            scoring=scoring,
            seed=seed,
            radius=radius,
        )
        names = list(FEATURE_MECHANISMS) if everything else parse_names(mechanism)
        if not names:
            raise StudyInputError("--mechanism needs at least one name.")
        writable(csv_path)
        writable(picture_path, ".png", ".svg", ".pdf")
        if report_path is not None:
            writable(report_path, ".html", ".htm")
        loaded = load_study_data(data, target=target, bounds=bounds, folds=settings.folds)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task(names[0], total=None)
            found = compare_mechanisms(
                loaded,
                names,
                settings,
                skip_unfit=everything,
                n_jobs=jobs,
                progress=lambda name, done, total: progress.update(
                    bar, description=name.ljust(20), completed=done, total=total
                ),
            )
    if len(found.curves) > _FEW_MECHANISMS:
        console.print(_ranking(found))
        console.print(
            f"Best mean {found.first.scoring} of each mechanism among its points whose exact epsilon is at most that "
            "of the column (bold: the best of all; -: no such point).",
            markup=False,
        )
        weaker = {name: found.curves[name] for name in found.weaker_than_stated()}
        if weaker:
            console.print(_points(found, weaker, title="Weaker than stated"))
    else:
        console.print(_points(found, found.curves, title="What privacy costs"))
    console.print("\n".join(found.caption()), markup=False, highlight=False)
    _write_csv(found.curves, csv_path)
    _draw(found, picture_path)
    written = [str(csv_path), str(picture_path)]
    if report_path is not None:
        report_path.write_text(html_report(found, command=context.obj), encoding="utf-8")
        written.append(str(report_path))
    console.print(f"Wrote {', '.join(written[:-1])} and {written[-1]}.", markup=False)


def _ranking(found):
    budgets, rows, best = found.table()
    first = found.first
    table = Table(title="What privacy costs")
    table.add_column("mechanism", no_wrap=True)
    for budget in budgets:
        table.add_column(f"eps {budget:g}", justify="right", no_wrap=True)
    table.add_row("without privacy", *[f"{first.clean_mean:.3f}"] * len(budgets))
    table.add_row("majority", *[f"{first.majority_mean:.3f}"] * len(budgets), end_section=True)
    for name, points in rows:
        cells = []
        for point, winner in zip(points, best, strict=True):
            text = "-" if point is None else f"{point.score_mean:.3f}"
            cells.append(f"[bold]{text}[/bold]" if point is not None and point is winner else text)
        table.add_row(name, *cells)
    return table


def _points(found, curves, *, title):
    table = Table(title=title)
    table.add_column("mechanism")
    for heading in ("stated eps", "exact eps", found.first.scoring, "fit s", "score s"):
        table.add_column(heading, justify="right", no_wrap=True)
    first = found.first
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


def _draw(found, path):
    plt = require_pyplot()
    plt.switch_backend("Agg")
    figure = plot_comparison(found)
    figure.savefig(path, dpi=150)
    plt.close(figure)
