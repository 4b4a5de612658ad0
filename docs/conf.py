"""Sphinx configuration. Build with ``python -m sphinx -W --keep-going -b html docs docs/_build``."""

import functools
import importlib
import inspect
import os
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
    "sphinx_copybutton",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "live_pages",
    "page_texts",
    "measured",
    "reference_pages",
]
# The publishing host sets both. Without them the build needs no network, and no page names a host.
SITE, REPOSITORY = os.environ.get("SKLDP_SITE"), os.environ.get("SKLDP_REPOSITORY")
extensions.append("sphinx.ext.linkcode" if REPOSITORY else "sphinx.ext.viewcode")
if SITE:
    extensions += ["sphinx.ext.intersphinx", "sphinx_sitemap", "sphinxext.opengraph"]
    html_baseurl = ogp_site_url = SITE
    sitemap_url_scheme = "{link}"
    ogp_social_cards = {"enable": False}
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable/", None),
        "scipy": ("https://docs.scipy.org/doc/scipy/", None),
        "sklearn": ("https://scikit-learn.org/stable/", None),
        "pandas": ("https://pandas.pydata.org/docs/", None),
    }
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py"]
templates_path = ["_templates"]
smartquotes = False
# A cross reference that leads nowhere fails the build. Other projects' pages are looked up for a published site only.
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(sklearn|numpy|scipy|pandas|matplotlib|joblib|concurrent)(\..*)?")]

html_theme = "pydata_sphinx_theme"
html_title = "skldp"
html_static_path = ["_static"]
html_css_files = ["skldp.css"]
html_js_files = ["skldp.js"]
html_logo = html_favicon = "_static/mark.svg"
html_theme_options = {
    "logo": {"text": "skldp"},
    "navbar_persistent": ["search-button"],
    "show_prev_next": True,
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

copybutton_selector = "div:not(.output):not(.sphx-glr-script-out) > div.highlight > pre"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
# Examples and See Also of every public name are checked by reference_pages.
numpydoc_validation_checks = {"GL07", "PR01", "PR02", "PR03", "PR04", "PR07", "PR10", "RT01", "RT03", "YD01"}
# Users receive result objects and do not construct them: these have attributes in place of parameters.
numpydoc_validation_exclude = {r"\._\w+\.[A-Z]\w+$"}
# A summary that begins with "Return" says what a section would repeat.
numpydoc_validation_overrides = {"RT01": ["^Return "]}

PAPERS = Path(__file__).parents[1] / "examples" / "papers"
shown = re.compile("federated_learning|private_text|realized_loss")
modules_of_papers = [re.escape(path.name) for path in PAPERS.glob("*.py") if not shown.match(path.name)]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": ExplicitOrder([f"../examples/{section}" for section in ("start", "tasks", "papers")]),
    # Modules of the papers' examples.
    "ignore_pattern": f"^({'|'.join(modules_of_papers)})$",
    # Pages of the reference list the examples that use their name.
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("skldp",),
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
        r"<(?:script|link(?! rel=.canonical)|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"'](?:https?:)?//[^>]*>"
        r"|@import[^;]*//[^;]*;"
    )
    for page in () if exception else Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if found := asks.search(text):
            raise ExtensionError(f"{page.name} asks another host: {found[0][:200]}")
        if here in text:
            raise ExtensionError(f"{page.name} names {here}, where it was built.")


def linkcode_resolve(domain, info):
    """Return the address of an object's source in the repository."""
    names = info["fullname"].split(".")
    found = inspect.unwrap(functools.reduce(getattr, names, importlib.import_module(info["module"])))
    found = getattr(found, "fget", found)
    try:
        lines, first = inspect.getsourcelines(found)
        path = Path(inspect.getsourcefile(found)).relative_to(Path(skldp.__file__).parents[1])
    except (TypeError, OSError, ValueError):
        return None  # a constant, or what scikit-learn defines
    return f"{REPOSITORY}/blob/v{version}/{path.as_posix()}#L{first}-L{first + len(lines) - 1}"


def setup(app):
    app.connect("build-finished", refuse_other_places)
    app.connect("autodoc-skip-member", skip_scikit_learns_own)
    app.connect("missing-reference", find_by_last_name)
