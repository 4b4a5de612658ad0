"""``skldp release``, ``collect`` and ``ledger``: reports of a policy, estimates from them, and budgets."""

import csv
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skldp._progress import Progress
from skldp._tables import require
from skldp.cli import _names
from skldp.cli import _options as options
from skldp.cli._options import keep_inputs, on_terminal, output_option, printable, rich_table

if TYPE_CHECKING:
    from skldp.collection._collector import Collector
    from skldp.collection._survey_estimates import SurveyEstimate
    from skldp.domains._column import Column

EPILOGS = {
    "release": _names.epilog("skldp release policy.json people.csv -o reports.parquet"),
    "collect": _names.epilog(
        "skldp collect policy.json reports.parquet",
        "skldp collect policy.json monday.arrow tuesday.arrow --by city --where age=20,30",
    ),
    "ledger": _names.epilog("skldp ledger budgets.ledger", "skldp ledger budgets.ledger --verify --jobs -1"),
}

# Number of categories that an error lists.
_MOST_LISTED = 10
_PROJECTED = """Projected shares are at least 0 and sum to 1, and means are within their bounds, so they are biased: an
estimate of 0 does not show that the answer never occurred. Use --raw for unbiased estimates."""
# A single report has no standard error.
_LEAST_REPORTS = 2


def release(
    policy_file: options.PolicyFile,
    table: Annotated[
        Path,
        typer.Argument(help="A row for each person: .csv, .tsv (also with .gz), .parquet or .arrow.", metavar="TABLE"),
    ],
    output: Annotated[Path, output_option("--output", "-o", about="Reports to write.", endings=(".arrow", ".parquet"))],
    separator: options.Separator = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    missing: options.Missing = None,
    no_header: options.NoHeader = False,
    secret: Annotated[
        Path | None,
        typer.Option(
            help="File of a release secret, from skldp policy secret: equal rows give equal reports. A permanent "
            "policy needs one."
        ),
    ] = None,
    ids: Annotated[
        str | None, typer.Option(help="Column of the ids of people; needed with --secret, and only then.")
    ] = None,
    count_unknown: options.CountUnknown = False,
) -> None:
    """Release a table by a policy: one report for each row.

    Columns that the policy does not name are left out. If a cell cannot be read or is no declared value, nothing is
    written. Without a secret, noise is fresh, and each run is another release of the same people.
    """
    from skldp.client import Policy
    from skldp.client._fields import declared_columns
    from skldp.client._policy import check_secret
    from skldp.collection._report_tables import batch_of_reports, report_schema
    from skldp.laws._release_key import ReleaseKey
    from skldp.study._table_files import TextFormat, is_text_file, table_chunks

    keep_inputs([policy_file, table, secret], output)
    policy = Policy.load(policy_file)
    key = None if secret is None else ReleaseKey.from_file(secret)
    check_secret(policy, key, ids)
    wanted = policy.names if ids is None else [*policy.names, ids]
    form, declared = (
        TextFormat(separator, decimal, encoding, tuple(missing or ()), not no_header),
        declared_columns(policy.fields),
    )
    chunks = table_chunks(table, columns=wanted, declared=declared, form=form)
    how: dict[str, Any] = {"text": is_text_file(table), "handle_unknown": "policy" if count_unknown else "error"}
    n, repeated, replaced = 0, False, Counter[str]()
    with Progress("records released", show=on_terminal()) as progress, _written(output, report_schema()) as write:
        for frame in chunks:
            people = None if ids is None else _ids(frame[ids])
            columns = {name: frame[name] for name in policy.names}
            reports = policy.release_table(columns, secret=key, people=people, first_row=n + 1, **how)
            write(batch_of_reports(reports))
            for column in declared.values():
                replaced.update(column.replaced(columns[column.name], text=how["text"]))
            repeated = repeated or (people is not None and len(set(people)) < len(people))
            n += len(frame)
            progress.advance(len(frame))
        if not n:
            raise ValueError(f"A table must have at least one row below its header; got none in {table.name}.")
    typer.echo(printable(f"Released {n:,} record{'s' * (n > 1)} at epsilon {policy.epsilon:.6g} each: {output}."))
    for rule, number in replaced.items():
        if number:
            typer.echo(printable(f"{rule[0].upper()}{rule[1:]} in {number:,} row{'s' * (number > 1)}."))
    # Repeated ids are detected within a chunk.
    if repeated:
        typer.echo("Some ids occur in several rows: different records of a person cost epsilon each, equal ones once.")


