"""``skldp study``: cost of privacy on a data set."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skldp._tables import require
from skldp.cli import _names
from skldp.cli import _options as options
from skldp.cli._options import Epsilons, Names, keep_inputs, on_terminal, output_option, printable, rich_table

if TYPE_CHECKING:
    from rich.console import Console

# Fewer folds for all mechanisms: half a minute on the digits instead of several minutes.
_ALL, _FEW_FOLDS, _FOLDS = Names("all"), 3, 5
# A table that people are enough for, and one that they are not.
_FIRST_DATA = ("friedman", "digits")
# Releases of rows beside the models: two that keep what they state, and the published one.
_RELEASES = ("privunit", "bitrand-exact", "bitrand")
_EPSILONS = Epsilons("1,2,4,8")

EPILOGS = {
    "study": _names.epilog(
        "skldp study",
        "skldp study people.csv --target sick --bounds bounds.csv --report study.html",
        "skldp study people.csv --target income --target-bounds 0,200000 --schema people.json",
        names={
            **{f"models for a {task}": names for task, names in _names.MODELS.items()},
            "mechanisms that release rows": ("none", *_names.FEATURES),
        },
    )
}


def study(
    context: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(
            help=f"{', '.join(_names.DATA)}, or a {_names.TABLE_FILES} file. Default: {' and '.join(_FIRST_DATA)}."
        ),
    ] = None,
    target: options.Target = None,
    task: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(_names.TASKS)}, or auto: a regression if the target has fractions or many numbers."
        ),
    ] = "auto",
    target_bounds: options.TargetBounds = None,
    target_transform: options.Transform = "none",
    bounds: options.Bounds = None,
    columns: options.Columns = None,
    schema: options.Schema = None,
    separator: options.Separator = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    missing: options.Missing = None,
    no_header: options.NoHeader = False,
    count_unknown: options.CountUnknown = False,
    mechanism: Annotated[
        Names | None,
        typer.Option(
            help="all, or one or more of the names below, with commas. "
            f"Default: the models of the task, {', '.join(_RELEASES)}.",
            parser=Names,
        ),
    ] = None,
    labels: Annotated[
        str, typer.Option(help=f"Mechanism of the classes beside released rows: none, {', '.join(_names.LABELS)}.")
    ] = "label-rr",
    epsilons: Annotated[
        Epsilons,
        typer.Option(
            help=f"Epsilons to try, separated by commas. Default: {_EPSILONS}.", parser=Epsilons, show_default=False
        ),
    ] = _EPSILONS,
    bits: Annotated[int, typer.Option(help="Bits per feature, for the bit-flipping mechanisms.")] = 10,
    folds: Annotated[
        int | None, typer.Option(help=f"Folds of the cross-validation. Default: {_FOLDS}; {_FEW_FOLDS} for all.", min=2)
    ] = None,
    repeats: Annotated[int, typer.Option(help="Private repeats per fold.", min=1)] = 1,
    scoring: Annotated[
        str | None,
        typer.Option(help="Score of scikit-learn, such as f1_macro. Default: accuracy, or r2 for a regression."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Make the noise repeatable; folds always are.", min=0)] = None,
    jobs: Annotated[int | None, typer.Option(help="Parallel fits; -1 uses all cores.")] = None,
    csv_path: Annotated[Path, output_option("--csv", about="Table to write, a CSV file.")] = Path("study.csv"),
    picture_path: Annotated[
        Path,
        output_option(
            "--picture", about="Picture to write, a .png, .svg or .pdf file.", endings=(".png", ".svg", ".pdf")
        ),
    ] = Path("study.png"),
    report_path: Annotated[
        Path | None,
        output_option("--report", about="Page of everything to write, an .html file.", endings=(".html", ".htm")),
    ] = None,
) -> None:
    """Compare private models and mechanisms on a table.

    Scores are from cross-validation, at each epsilon. The budget is that of a record with its target.
    """
    from rich.console import Console

    from skldp.study._comparison import ComparisonSettings, compare_mechanisms
    from skldp.study._datasets import load_study_data
    from skldp.study._report import html_report, plot_comparisons, ranking
    from skldp.study._results import write_csv
    from skldp.study._table_files import TextFormat

    console = Console()
    # Fail before the fits, which may take hours.
    keep_inputs([data, schema], csv_path, picture_path, report_path)
    require("matplotlib")
    if report_path is not None:
        require("jinja2")
    everything = mechanism == _ALL
    folds = folds or (_FEW_FOLDS if everything else _FOLDS)
    settings = ComparisonSettings(epsilons, labels, bits, folds, repeats, scoring, seed)
    found = []
    for source in _FIRST_DATA if data is None else (data,):
        loaded = load_study_data(
            source,
            target=target,
            bounds=bounds,
            folds=folds,
            task=task,
            target_bounds=target_bounds,
            columns=columns,
            schema=schema,
            count_unknown=count_unknown,
            form=TextFormat(separator, decimal, encoding, tuple(missing or ()), not no_header),
            target_transform=target_transform,
        )
        models = _names.MODELS[loaded.task]
        named = [*models, *_names.FEATURES] if everything else list(mechanism or (*models, *_RELEASES))
        skip = everything or mechanism is None
        found.append(compare_mechanisms(loaded, named, settings, skip_unfit=skip, n_jobs=jobs, verbose=on_terminal()))
    # A terminal may refuse to print; files are written first.
    write_csv(csv_path, found)
    plot_comparisons(*found).savefig(picture_path, dpi=150)
    written = [str(csv_path), str(picture_path)]
    if report_path is not None:
        report_path.write_text(html_report(*found, command=context.obj), encoding="utf-8")
        written.append(str(report_path))
    for one in found:
        table = ranking(one)
        _print(console, one.headline())
        # A title of the table would be wrapped to its width.
        _print(console, [table.title])
        console.print(rich_table(table.headings, table.rows, table.bold, table.ends))
        _print(console, [*one.notes(), ""])
    _print(console, [f"Wrote {', '.join(written[:-1])} and {written[-1]}."])
    if data is not None and bounds is not None and not bounds.lower().endswith(".csv"):
        _print(console, ["Narrow bounds cost less: --bounds takes a .csv file of column,low,high, too."])
    if data is None:
        following = "skldp study people.csv --target sick --bounds 0,120 (a file of your own)"
    elif report_path is None:
        following = f"{context.obj} --report study.html"
    else:
        following = "skldp guarantee NAME --epsilon 1 --features 64 (a mechanism at any size)"
    # A command that is copied must not be broken into lines.
    console.print(printable(f"Next: {following}"), markup=False, soft_wrap=True)


def _print(console: "Console", lines: list[str]) -> None:
    console.print("\n".join(map(printable, lines)), markup=False, highlight=False)
