"""Sphinx configuration. Build with ``python -m sphinx -W --keep-going -b html docs docs/_build``."""

import warnings

import skldp

project = "skldp"
copyright = "2026, the skldp founders"
version = release = skldp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py"]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "skldp"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    # Every example is run by the build, so that none can rot.
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
}

# Examples show the package's own warnings on purpose; matplotlib's non-interactive backend is no news.
warnings.filterwarnings("ignore", message=".*is non-interactive.*")
