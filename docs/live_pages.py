"""Directives that run what a page shows, so that no figure and no command in it can go stale.

``run-python`` executes Python and shows what it printed; the blocks of one page share their names, and with
``:show:`` an object is shown as a notebook would. ``run-figure`` executes Python that is not shown and puts the
matplotlib figure that it drew on the page. ``run-command`` executes command lines in an empty folder, or with
``:folder:`` in the one that a name of the page's Python holds. ``exec-table`` shows a table that a function of
``tables.py`` computes. A failure in any of them fails the build.
"""

import contextlib
import hashlib
import io
import os
import re
import shlex
import tempfile
import textwrap
import traceback
import warnings
from pathlib import Path

import matplotlib as mpl
import tables
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from skldp.cli import main
from skldp.estimators import _guarantee_mixin

# Columns of code that are seen whole beside two menus on a screen of 1,280 pixels, and of printed text.
_MOST_COLUMNS = 98
_OUTPUT_COLUMNS = 88

_FIGURE_STYLE = {
    "figure.figsize": (7.2, 3.0),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": mpl.cycler(color=["#1f6f8b", "#d1495b", "#8a8d8f", "#edae49"]),
    "legend.frameon": False,
}


# Examples that a newcomer reads first. The others follow by name.
_FIRST = ("from_file_to_score", "honest_epsilon", "linear_models_that_learn", "grid_search_epsilon")


class GalleryOrder:
    """The order of the examples."""

    def __init__(self, folder):
        pass

    def __repr__(self):
        return "<GalleryOrder>"

    def __call__(self, filename):
        name = filename.removesuffix(".py")
        return _FIRST.index(name) if name in _FIRST else len(_FIRST), name


def setup(app):
    mpl.use("Agg")
    app.add_directive("run-python", RunPython)
    app.add_directive("run-figure", RunFigure)
    app.add_directive("run-command", RunCommand)
    app.add_directive("exec-table", ExecTable)
    return {"version": "1", "parallel_read_safe": True}


def run_python(code, names):
    """Execute code and give what it printed. Warnings are printed, one line each, as a reader would see them."""
    printed = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *_: print(f"{category.__name__}: {message}")
        exec(compile(code, "<page>", "exec"), names)
    return printed.getvalue()


def is_table(printed):
    """Return whether a text has aligned columns, which a broken line would disarrange."""
    return sum(map(is_row, printed.splitlines())) > 1


def is_row(line):
    return bool(re.search(r"\S {2,}\S|│", line))


def wrap_prose(printed):
    """Break printed lines that are too long for the page, except rows of tables."""
    return "\n".join(
        line if is_row(line) else textwrap.fill(line, _OUTPUT_COLUMNS, subsequent_indent="  ", break_on_hyphens=False)
        for line in printed.rstrip().splitlines()
    )


def run_command(line, folder):
    """Execute a ``skldp`` command in a folder and give what it printed."""
    name, *arguments = shlex.split(line)
    if name != "skldp":
        raise ValueError(f"Only skldp commands are run here; got {line!r}.")
    printed = io.StringIO()
    # In this process: a new one would spend seconds on imports, for every command of every page.
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(_environment(COLUMNS=str(_OUTPUT_COLUMNS), NO_COLOR="1"))
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            main(arguments)
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(f"{line!r} ended with {stop.code}:\n{printed.getvalue()}") from None
    return printed.getvalue()


@contextlib.contextmanager
def _environment(**changes):
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Live(SphinxDirective):
    has_content = True
    option_spec = {"hide-output": directives.flag}

    @property
    def names(self):
        pages = self.env.temp_data.setdefault("live_pages_names", {})
        return pages.setdefault(self.env.docname, {"__name__": "__page__"})

    def run(self):
        text = "\n".join(self.content)
        try:
            shown, language, printed = self.execute(text)
        except Exception:
            raise self.error(f"What this page runs has failed:\n{traceback.format_exc()}") from None
        parts = [nodes.literal_block(shown, shown, language=language)]
        if printed.strip() and "hide-output" not in self.options:
            classes = ["output", *(["printed-table"] if is_table(printed) else [])]
            output = wrap_prose(printed)
            parts.append(nodes.literal_block(output, output, language="text", classes=classes))
        return parts


class RunPython(_Live):
    option_spec = _Live.option_spec | {"show": directives.unchanged_required}

    def run(self):
        parts = super().run()
        if "show" in self.options:
            # Links in its boxes lead to this site, from wherever the page is in it.
            depth = self.env.docname.count("/")
            _guarantee_mixin.documentation = lambda: "/".join([".."] * depth) or "."
            shown = eval(self.options["show"], self.names)._repr_html_()
            parts.append(nodes.raw("", f'<div class="shown">{shown}</div>', format="html"))
        return parts

    def execute(self, text):
        longest = max(map(len, text.splitlines()), default=0)
        if longest > _MOST_COLUMNS:
            raise ValueError(f"Code must fit into {_MOST_COLUMNS} columns, which a page shows; got {longest}.")
        return text, "python", run_python(text, self.names)


class RunFigure(_Live):
    """A figure that hidden Python draws, with what it shows as its caption."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"alt": directives.unchanged_required}

    def run(self):
        import matplotlib.pyplot as plt

        plt.close("all")
        code = "\n".join(self.content)
        try:
            with mpl.rc_context(_FIGURE_STYLE):
                # Seeds make the figure the same in every build; the package warns of each.
                run_python(code, self.names)
                path = self._save(plt.gcf(), code)
        except Exception:
            raise self.error(f"The figure of this page has failed:\n{traceback.format_exc()}") from None
        image = nodes.image(uri=os.path.relpath(path, Path(self.env.doc2path(self.env.docname)).parent))
        image["alt"] = self.options["alt"]
        caption, messages = self.parse_inline(self.arguments[0])
        return [nodes.figure("", image, nodes.caption("", "", *caption), classes=["page-figure"]), *messages]

    def _save(self, figure, code):
        """Write the figure beside the doctrees, from where the builder copies it like any other image."""
        folder = Path(self.env.app.doctreedir) / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{self.env.docname.replace('/', '-')}-{hashlib.sha256(code.encode()).hexdigest()[:8]}.png"
        figure.savefig(folder / name, dpi=150, bbox_inches="tight", metadata={"Software": None})
        return folder / name


class RunCommand(_Live):
    option_spec = _Live.option_spec | {"folder": directives.unchanged_required}

    def execute(self, text):
        with tempfile.TemporaryDirectory() as empty:
            folder = self.names[self.options["folder"]] if "folder" in self.options else empty
            return text, "bash", "".join(run_command(line, folder) for line in text.splitlines())


class ExecTable(SphinxDirective):
    required_arguments = 1

    def run(self):
        try:
            header, rows = getattr(tables, self.arguments[0])()
        except Exception:
            raise self.error(f"The table has failed:\n{traceback.format_exc()}") from None
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for row in [header, *rows]:
            lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
        return self.parse_text_to_nodes("\n".join(lines))
