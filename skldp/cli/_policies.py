"""``skldp policy``: from a schema to a policy, and what it gives."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skldp.cli import _names
from skldp.cli import _options as options
from skldp.cli._options import keep_inputs, made_up_row, output_option, printable, rich_table

if TYPE_CHECKING:
    from skldp.domains._column import Column

policy = typer.Typer(rich_markup_mode=None)
# Number of categories that are shown.
_MOST_SHOWN = 4


@policy.command(
    epilog=_names.epilog(
        'skldp policy new people.json --purpose "health survey" -o policy.json',
        'skldp policy new people.json --purpose "health survey" -o policy.json --sampled auto',
    )
)
def new(
    schema: Annotated[str, typer.Argument(help="Declared columns, as of TablePrivatizer: a .json file, or its text.")],
    output: Annotated[Path, output_option("--output", "-o", about="Policy to write.", endings=(".json",))],
    purpose: Annotated[str, typer.Option(help="Purpose of the collection, shown to people.")],
    epsilon: Annotated[float, typer.Option(help="Budget of one record with all its columns, natural log.")] = 1.0,
    mechanism: Annotated[
        str, typer.Option(help=f"Mechanism of numbers and dates: {', '.join(_names.NUMBERS)} or best.")
    ] = "best",
    category_mechanism: Annotated[
        str, typer.Option(help=f"Mechanism of categories: {', '.join(_names.CATEGORIES)} or best.")
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
        list[str] | None, typer.Option(help="Unit of a number, for display: age=years. Repeatable.")
    ] = None,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="The same record gives the same report, by a secret.")
    ] = False,
    expires: Annotated[
        str | None, typer.Option(help="UTC time after which nothing is released: 2027-01-31T00:00:00Z.")
    ] = None,
) -> None:
    """Make a policy from declared columns.

    Epsilon is split equally among the columns each person is asked. With --sampled auto, people are asked as many
    columns as give the least error of means and shares. Two columns can be compared only if people are asked two or
    more.

    A missing number counts as the middle of its bounds. A missing or unknown category counts as missing if the
    schema declares that ("missing": "category"), else as the first value.
    """
    from skldp.collection._conversion import policy_from_estimator
    from skldp.collection._survey_fields import estimates_of
    from skldp.estimators._table import TablePrivatizer
    from skldp.study._table_files import read_study_schema

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
def show(file: options.PolicyFile) -> None:
    """Check and show a policy: its fields, laws and exact epsilons."""
    from rich.console import Console

    from skldp.client import Policy
    from skldp.collection._survey_fields import estimates_of

    policy = Policy.load(file)
    # Texts of the policy stay in table cells: they must not look like lines of this command.
    console = Console(highlight=False, markup=False)
    console.print(rich_table(["purpose"], [[policy.purpose]], folded=True))
    rows = [[one.name, _values(one), one.law.name, f"{one.epsilon:.4g}", estimates_of(one)] for one in policy.fields]
    console.print(rich_table(["field", "values", "law", "epsilon", "gives"], rows, folded=True))
    if policy.memo == "permanent":
        typer.echo("permanent: the same record gives the same report again")
    if policy.n_sampled is not None:
        typer.echo(f"each person is asked {policy.n_sampled} of {len(policy.fields)} fields, chosen at random")
    expires = f"until {policy.expires}" if policy.expires else "no expiry"
    typer.echo(printable(f"epsilon {policy.epsilon:.6g} a record, {policy.n_bytes} bytes a report, {expires}"))
    typer.echo(f"sha256 {policy.sha256}")


@policy.command()
def plan(
    file: options.PolicyFile,
    people: Annotated[int, typer.Option(help="Number of people who report.")],
    by: Annotated[str | None, typer.Option(help="Category of the policy to group by.")] = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    half_width: Annotated[
        list[str] | None,
        typer.Option(
            help="Show how many people a field needs for an interval of this half-width: age=1.5. Repeatable."
        ),
    ] = None,
) -> None:
    """Show the expected precision of a survey, before anybody is asked.

    Figures are for people whose values are uniform and independent of each other.
    """
    from skldp.client import Policy
    from skldp.study import plan_survey

    policy = Policy.load(file)
    found = plan_survey(policy, people, by=by, level=level)
    wanted = list(map(_width, half_width or []))
    needed = [found.n_people_for(field, width) for field, width in wanted]
    typer.echo("\n".join(map(printable, str(found).split("\n"))))
    for (field, width), n in zip(wanted, needed, strict=True):
        typer.echo(printable(f"{field} +- {width:g}: {n:,} people"))


@policy.command()
def secret(file: Annotated[Path, typer.Argument(help="A new file, for its owner alone.", metavar="PATH")]) -> None:
    """Draw a release secret for permanent policies, once.

    It stays with the party that releases.
    """
    from skldp.laws._release_key import ReleaseKey

    ReleaseKey.create(file)
    typer.echo(printable(f"Wrote {file}. Keep it apart from records and reports; it cannot be recovered."))


@policy.command()
def check(
    file: options.PolicyFile,
    most: Annotated[float | None, typer.Option("--most", help="Largest accepted epsilon of a record.")] = None,
) -> None:
    """Check a policy and its stated epsilons.

    The exit code is 2 if the integers of the policy do not give its epsilons.
    """
    from skldp.client import Policy

    policy = Policy.load(file)
    if most is not None and not policy.epsilon <= most:
        raise ValueError(f"The epsilon of the policy must be at most {most:g}; got {policy.epsilon:.6g}.")
    typer.echo(f"valid: epsilon {policy.epsilon:.6g} a record, from the integers of {len(policy.fields)} fields")


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


def _values(field: Any) -> str:
    if field.kind == "vector":
        what = "its direction" if field.bound is None else f"clipped to a norm of {field.bound!r}"
        return f"{field.law.n_values} numbers, {what}; missing counts as zeros"
    if field.kind in ("pair", "numbers"):
        between = " with " if field.kind == "pair" else "; "
        return between.join(f"{_quoted(one.name)} {_of_column(one)}" for one in field.columns)
    return _of_column(field.column)


def _of_column(column: "Column") -> str:
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
