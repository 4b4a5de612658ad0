"""Links from the reference to guides, related names and the glossary, and alternative texts of thumbnails.

``reference.csv`` has a row for each public name: its guide, and what its See Also lists if its docstring has none.
"""

import csv
import importlib
import inspect
import re
from pathlib import Path

from docutils import nodes
from numpydoc.docscrape import NumpyDocString
from sphinx import addnodes
from sphinx.util import logging

logger = logging.getLogger(__name__)
HERE = Path(__file__).parent
with (HERE / "reference.csv").open(encoding="utf-8") as file:
    PAGES = {row["name"]: row for row in csv.DictReader(file)}
# Methods that mechanisms, devices and models call on each other. Their docstrings are for contributors.
INTERNAL = {
    "skldp.domains": "as_numbers as_rows as_texts encode encode_all feature_names from_numbers label number on_grid "
    "replaced to_document unit_places clip",
    "skldp.mechanisms": "bind closest_law original_second_moment original_squares output_dtype output_law replace_rows "
    "tasks",
    "skldp.accounting._regression_query": "thresholds unit_response",
    "skldp.client._fields": "draw encode encode_all is_answer value",
    "skldp.client._vector_field": "encode encode_all",
    "skldp.collection._survey_estimates": "only scaled",
    "skldp.estimators._query_results": "of",
}
WITHOUT_LINKS = ("glossary", "reference", "auto_examples/")


def setup(app):
    # Before numpydoc, which brings the sections into its order and validates them.
    app.connect("autodoc-process-docstring", complete_docstring, priority=400)
    app.connect("autodoc-skip-member", skip_internal)
    app.connect("doctree-read", link_terms)
    app.connect("doctree-resolved", describe_thumbnails)
    return {"version": "1", "parallel_read_safe": True}


def complete_docstring(app, what, name, obj, options, lines):
    """Add the guide and related names to the docstring of a public name, and warn of what it lacks."""
    row = PAGES.get(name.rpartition(".")[2])
    if what not in {"class", "function", "exception"} or row is None or any(":doc:`/" in line for line in lines):
        return
    if row["see also"] and "See Also" not in lines:
        related = map(_related, row["see also"].split())
        later = [i for i, line in enumerate(lines) if line in {"Notes", "References", "Examples"}]
        before = later[0] if later else len(lines)
        lines[before:before] = ["", "See Also", "--------", *related, ""]
    after_summary = lines.index("") if "" in lines else len(lines)
    lines[after_summary:after_summary] = ["", f"User guide: :doc:`/{row['guide']}`."]
    text = NumpyDocString("\n".join(lines))
    is_result = "._" in name
    lacks = [section for section in ("See Also", "Examples") if not text[section]]
    if what == "exception" or is_result:
        lacks = [section for section in lacks if section != "Examples"]
    lacks += [f"a description of {one.name}" for one in text["Attributes"] if not "".join(one.desc).strip()]
    if lacks:
        logger.warning("The docstring of %s lacks %s.", name, ", ".join(lacks), type="reference")


def _related(name):
    """Return an entry of See Also: the full name, and the first line of its docstring."""
    package = "skldp"
    for line in (HERE / "reference.rst").read_text(encoding="utf-8").splitlines():
        package = line.removeprefix(".. currentmodule:: ") if line.startswith(".. currentmodule") else package
        module, _, entry = f"{package}.{line.strip().lstrip('~')}".rpartition(".")
        if entry == name:
            summary = inspect.getdoc(getattr(importlib.import_module(module), name)).partition("\n")[0]
            return f"{module}.{name} : {summary}"
    raise ValueError(f"reference.csv names {name!r}, which is not in the reference.")


def skip_internal(app, what, name, obj, skip, options):
    """Leave out the methods that are not for users."""
    module = getattr(obj, "__module__", None) or ""
    hidden = any(module.startswith(place) and name in names.split() for place, names in INTERNAL.items())
    return True if hidden else None


def _terms():
    """Return a pattern of the glossary's terms in singular and plural, and the term of each form."""
    found = re.findall(r"^   ([A-Za-z].*)$", (HERE / "glossary.rst").read_text(encoding="utf-8"), re.MULTILINE)
    forms = {form: term for term in found for form in (term, f"{term}s", f"{term.removesuffix('y')}ies")}
    longest_first = sorted(forms, key=len, reverse=True)
    # "It bounds" and "people release" have verbs.
    no_verb = "".join(rf"(?<!\b{subject} )" for subject in ("[Ii]t", "to", "they", "[Pp]eople", "that", "which"))
    return re.compile(rf"(?<![\w-]){no_verb}({'|'.join(map(re.escape, longest_first))})(?![\w-])"), forms


def link_terms(app, doctree):
    """Link the first use of each term of the glossary in the running text of a page."""
    if app.env.docname.startswith(WITHOUT_LINKS):
        return
    pattern, forms = _terms()
    linked = set()
    for text in [text for text in doctree.findall(nodes.Text) if type(text.parent) is nodes.paragraph]:
        parts, end = [], 0
        for match in pattern.finditer(text):
            term = forms[match[0]]
            if term not in linked:
                linked.add(term)
                shown = nodes.inline("", match[0], classes=["xref", "std", "std-term"])
                link = addnodes.pending_xref(
                    "", shown, refdomain="std", reftype="term", reftarget=term, refexplicit=True
                )
                link["refdoc"] = app.env.docname
                parts += [nodes.Text(text[end : match.start()]), link]
                end = match.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def describe_thumbnails(app, doctree, docname):
    """Name the example in the alternative text of its thumbnail, which sphinx-gallery leaves empty."""
    titles = {page.rpartition("/")[2]: title.astext() for page, title in app.env.titles.items() if "auto_" in page}
    for image in doctree.findall(nodes.image):
        if found := re.search(r"sphx_glr_(\w+)_thumb\.", image["uri"]):
            image["alt"] = f"Figure of the example: {titles[found[1]]}"
