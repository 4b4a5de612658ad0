"""``skldp policy``, ``release``, ``collect`` and ``ledger``: from a schema to reports, estimates and budgets."""

import csv
import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from skldp._progress import Progress
from skldp._reading import is_missing
from skldp._tables import require
from skldp.accounting import ledger_report
from skldp.cli import _options as options
from skldp.cli._options import keep_inputs, made_up_row, on_terminal, output_option, printable, rich_table
from skldp.client._fields import declared_columns
from skldp.client._policy import Policy, check_secret
from skldp.collection._collector import Collector
from skldp.collection._conversion import policy_from_estimator
from skldp.collection._precision import plan_survey
from skldp.collection._report_tables import batch_of_reports, report_schema
from skldp.collection._survey_estimates import SurveyEstimate
from skldp.collection._survey_fields import estimates_of
from skldp.domains._column import Column
from skldp.estimators._ledgers import joblib_workers
from skldp.estimators._table import TablePrivatizer
from skldp.laws._release_key import ReleaseKey
from skldp.mechanisms.categorical._one_hot import CATEGORICAL_MECHANISMS
from skldp.mechanisms.numeric._bounded_features import JOINT_MECHANISMS, NUMERIC_MECHANISMS
from skldp.study._table_files import TextFormat, is_text_file, read_study_schema, table_chunks

policy = typer.Typer()

# Laplace noise has no integer law.
_MECHANISMS = [name for name in NUMERIC_MECHANISMS if name not in (*JOINT_MECHANISMS, "laplace")]
# Number of categories that are shown, and that an error lists.
_MOST_SHOWN, _MOST_LISTED = 4, 10

File = Annotated[Path, typer.Argument(help="The policy, a .json file.", metavar="POLICY")]


@policy.command()
def new(
    schema: Annotated[str, typer.Argument(help="Declared columns, as of TablePrivatizer: a .json file, or its text.")],
    output: Annotated[Path, output_option("--output", "-o", about="The policy to write.", endings=(".json",))],
    purpose: Annotated[str, typer.Option(help="Purpose of the collection, shown to people.")],
    epsilon: Annotated[float, typer.Option(help="The budget of one record with all its columns, natural log.")] = 1.0,
    mechanism: Annotated[
        str, typer.Option(help=f"Mechanism of numbers and dates: {', '.join(_MECHANISMS)} or best.")
    ] = "best",
    category_mechanism: Annotated[
        str, typer.Option(help=f"Mechanism of categories: {', '.join(CATEGORICAL_MECHANISMS)} or best.")
    ] = "krr",
    sampled: Annotated[
        str, typer.Option(help="Number of columns that each person is asked, chosen at random, or 'auto' or 'all'.")
    ] = "all",
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            help="Pair of columns for a table: age,city, or all. Repeatable. Each person is asked one pair, or one "
            "column that is in none, at all of epsilon."
        ),
    ] = None,
    points: Annotated[int, typer.Option(help="Number of points that numbers of pairs are rounded to.")] = 2,
    unit: Annotated[
        list[str] | None, typer.Option(help="Unit of a number, for display: age=years. May be given several times.")
    ] = None,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="The same record gives the same report, by a secret.")
    ] = False,
    expires: Annotated[
        str | None, typer.Option(help="UTC time after which nothing is released: 2027-01-31T00:00:00Z.")
    ] = None,
) -> None:
    """Make a policy from declared columns; those that a person is asked share epsilon equally.

    With --sampled auto, people are asked as many columns as give the least error of means and shares. Two columns can
    be compared only if people are asked two or more.

    A missing number counts as the middle of its bounds. A missing or unknown category counts as missing if the
    schema declares that ("missing": "category"), else as the first value.
    """
    keep_inputs([schema], output)
    columns = read_study_schema(schema)
    if not columns:
        raise ValueError("The schema must declare at least one column by name.")
    units = dict(_pair(one) for one in unit or [])
    if sampled not in ("auto", "all") and not sampled.isdecimal():
        raise typer.BadParameter(f"--sampled must be 'auto', 'all' or a number of columns; got {sampled!r}.")
    n_sampled: Any = int(sampled) if sampled.isdecimal() else sampled
    kinds: dict[str, Any] = {"mechanism": mechanism, "category_mechanism": category_mechanism}
    try:
        table = TablePrivatizer(epsilon, schema=columns, n_sampled_features=n_sampled, **kinds)
        table.fit(made_up_row(list(columns.values())))
    except ValueError as error:
        # A message of scikit-learn about public parameters and a made-up row.
        raise ValueError(str(error)) from None
    joint: Any = "all" if pairs == ["all"] else [_names_of(one, list(table.feature_names_in_)) for one in pairs or []]
    asked: dict[str, Any] = {"units": units, "expires": expires, "joint": joint or None, "n_knots": points}
    made = policy_from_estimator(table, purpose=purpose, **asked)
    made = made.permanent() if permanent else made
    made.save(output)
    typer.echo(printable(f"Wrote {output}: epsilon {made.epsilon:.6g} a record, sha256 {made.sha256}."))
    of_means = [one.name for one in made.fields if estimates_of(one) == "mean"]
    if of_means:
        more = "--mechanism square_wave gives variances and histograms as well."
        typer.echo(printable(f"The answers about {', '.join(of_means)} give means alone; {more}"))


