"""``skldp study``: cost of privacy on a data set."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from skldp._tables import require
from skldp.cli._options import (
    BoundsOption,
    ColumnsOption,
    EncodingOption,
    Epsilons,
    MissingOption,
    Names,
    SchemaOption,
    SepOption,
    TargetBoundsOption,
    TargetOption,
    output_option,
    printable,
    progress_bar,
    rich_table,
)
from skldp.estimators._table_encoding import TABLE_MECHANISMS
from skldp.study._comparison import HEADLINE_EPSILON, MechanismComparison, compare_mechanisms
from skldp.study._datasets import BUNDLED, TASKS, load_study_data
from skldp.study._pipelines import FEATURE_MECHANISMS, LABEL_MECHANISMS, PRIVATE_MODELS, ComparisonSettings
from skldp.study._report import TextTable, html_report, plot_comparison, points, ranking
from skldp.study._table_files import TABLE_FILES

# Fewer epsilons and folds for all mechanisms: half a minute on the digits instead of several minutes.
_ALL, _FEW_EPSILONS, _FEW_FOLDS = Names("all"), Epsilons("1,2,5,10,20"), 3
_MECHANISMS, _EPSILONS, _FOLDS = Names("discriminant,privunit,bitrand-exact,bitrand"), Epsilons("0.5,1,2,5,10,20"), 5
_REGRESSION_MECHANISMS = Names("linear-rounds,linear-once,piecewise,privunit")
_MODELS = ", ".join(dict.fromkeys(name for models in PRIVATE_MODELS.values() for name in models))
# With more mechanisms, a line for every point exceeds a screen.
_FEW_MECHANISMS = 4


def study(
    context: typer.Context,
    data: Annotated[str, typer.Argument(help=f"{', '.join(BUNDLED)}, or a {TABLE_FILES} file.")] = "digits",
    target: TargetOption = None,
    task: Annotated[
        str,
        typer.Option(help=f"{', '.join(TASKS)}, or auto: a regression if the target has fractions or many numbers."),
    ] = "auto",
    target_bounds: TargetBoundsOption = None,
    bounds: BoundsOption = None,
    columns: ColumnsOption = None,
    schema: SchemaOption = None,
    missing: MissingOption = "refuse",
    sep: SepOption = None,
    encoding: EncodingOption = "utf-8",
    mechanism: Annotated[
        Names | None,
        typer.Option(
            help=f"all, or one or more with commas. Models that learn without rows: {_MODELS}. Releases of rows: none, "
            f"{', '.join(FEATURE_MECHANISMS)}; of tables with categories {', '.join(TABLE_MECHANISMS)}.",
            parser=Names,
            show_default=f"{_MECHANISMS}; for a regression {_REGRESSION_MECHANISMS}",
        ),
    ] = None,
    labels: Annotated[
        str, typer.Option(help=f"How classes are released beside rows: none, {', '.join(LABEL_MECHANISMS)}.")
    ] = "label-rr",
    epsilons: Annotated[
        Epsilons | None,
        typer.Option(
            help="The budgets of a record's features, with commas.",
            parser=Epsilons,
            show_default=f"{_EPSILONS}; for all {_FEW_EPSILONS}",
        ),
    ] = None,
    bits: Annotated[int, typer.Option(help="Bits per feature, for the bit-flipping mechanisms.")] = 10,
    folds: Annotated[
        int | None,
        typer.Option(help="Folds of the cross-validation.", min=2, show_default=f"{_FOLDS}; for all {_FEW_FOLDS}"),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Releases of every fold.", min=1)] = 1,
    scoring: Annotated[
        str | None,
        typer.Option(help="A score of scikit-learn, such as f1_macro.", show_default="accuracy; for a regression r2"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Make the noise repeatable; folds always are.", min=0)] = None,
    jobs: Annotated[int | None, typer.Option(help="Parallel fits; -1 uses all cores.")] = None,
    csv_path: Annotated[Path, output_option("--csv", about="The table to write, a CSV file.")] = Path("study.csv"),
    picture_path: Annotated[
        Path,
        output_option(
            "--picture", about="The picture to write, a .png, .svg or .pdf file.", endings=(".png", ".svg", ".pdf")
        ),
    ] = Path("study.png"),
    report_path: Annotated[
        Path | None,
        output_option("--report", about="A page of everything to write, an .html file.", endings=(".html", ".htm")),
    ] = None,
) -> None:
    """Train a linear model on private features and targets over a range of epsilon, and compare."""
    console = Console()
    # Fail before the fits, which may take hours.
    require("matplotlib")
    if report_path is not None:
        require("jinja2")
    everything = mechanism == _ALL
    settings = ComparisonSettings(
        epsilons=epsilons or (_FEW_EPSILONS if everything else _EPSILONS),
        labels=labels,
        bits=bits,
        folds=folds or (_FEW_FOLDS if everything else _FOLDS),
        repeats=repeats,
        scoring=scoring,
        seed=seed,
    )
    loaded = load_study_data(
        data,
        target=target,
        bounds=bounds,
        folds=settings.folds,
        task=task,
        target_bounds=target_bounds,
        columns=columns,
        schema=schema,
        missing=missing,
        separator=sep,
        encoding=encoding,
    )
    if everything:
        named = [*PRIVATE_MODELS[loaded.task], *FEATURE_MECHANISMS]
        named += TABLE_MECHANISMS if len(set(loaded.of_column)) < len(loaded.of_column) else []
    else:
        named = list(mechanism or (_REGRESSION_MECHANISMS if loaded.task == "regression" else _MECHANISMS))
    with progress_bar(console) as progress:
        bar = progress.add_task(named[0], total=None)
        found = compare_mechanisms(
            loaded,
            named,
            settings,
            skip_unfit=everything or mechanism is None,
            n_jobs=jobs,
            progress=lambda name, done, total: progress.update(
                bar, description=name.ljust(20), completed=done, total=total
            ),
        )
    # A terminal may refuse to print; files are written first.
    found.to_csv(csv_path)
    plot_comparison(found).savefig(picture_path, dpi=150)
    written = [str(csv_path), str(picture_path)]
    if report_path is not None:
        report_path.write_text(html_report(found, command=context.obj), encoding="utf-8")
        written.append(str(report_path))
    for table in _tables(found):
        console.print(rich_table(table.title, table.headings, table.rows, table.bold, table.ends))
        if table.note:
            console.print("\n".join(map(printable, table.note.split("\n"))), markup=False, highlight=False)
    console.print("\n".join(map(printable, found.caption())), markup=False, highlight=False)
    console.print(printable(f"Wrote {', '.join(written[:-1])} and {written[-1]}."), markup=False)


def _tables(found: MechanismComparison) -> Iterator[TextTable]:
    if len(found.curves) <= _FEW_MECHANISMS:
        first, weaker = ranking(found, within=HEADLINE_EPSILON), found.weaker_than_stated()
        # Mechanisms that keep their stated epsilon come first.
        if any(found.ranking(HEADLINE_EPSILON)):
            yield first
        kept = [name for name in found.curves if name not in weaker]
        yield points(found, [*kept, *weaker], title="Every point: asked for, stated, exact")
        return
    yield ranking(found)
    weaker = found.weaker_than_stated()
    if weaker:
        yield points(found, weaker, title="Weaker than stated")
