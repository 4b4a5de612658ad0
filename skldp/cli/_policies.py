"""``skldp policy new|show|check``: what people's own devices are to release, as one document."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from skldp.cli._options import printable, writable
from skldp.client import CategoryField, NumberColumn, NumbersField
from skldp.client._fields import AnyField
from skldp.collection._policy import Policy
from skldp.estimators._schema import DeclaredColumn, read_schema
from skldp.estimators._table import TablePrivatizer
from skldp.mechanisms._columns import Categories, Columns, domain_from_json, strict_json
from skldp.mechanisms._release_key import ReleaseKey
from skldp.study._extras import require

__all__ = ["policy"]

policy = typer.Typer()

# A list of categories is shown as so many of them.
_MOST_SHOWN = 4

File = Annotated[Path, typer.Argument(help="The policy, a .json file.", metavar="POLICY")]


@policy.command()
def new(
    schema: Annotated[
        str, typer.Argument(help="What columns may hold, as of TablePrivatizer: a .json file, or its text.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write it.", parser=writable(".json"), metavar="PATH")
    ],
    purpose: Annotated[str, typer.Option(help="What the collection is for, to be shown to people.")],
    epsilon: Annotated[float, typer.Option(help="Of one record with all its columns: natural log.")] = 1.0,
    mechanism: Annotated[str, typer.Option(help="Of numbers and dates, as of TablePrivatizer.")] = "best",
    unit: Annotated[
        list[str] | None, typer.Option(help="Of a number, to be shown: age=years. May be given several times.")
    ] = None,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="The same record is to give the same report again, by a secret.")
    ] = False,
    expires: Annotated[
        str | None, typer.Option(help="After which nothing is released, in UTC: 2027-01-31T00:00:00Z.")
    ] = None,
) -> None:
    """Make a policy from declared columns: their epsilon is shared out equally.

    A missing number counts as the middle of its bounds. A missing or unknown category counts as missing where the
    schema declares that ("missing": "category"), else as the first value.
    """
    text = Path(schema).read_text(encoding="utf-8") if schema.endswith(".json") else schema
    units = dict(_pair(one) for one in unit or [])
    table = TablePrivatizer(epsilon, schema=text, mechanism=mechanism).fit(_public_rows(text))
    made = Policy.from_estimator(table, purpose=purpose, units=units, expires=expires)
    made = made.permanent() if permanent else made
    made.save(output)
    typer.echo(printable(f"Wrote {output}: epsilon {made.epsilon:.6g} a record, sha256 {made.sha256}."))


@policy.command()
def show(file: File) -> None:
    """Show what a policy has people release, and at which exact epsilon; it is checked first."""
    policy = Policy.load(file)
    # Texts of the policy stay in cells of their own, so that none looks like a line of this command.
    console = Console(highlight=False, markup=False)
    console.print(_cells(["purpose"], [[policy.purpose]]))
    rows = [[one.name, _values(one), one.law.name, f"{one.epsilon:.4g}"] for one in policy.fields]
    console.print(_cells(["field", "values", "law", "epsilon"], rows))
    if policy.memo == "permanent":
        typer.echo("permanent: the same record gives the same report again")
    expires = f"until {policy.expires}" if policy.expires else "without end"
    typer.echo(printable(f"epsilon {policy.epsilon:.6g} a record, {policy.n_bytes} bytes a report, {expires}"))
    if policy.has_waves:
        typer.echo(f"epsilon {policy.lifetime_epsilon:.6g} of all reports together, while no value changes")
    typer.echo(f"sha256 {policy.sha256}")


@policy.command()
def secret(
    file: Annotated[Path, typer.Argument(help="A new file, for its owner alone.", metavar="PATH")],
) -> None:
    """Draw a release secret, once, for whoever releases under a permanent policy: it stays with them."""
    ReleaseKey.create(file)
    typer.echo(printable(f"Wrote {file}. Keep it apart from records and reports; a lost one cannot be made again."))


@policy.command()
def check(
    file: File,
    most: Annotated[float | None, typer.Option("--most", help="The largest epsilon of a record that is right.")] = None,
) -> None:
    """Check that a policy is one, and that its integers give the epsilon that it claims; exit code 2 if not."""
    policy = Policy.load(file)
    # Of one step, a lifetime of one value costs what one report does; of two, more.
    if most is not None and not policy.lifetime_epsilon <= most:
        raise ValueError(
            f"The epsilon of the policy must be at most {most:g}. Got {policy.lifetime_epsilon:.6g} instead."
        )
    again = "no estimator made it" if policy.asked is None else "an estimator gives the same integers"
    if policy.asked is not None:
        policy.to_estimator()
    typer.echo(
        f"right: epsilon {policy.epsilon:.6g} a record, from the integers of {len(policy.fields)} fields; {again}"
    )


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
        raise typer.BadParameter(f"A unit must be a column and its unit, such as age=years. Got {text!r} instead.")
    return name, unit


def _public_rows(text: str) -> Any:
    """A frame of one row of the declared columns, that anybody may know."""
    try:
        content = strict_json(text)
    except json.JSONDecodeError:
        raise ValueError(
            'The schema must be a .json file, or JSON such as {"age": {"type": "interval", "low": 0, "high": 100}, '
            '"city": ["Bonn", "Ulm"]}. Got another text instead.'
        ) from None
    domain = domain_from_json(text) if isinstance(content, dict) and content.get("type") == "columns" else None
    names = list(domain.names) if isinstance(domain, Columns) else list(content) if isinstance(content, dict) else []
    if not names:
        raise ValueError("The schema must declare columns by their names. Got none instead.")
    columns, _ = read_schema(text, names, [None] * len(names))
    return require("pandas").DataFrame({name: _least(one) for name, one in zip(names, columns, strict=True)})


def _least(column: DeclaredColumn) -> Any:
    np = require("numpy")
    return column.from_numbers(np.array([0 if isinstance(column.domain, Categories) else column.domain.low]))


def _values(field: AnyField) -> str:
    if isinstance(field, CategoryField):
        shown = [_quoted(value) for value in field.values[:_MOST_SHOWN]]
        more = f", ... ({len(field.values)} in all)" if len(field.values) > _MOST_SHOWN else ""
        return ", ".join(shown) + more + f"; others count as {_quoted(field.unknown)}"
    if isinstance(field, NumbersField):
        return "; ".join(f"{_quoted(one.name)} {_bounds(one)}" for one in field.columns)
    return _bounds(field.column)


def _quoted(value: Any) -> str:
    """Return a value or text of a policy as JSON, which shows where it ends."""
    return json.dumps(value, ensure_ascii=False)


def _bounds(column: NumberColumn) -> str:
    low, high, missing = column.as_texts()
    unit = f" {_quoted(column.unit)}" if column.unit else ""
    return f"{low} to {high}{unit}; missing ones count as {missing}"