@policy.command()
def show(file: File) -> None:
    """Check and show a policy: its fields, laws and exact epsilons."""
    policy = Policy.load(file)
    # Texts of the policy stay in table cells: they must not look like lines of this command.
    console = Console(highlight=False, markup=False)
    console.print(_cells(["purpose"], [[policy.purpose]]))
    rows = [[one.name, _values(one), one.law.name, f"{one.epsilon:.4g}", estimates_of(one)] for one in policy.fields]
    console.print(_cells(["field", "values", "law", "epsilon", "gives"], rows))
    if policy.memo == "permanent":
        typer.echo("permanent: the same record gives the same report again")
    if policy.n_sampled is not None:
        typer.echo(f"each person is asked {policy.n_sampled} of {len(policy.fields)} fields, chosen at random")
    expires = f"until {policy.expires}" if policy.expires else "no expiry"
    typer.echo(printable(f"epsilon {policy.epsilon:.6g} a record, {policy.n_bytes} bytes a report, {expires}"))
    typer.echo(f"sha256 {policy.sha256}")


@policy.command()
def plan(
    file: File,
    people: Annotated[int, typer.Option(help="Number of people who report.")],
    by: Annotated[str | None, typer.Option(help="Category of the policy to group by.")] = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    half_width: Annotated[
        list[str] | None,
        typer.Option(help="Say how many people it takes for a field to be as precise: age=1.5. May be given often."),
    ] = None,
) -> None:
    """Show the expected precision of a survey, before anybody is asked.

    Figures are for people whose values are uniform and independent of each other.
    """
    policy = Policy.load(file)
    found = plan_survey(policy, people, by=by, level=level)
    wanted = list(map(_width, half_width or []))
    needed = [found.n_people_for(field, width) for field, width in wanted]
    typer.echo("\n".join(map(printable, str(found).split("\n"))))
    for (field, width), n in zip(wanted, needed, strict=True):
        typer.echo(printable(f"{field} +- {width:g}: {n:,} people"))


@policy.command()
def secret(file: Annotated[Path, typer.Argument(help="A new file, for its owner alone.", metavar="PATH")]) -> None:
    """Draw a release secret for permanent policies, once. It stays with the party that releases."""
    ReleaseKey.create(file)
    typer.echo(printable(f"Wrote {file}. Keep it apart from records and reports; it cannot be recovered."))


@policy.command()
def check(
    file: File,
    most: Annotated[float | None, typer.Option("--most", help="The largest accepted epsilon of a record.")] = None,
) -> None:
    """Check a policy, and that its integers give its stated epsilons; exit code 2 if not."""
    policy = Policy.load(file)
    if most is not None and not policy.epsilon <= most:
        raise ValueError(f"The epsilon of the policy must be at most {most:g}; got {policy.epsilon:.6g}.")
    typer.echo(f"valid: epsilon {policy.epsilon:.6g} a record, from the integers of {len(policy.fields)} fields")


def _cells(headings: list[str], rows: list[list[str]]) -> Table:
    """Return a table whose cells are folded, never cut."""
    table = Table()
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def _pair(text: str) -> tuple[str, str]:
    name, sign, unit = text.partition("=")
    if not (name and sign and unit):
        raise typer.BadParameter(f"A unit must be a column and its unit, such as age=years; got {text!r}.")
    return name, unit


def _names_of(text: str, columns: list[str]) -> tuple[str, str]:
    """Return the two columns of a pair, whose names may have commas."""
    places = [i for i, letter in enumerate(text) if letter == ","]
    found = [(text[:i], text[i + 1 :]) for i in places if {text[:i], text[i + 1 :]} <= set(columns)]
    if len(found) != 1:
        raise typer.BadParameter(f"A pair must be two columns of the schema, such as age,city; got {text!r}.")
    return found[0]


def _width(text: str) -> tuple[str, float]:
    name, _, width = text.rpartition("=")
    try:
        return name, float(width)
    except ValueError:
        raise typer.BadParameter(f"A half-width must be a field and a number, such as age=1.5; got {text!r}.") from None


def _filter(columns: Mapping[str, Column], text: str) -> tuple[str, Any]:
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