def collect(
    policy_file: options.PolicyFile,
    files: Annotated[
        list[Path], typer.Argument(help="Reports: .arrow or .parquet files, or bytes one after the other.")
    ],
    report: Annotated[
        Path | None, output_option("--report", about="Page of all estimates to write.", endings=(".html",))
    ] = None,
    csv_path: Annotated[
        Path | None, output_option("--csv", about="Estimates to write, with errors and intervals.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Field to group means and shares by.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Filter by a field: city=Bonn, city=missing, or age=20,30 from 20 and below 30. Repeatable."),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    raw: Annotated[
        bool, typer.Option("--raw", help="Unbiased estimates: shares may be negative, means beyond their bounds.")
    ] = False,
) -> None:
    """Print estimates from the reports of a policy.

    Each report counts once. Estimates have confidence intervals. With --by or --where, the estimates are means and
    shares. The page of --report has the usual ones of all people.
    """
    from skldp.client import Policy
    from skldp.client._fields import declared_columns
    from skldp.collection._collector import Collector

    keep_inputs([policy_file, *files], report, csv_path)
    collector = Collector(Policy.load(policy_file))
    chosen = dict(_filter(declared_columns(collector.policy.fields), one) for one in where or [])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for path in files:
            collector.add_file(path, verbose=on_terminal())
    for one in caught:
        typer.echo(f"skldp: {printable(str(one.message))}", err=True)
    counts = ", ".join(f"{number:,} {name}" for name, number in collector.counts._asdict().items())
    if collector.n_reports < _LEAST_REPORTS:
        raise ValueError(f"Estimates need at least {_LEAST_REPORTS} reports of this policy; got reports {counts}.")
    form: Any = None if raw else "project"
    if by is None and not chosen:
        fields = collector.policy.fields
        usual = [(field, one) for field in fields for one, _ in collector._usual_estimates(field, level, form)]
        named = [(one.labels if field.kind == "numbers" else field.names, one) for field, one in usual]
    else:
        named = _in_groups(collector, by, chosen, consistent=form, level=level)
    # A terminal may refuse to print; files are written first.
    if report is not None:
        report.write_text(collector.page(), encoding="utf-8")
    if csv_path is not None:
        _write_estimates(csv_path, named, by or "", " and ".join(where or []))
    typer.echo(printable(f"{collector.policy.purpose}: reports {counts}; epsilon {collector.policy.epsilon:.6g} each."))
    for _, estimate in named:
        typer.echo("\n".join(["", *map(printable, str(estimate).split("\n"))]))
    if any(estimate.what.startswith("projected") for _, estimate in named):
        typer.echo(f"\n{_PROJECTED}")
    for path in filter(None, (report, csv_path)):
        typer.echo(printable(f"Wrote {path}."))


def _in_groups(
    collector: "Collector", by: str | None, where: Mapping[str, Any], **how: Any
) -> "list[tuple[tuple[str, ...], SurveyEstimate]]":
    """Estimate means and shares by group; name on stderr the columns that other people were asked about."""
    from skldp.client._fields import declared_columns

    named: list[tuple[tuple[str, ...], SurveyEstimate]] = []
    refused: dict[str, ValueError] = {}
    for name, column in declared_columns(collector.policy.fields).items():
        statistic: Any = collector.frequencies if column.has_codes else collector.mean
        try:
            if name not in (by, *where):
                named.append(((name,), statistic(name, by=by, where=where, **how)))
        except ValueError as error:
            refused[name] = error
    if refused and not named:
        raise next(iter(refused.values()))
    for name, why in refused.items():
        typer.echo(printable(f"skldp: no estimate of {name}: {why}"), err=True)
    return named


def _write_estimates(path: Path, named: "list[tuple[tuple[str, ...], SurveyEstimate]]", by: str, where: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write("statistic,field,value,by,group,where,estimate,std_err,low,high,level,reports,missing\r\n")
        writer = csv.writer(file)
        for names, one in named:
            statistic, n = one.what.partition(" of ")[0], len(one.labels)
            first, field = (by, names[0]) if by or not one.pairs else names
            pairs = one.pairs or [(label, "") if by else ("", label if n > 1 else "") for label in one.labels]
            for (group, value), *row in zip(pairs, *one.to_dict().values(), strict=True):
                writer.writerow([statistic, field, value, first, group, where, *row, one.level, one.n, one.missing])


@contextmanager
def _written(output: Path, schema: Any) -> Iterator[Callable[[Any], None]]:
    """Yield the writer of a file that is moved into place when complete."""
    is_parquet = output.suffix.lower() == ".parquet"
    pa = require("pyarrow.parquet" if is_parquet else "pyarrow.ipc", extra="arrow")
    part = output.with_name(output.name + ".part")
    try:
        with (pa.ParquetWriter if is_parquet else pa.new_file)(str(part), schema) as writer:
            yield writer.write_batch
        os.replace(part, output)
    finally:
        part.unlink(missing_ok=True)


def _ids(column: Any) -> list[Any]:
    from skldp._reading import is_missing

    cells: list[Any] = column.tolist()
    if any(is_missing(cell) for cell in cells):
        raise ValueError(f"Every row must have an id; column {column.name!r} has missing cells.")
    return cells


_SETTINGS = ("epsilon", "delta", "rule", "bounds", "head", "people", "answers", "refused")


def ledger(
    file: Annotated[str, typer.Argument(help="Ledger: a file, or the URL of a PostgreSQL database.")],
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check every decision again from the raw answers; exit code 1 if one fails."),
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes; -1 takes all cores.")] = None,
    head: Annotated[
        str | None, typer.Option(help="Head of an earlier report: refuse a ledger that has lost anything since.")
    ] = None,
) -> None:
    """Report what a ledger answered and which budgets are left."""
    from rich.console import Console

    from skldp.accounting import ledger_report
    from skldp.estimators._ledgers import joblib_workers

    console = Console(highlight=False, markup=False)
    found = ledger_report(file, verify=verify, workers=joblib_workers(jobs, show=on_terminal()), head=head)
    for name in _SETTINGS:
        # A narrow terminal must not break the head, which users copy.
        console.print(printable(f"{name}: {found[name]}"), soft_wrap=True)
    for name, words in ("loss", "spent by people"), ("remaining", "that remains"), ("zcdp", "spent, as zCDP"):
        quantiles = found[f"{name}_quantiles"]
        if quantiles and (name != "zcdp" or found["delta"] is not None):
            shares = ", ".join(f"{share}: {value:.4g}" for share, value in quantiles.items())
            console.print(f"quantiles of the epsilon {words}: {shares}")
    if found["rule"] == "bayesian":
        console.print(
            "A larger epsilon may still be admitted: answers that contradict each other lower what was spent."
        )
    if found["queries"]:
        columns = [name for name in found["queries"][0] if name not in ("key", "first_asked")]
        rows = [[f"{row[name]}" for name in columns] for row in found["queries"]]
        console.print("Queries")
        console.print(rich_table([name.replace("_", " ") for name in columns], rows))
    if verify:
        verification = found["verification"]
        for problem in verification["problems"]:
            console.print(printable(f"problem: {problem}"))
        console.print("verified: every decision was right" if verification["ok"] else "NOT verified")
        if not verification["ok"]:
            raise typer.Exit(1)


def _filter(columns: "Mapping[str, Column]", text: str) -> tuple[str, Any]:
    """Return the name and the wanted values of a filter; an empty value is refused, not read as missing."""
    name, _, wanted = text.partition("=")
    if name not in columns:
        raise typer.BadParameter(f"A filter must be one of {', '.join(columns)} and its value; got {text!r}.")
    column, form = columns[name], f"{name}=LOW,HIGH, from LOW and below HIGH"
    if column.values is not None:
        no_value = "(missing)" if "missing" in column.values else "missing"
        texts = [no_value if value is None else str(value) for value in column.values]
        form = f"{name}=VALUE, where VALUE is one of {', '.join(texts[:_MOST_LISTED])}"
        form += ", ..." * (len(texts) > _MOST_LISTED)
    try:
        if column.values is not None:
            if wanted == no_value and None in column.values:
                return name, None
            [code] = column.as_numbers([wanted], text=True)
            return name, column.values[int(code)]
        low, high = column.as_numbers(wanted.split(","), text=True).tolist()
        return name, (low, high)
    except ValueError:
        raise typer.BadParameter(f"A filter of {name} must be {form}; got {text!r}.") from None
