"""Links from the repository's own pages lead to files that exist; the site's build checks those of the site."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("paper/*.md"), ROOT / "benchmarks" / "README.md"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    # The paper's script makes its figures.
    made = set(re.findall(r"HERE / \"(.+\.png)\"", (ROOT / "paper" / "figures.py").read_text(encoding="utf-8")))
    assert [link for link in links if not ((page.parent / link).exists() or link in made)] == []


def test_the_paper_cites_what_its_bibliography_has():
    paper, entries = (ROOT / "paper" / name for name in ("paper.md", "paper.bib"))
    cited = set(re.findall(r"@([a-z]+\d{4})", paper.read_text(encoding="utf-8")))
    assert cited == set(re.findall(r"^@\w+\{([a-z]+\d{4}),", entries.read_text(encoding="utf-8"), re.MULTILINE))
