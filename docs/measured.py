"""Directives of tables from files: ``measured-table`` of ``docs/results``, ``coverage-table`` of the papers' claims.

``.. measured-table:: price few_people`` joins files of one header. The options: ``:rows:`` keeps rows whose name has
one of these words (between semicolons), ``:columns:`` keeps columns by number, ``:corner:`` renames the first column,
``:fold:`` folds the table under a summary line. The command of each file is shown below the table.
"""

import csv
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

RESULTS = Path(__file__).parent / "results"


def setup(app):
    app.add_directive("measured-table", MeasuredTable)
    app.add_directive("coverage-table", CoverageTable)
    return {"version": "1", "parallel_read_safe": True}


def read_results(name):
    """Return the command, the header and the rows of a result file."""
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        command = file.readline().removeprefix("# ").strip()
        header, *rows = csv.reader(file)
    _, script, *arguments = command.split()
    text = (RESULTS.parents[1] / script).read_text(encoding="utf-8")
    if missing := [one for one in arguments if one.startswith("--") and one != "--save" and f'"{one}"' not in text]:
        raise ValueError(f"{script} has no options {missing}, by which {name}.csv was measured.")
    return command, header, rows


def _fold(summary, content):
    before = f'<details class="folded"><summary>{summary}</summary>'
    return [nodes.raw("", before, format="html"), *content, nodes.raw("", "</details>", format="html")]


class MeasuredTable(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {
        "rows": lambda text: [one.strip() for one in text.split(";")],
        "columns": lambda text: [int(one) for one in text.split()],
        "corner": directives.unchanged_required,
        "fold": directives.unchanged_required,
    }

    def run(self):
        commands, headers, tables = zip(*map(read_results, self.arguments[0].split()), strict=True)
        if any(header != headers[0] for header in headers):
            raise self.error(f"These results have different columns: {self.arguments[0]}")
        for name in self.arguments[0].split():
            self.env.note_dependency(str(RESULTS / f"{name}.csv"))
        header = [self.options.get("corner", headers[0][0]), *headers[0][1:]]
        rows = [row for table in tables for row in table]
        if words := self.options.get("rows"):
            rows = [row for word in words for row in rows if word in row[0]]
        kept = [0, *self.options.get("columns", range(1, len(header)))]
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for row in [header, *rows]:
            lines += [f"   {'*' if place == kept[0] else ' '} - {row[place]}" for place in kept]
        files = ", ".join(f"``docs/results/{name}.csv``" for name in self.arguments[0].split())
        lines += ["", ".. code-block:: bash", "   :caption: Measured by", ""]
        lines += [f"   {command}" for command in commands]
        content = self.parse_text_to_nodes("\n".join([*lines, "", f"Stored in {files}."]))
        return _fold(self.options["fold"], content) if "fold" in self.options else content


class CoverageTable(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        path = Path(__file__).parent / "papers" / "coverage.csv"
        self.env.note_dependency(str(path))
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 13 31 10 29 17", "   :class: ends-in-paths", ""]
        for row in [header, *(row for row in rows if row[0] == self.arguments[0])]:
            if row is not header:
                row[-1] = "; ".join(f"``{one.strip()}``" for one in row[-1].split(";") if one.strip())
            lines += [f"   {'*' if place == 1 else ' '} - {row[place]}" for place in range(1, len(row))]
        return self.parse_text_to_nodes("\n".join(lines))
