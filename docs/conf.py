"""Sphinx configuration. Build with ``python -m sphinx -W --keep-going -b html docs docs/_build``."""

import re
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
# Tables and figures of the papers.
sys.path.insert(1, str(Path(__file__).parents[1] / "examples" / "papers"))
# Tables of the page on optimality.
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from sphinx.errors import ExtensionError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.nodes import make_refnode
from sphinx_gallery.sorting import ExplicitOrder

import skldp
from skldp.estimators import _guarantee_mixin

project = "skldp"
copyright = "2026, the skldp founders"
version = release = skldp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "live_pages",
    "page_texts",
    "measured",
]
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py"]
templates_path = ["_templates"]
# A cross reference that leads nowhere fails the build. Other projects' pages are not looked up, so that the build
# needs no network.
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(sklearn|numpy|scipy|pandas|matplotlib|joblib|concurrent)(\..*)?")]

html_theme = "pydata_sphinx_theme"
html_title = "skldp"
html_static_path = ["_static"]
html_css_files = ["skldp.css"]
html_logo = html_favicon = "_static/mark.svg"
html_theme_options = {
    "logo": {"text": "skldp", "alt_text": "skldp"},
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "back_to_top_button": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages without pages beneath them give their width to the text.
html_sidebars = {page: [] for page in ("index", "tutorial", "reference", "reference/generated/**", "auto_examples/**")}

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": ExplicitOrder([f"../examples/{section}" for section in ("start", "tasks", "papers")]),
    # Modules of the papers' examples.
    "ignore_pattern": r"papers/(?!federated_learning|private_text|realized_loss)",
    # Every example is run by the build, so that none can rot.
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "within_subsection_order": "live_pages.GalleryOrder",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    # That page asks other hosts for its scripts.
    "write_computation_times": False,
}

# What the package or an example calls must not be deprecated.
warnings.filterwarnings("error", category=DeprecationWarning, module=r"(skldp|__main__)(\.|$)")
# An example shows what a warning says, and not where the site was built.
warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\n"
# Examples show the package's own warnings on purpose; matplotlib's non-interactive backend is no news.
warnings.filterwarnings("ignore", message=".*is non-interactive.*")


# The boxes in the examples' diagrams lead to this site's own pages.
_guarantee_mixin.documentation = lambda: ".."


def skip_scikit_learns_own(app, what, name, obj, skip, options):
    """Leave out what scikit-learn puts on every estimator; its documentation refers to pages of its own site."""
    inherited = (getattr(obj, "__module__", None) or "").startswith("sklearn.")
    own = name in {"set_output", "get_metadata_routing"} or (name.startswith("set_") and name.endswith("_request"))
    return True if own or (inherited and ":ref:" in (obj.__doc__ or "")) else None


def find_by_last_name(app, env, node, contnode):
    """Lead a reference by a short name, or by the module of definition, to the one documented object it can mean."""
    if node.get("refdomain") != "py":
        return None
    domain, last = env.domains["py"], node["reftarget"].rpartition(".")[2]
    kinds = domain.objtypes_for_role(node["reftype"]) or ()
    found = {
        name
        for name, entry in domain.objects.items()
        if name.rpartition(".")[2] == last and entry.objtype in kinds and not entry.aliased
    }
    if len(found) != 1:
        return None
    (name,) = found
    entry = domain.objects[name]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, name)


def refuse_other_places(app, exception):
    """A page is read from its own site alone: nothing comes from another host, or names the folder of the build."""
    here = f"{Path(app.srcdir).parent}/"
    asks = re.compile(
        r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"'](?:https?:)?//[^>]*>|@import[^;]*//[^;]*;"
    )
    for page in () if exception else Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if found := asks.search(text):
            raise ExtensionError(f"{page.name} asks another host: {found[0][:200]}")
        if here in text:
            raise ExtensionError(f"{page.name} names {here}, where it was built.")


def describe_constants(app, what, name, obj, options, lines):
    """Say of a constant what the comment above its definition says (``#:``), not what its type says of itself."""
    if what != "data":
        return
    door, _, constant = name.rpartition(".")
    comments = (
        ModuleAnalyzer.for_module(module).find_attr_docs().get(("", constant))
        for module in sorted(sys.modules)
        if module.startswith(f"{door}.")
    )
    lines[:] = next(filter(None, comments), [])
    if not lines:
        raise ExtensionError(f"No comment that begins with #: describes {name}.")


def setup(app):
    app.connect("autodoc-process-docstring", describe_constants)
    app.connect("build-finished", refuse_other_places)
    app.connect("autodoc-skip-member", skip_scikit_learns_own)
    app.connect("missing-reference", find_by_last_name)
