"""Links from the repository's own pages lead to files that exist; the site's build checks those of the site."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_page_for_contributors_names_files_and_lists_that_exist():
    text = (ROOT / "docs" / "contributing.rst").read_text(encoding="utf-8")
    named = re.findall(r"(?:``(\w+)``\s+of\s+)?``((?:tests|skldp|docs|benchmarks|examples)/[\w/.]+)``", text)
    assert {path for _, path in named if not (ROOT / path).exists()} == set()
    lists = [(name, path) for name, path in named if name]
    assert len(lists) >= 6
    assert [one for one in lists if not re.search(rf"\b{one[0]}\b", (ROOT / one[1]).read_text(encoding="utf-8"))] == []


def _is_there(name):
    module, inner = name, []
    while True:
        try:
            found = importlib.import_module(module)
            break
        except ImportError:
            module, _, last = module.rpartition(".")
            inner.insert(0, last)
    for one in inner:
        if not hasattr(found, one):
            return False
        found = getattr(found, one)
    return True


def test_the_sources_refer_to_names_that_exist():
    """The site's build does not read private modules."""
    texts = (path.read_text(encoding="utf-8") for path in sorted((ROOT / "skldp").rglob("*.py")))
    named = {
        name for text in texts for name in re.findall(r":(?:class|func|meth|attr|mod|exc):`~?(skldp[\w.]+)`", text)
    }
    assert len(named) > 5
    assert {name for name in named if not _is_there(name)} == set()
