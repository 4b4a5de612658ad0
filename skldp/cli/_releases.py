"""``skldp release`` and ``skldp collect``: a table in, a file of reports out; files of reports in, estimates out."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from skldp._reading import is_missing
from skldp.cli._options import EncodingOption, SepOption, printable, progress_bar, writable
from skldp.collection._arrow import report_schema, require_arrow
from skldp.collection._batches import check_secret, released_batch
from skldp.collection._collector import Collector
from skldp.collection._page import usual_estimates
from skldp.collection._policy import Policy
from skldp.mechanisms._release_key import ReleaseKey
from skldp.study._tables import is_text_file, table_chunks

__all__ = ["collect", "release"]

# With one, there is no standard error.
_LEAST_REPORTS = 2


def release(
    policy_file: Annotated[Path, typer.Argument(help="The policy, a .json file.", metavar="POLICY")],
    table: Annotated[
        Path,
        typer.Argument(help="A row for each person: .csv, .tsv (also with .gz), .parquet or .arrow.", metavar="TABLE"),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Where to write reports.", parser=writable(".arrow", ".parquet"), metavar="PATH"
        ),
    ],
    sep: SepOption = None,
    encoding: EncodingOption = "utf-8",
    secret: Annotated[
        Path | None,
        typer.Option(
            help="The file of a release secret, as of skldp policy secret: the same rows are the same reports again. "
            "For a permanent policy, which needs one.",
            metavar="PATH",
        ),
    ] = None,
    ids: Annotated[
        str | None, typer.Option(help="The column that says whose each row is; with --secret, and only then.")
    ] = None,
    count_unknown: Annotated[
        bool,
        typer.Option("--count-unknown", help="Count categories that the policy does not declare as it says: no error."),
    ] = False,
    chunk: Annotated[int, typer.Option(help="Rows that are in memory at a time.", min=1)] = 65_536,
) -> None:
    """Release a table: one report for each row, and nothing that the policy does not name.

    If a cell cannot be read or is no declared value, nothing is written. Without a secret, noise is fresh, and each run
    is another release of the same people.
    """
    policy = Policy.load(policy_file)
    key = None if secret is None else ReleaseKey.from_file(secret)
    check_secret(policy, key, ids)
    wanted = policy.names if ids is None else [*policy.names, ids]
    chunks = table_chunks(table, columns=wanted, separator=sep, encoding=encoding, n_rows=chunk, as_texts=True)
    text = is_text_file(table)
    n, repeated = 0, False
    with progress_bar(Console()) as progress, _written(output, report_schema(policy)) as write:
        bar = progress.add_task("releasing", total=None)
        for frame in chunks:
            people = None if ids is None else _ids(frame[ids])
            how: dict[str, Any] = {
                "text": text,
                "first_row": n + 1,
                "handle_unknown": "policy" if count_unknown else "error",
            }
            write(released_batch(policy, {name: frame[name] for name in policy.names}, key, people, **how))
            repeated = repeated or (people is not None and len(set(people)) < len(people))
            n += len(frame)
            progress.update(bar, completed=n)
    typer.echo(printable(f"Released {n:,} records at epsilon {policy.epsilon:.6g} each: {output}."))
    # Looked for among the rows that are in memory together.
    if repeated:
        typer.echo(
            "Some ids are those of several rows: whose records differ pays for each, and equal ones are one report."
        )


def collect(
    policy_file: Annotated[Path, typer.Argument(help="The policy, a .json file.", metavar="POLICY")],
    files: Annotated[
        list[Path], typer.Argument(help="Reports: .arrow or .parquet files, or bytes one after the other.")
    ],
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Where to write a page of all estimates.", parser=writable(".html"), metavar="PATH"
        ),
    ] = None,
    csv_path: Annotated[
        Path | None,
        typer.Option("--csv", help="Where to write released values, for training.", parser=writable(), metavar="PATH"),
    ] = None,
) -> None:
    """Collect reports of a policy, each once, and estimate with intervals what they tell of all people."""
    collector = Collector(Policy.load(policy_file))
    with progress_bar(Console()) as progress:
        bar = progress.add_task("collecting", total=len(files))
        for path in files:
            collector.add_file(path)
            progress.advance(bar)
    counts = ", ".join(f"{number:,} {name}" for name, number in collector.counts._asdict().items())
    if collector.n_reports < _LEAST_REPORTS:
        raise ValueError(f"Estimates need at least {_LEAST_REPORTS} reports of this policy. Got reports {counts}.")
    estimates = [one for field in collector.policy.fields for one, _ in usual_estimates(collector, field)]
    # Before anything is printed, which a terminal may refuse.
    if report is not None:
        report.write_text(collector.page(), encoding="utf-8")
    if csv_path is not None:
        collector.to_frame().to_csv(csv_path, index=False)
    typer.echo(printable(f"{collector.policy.purpose}: reports {counts}; epsilon {collector.policy.epsilon:.6g} each."))
    for estimate in estimates:
        typer.echo("\n".join(["", *map(printable, str(estimate).split("\n"))]))
    for path in filter(None, (report, csv_path)):
        typer.echo(printable(f"Wrote {path}."))


@contextmanager
def _written(output: Path, schema: Any) -> Iterator[Callable[[Any], None]]:
    """A file that is there once all of it is: what fails in the middle leaves none."""
    arrow = require_arrow("pyarrow.parquet") if output.suffix.lower() == ".parquet" else require_arrow()
    part = output.with_name(output.name + ".part")
    try:
        of_file = arrow.ParquetWriter if output.suffix.lower() == ".parquet" else arrow.ipc.new_file
        with of_file(str(part), schema) as writer:
            yield writer.write_batch
        os.replace(part, output)
    finally:
        part.unlink(missing_ok=True)


def _ids(column: Any) -> list[str]:
    """Whose rows they are, as texts: 7 of a Parquet file is the 7 of a CSV file."""
    cells = column.tolist()
    if any(is_missing(cell) for cell in cells):
        raise ValueError(f"Every row must say whose it is. Got one without {column.name!r}.")
    return [str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell) for cell in cells]