def _values(field: Any) -> str:
    if field.kind == "vector":
        what = "its direction" if field.bound is None else f"clipped to a norm of {field.bound!r}"
        return f"{field.law.n_values} numbers, {what}; missing counts as zeros"
    if field.kind in ("pair", "numbers"):
        between = " with " if field.kind == "pair" else "; "
        return between.join(f"{_quoted(one.name)} {_of_column(one)}" for one in field.columns)
    return _of_column(field.column)


def _of_column(column: Column) -> str:
    if column.values is None:
        low, high, missing = column.as_texts()
        unit = f" {_quoted(column.unit)}" if column.unit else ""
        return f"{low} to {high}{unit}; missing ones count as {missing}"
    shown = ", ".join(_quoted(value) for value in column.values[:_MOST_SHOWN])
    more = f", ... ({len(column.values)} in all)" if len(column.values) > _MOST_SHOWN else ""
    return f"{shown}{more}; others count as {_quoted(column.unknown)}"


def _quoted(value: Any) -> str:
    """Return a value or text of a policy as JSON, which shows where it ends."""
    return "missing" if value is None else json.dumps(value, ensure_ascii=False)


_PROJECTED = """Projected shares are at least 0 and sum to 1, and means are within their bounds, so they are biased: an
estimate of 0 does not mean that nobody gave this answer. Unbiased estimates: --raw."""
# A single report has no standard error.
_LEAST_REPORTS = 2


def release(
    policy_file: Annotated[Path, typer.Argument(help="The policy, a .json file.", metavar="POLICY")],
    table: Annotated[
        Path,
        typer.Argument(help="A row for each person: .csv, .tsv (also with .gz), .parquet or .arrow.", metavar="TABLE"),
    ],
    output: Annotated[
        Path, output_option("--output", "-o", about="The reports to write.", endings=(".arrow", ".parquet"))
    ],
    separator: options.Separator = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    missing: options.Missing = None,
    no_header: options.NoHeader = False,
    secret: Annotated[
        Path | None,
        typer.Option(
            help="The file of a release secret, as of skldp policy secret: the same rows are the same reports again. "
            "For a permanent policy, which needs one.",
            metavar="PATH",
        ),
    ] = None,
    ids: Annotated[
        str | None, typer.Option(help="Column of the ids of people; needed with --secret, and only then.")
    ] = None,
    count_unknown: options.CountUnknown = False,
) -> None:
    """Release a table: one report for each row, without columns that the policy does not name.

    If a cell cannot be read or is no declared value, nothing is written. Without a secret, noise is fresh, and each run
    is another release of the same people.
    """
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
    policy_file: Annotated[Path, typer.Argument(help="The policy, a .json file.", metavar="POLICY")],
    files: Annotated[
        list[Path], typer.Argument(help="Reports: .arrow or .parquet files, or bytes one after the other.")
    ],
    report: Annotated[
        Path | None, output_option("--report", about="A page of all estimates to write.", endings=(".html",))
    ] = None,
    csv_path: Annotated[
        Path | None, output_option("--csv", about="The estimates to write, with errors and intervals.")
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
    """Collect reports of a policy, each once, and print estimates with confidence intervals.

    With --by or --where, the estimates are means and shares. The page of --report has the usual ones of all people.
    """
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
    collector: Collector, by: str | None, where: Mapping[str, Any], **how: Any
) -> list[tuple[tuple[str, ...], SurveyEstimate]]:
    """Estimate means and shares of the other columns; those asked of other people are told on stderr."""
    named, refused = list[tuple[tuple[str, ...], SurveyEstimate]](), dict[str, ValueError]()
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


def _write_estimates(path: Path, named: list[tuple[tuple[str, ...], SurveyEstimate]], by: str, where: str) -> None:
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
    cells: list[Any] = column.tolist()
    if any(is_missing(cell) for cell in cells):
        raise ValueError(f"Every row must have an id; column {column.name!r} has missing cells.")
    return cells


_SETTINGS = ("epsilon", "delta", "rule", "bounds", "head", "people", "answers", "refused")


def ledger(
    file: Annotated[str, typer.Argument(help="The ledger: a file, or the URL of a PostgreSQL database.")],
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check every decision again from the raw answers; exit code 1 if one fails."),
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes; -1 takes all cores.")] = None,
    head: Annotated[
        str | None,
        typer.Option(help="A head that this report once showed: refuse a ledger that has lost anything since."),
    ] = None,
) -> None:
    """Report the queries, answers and refusals of a ledger, and the budgets that are left."""
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
        console.print(rich_table("Queries", [name.replace("_", " ") for name in columns], rows))
    if verify:
        verification = found["verification"]
        for problem in verification["problems"]:
            console.print(printable(f"problem: {problem}"))
        console.print("verified: every decision was right" if verification["ok"] else "NOT verified")
        if not verification["ok"]:
            raise typer.Exit(1)
