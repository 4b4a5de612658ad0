"""The report is one whole page: nothing fetched, everything escaped, tables with headers, readable on a phone."""

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from comparisons import NAMES, NASTY, small_comparison

from skldp.study._report import html_report

VOID = {"meta", "br", "img"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed here")


@pytest.fixture(scope="module")
def report():
    return html_report(small_comparison(), command="skldp study '<b>.csv'")


class Page(HTMLParser):
    """What stands in a page: its tags in order, whether they close, and its texts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.open, self.wrong = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.wrong.append(tag)

    def handle_data(self, text):
        self.texts.append(text)

    def named(self, tag):
        return [attrs for found, attrs in self.tags if found == tag]


@pytest.mark.slow
def test_is_one_well_formed_page(report):
    page = Page(report)
    assert (page.open, page.wrong) == ([], [])
    assert report.startswith("<!doctype html>")
    assert page.named("html") == [{"lang": "en"}]
    assert [len(page.named(tag)) for tag in ("h1", "main", "title")] == [1, 1, 1]
    named = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(named) == len(set(named))


def test_fetches_and_runs_nothing(report):
    page = Page(report)
    assert {"script", "link", "img", "iframe", "object", "form"}.isdisjoint(tag for tag, _ in page.tags)
    for tag, attrs in page.tags:
        assert {"src", "href", "srcset"}.isdisjoint(attrs), tag
        # Pictures use parts of their own.
        assert attrs.get("xlink:href", "#").startswith("#")
        assert not [name for name in attrs if name.startswith("on")]
    assert re.findall(r"url\((?!#\w+\))|@import", report) == []
    # Names of two languages of mark-up, and nowhere to go.
    addresses = set(re.findall(r"https?://[^\"' <]+", report))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    policy = next(attrs["content"] for attrs in page.named("meta") if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'")


def test_escapes_names_and_the_command(report):
    page = Page(report)
    assert "<img" not in report
    assert "<b>.csv" not in report
    text = " ".join(page.texts)
    assert f"{NASTY}: cost of privacy" in text
    assert "skldp study '<b>.csv'" in text


def test_tables_have_headers_and_pictures_have_words(report):
    page = Page(report)
    assert len(page.named("table")) == len(page.named("caption")) == 2
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.named("th"))
    charts = [attrs for attrs in page.named("div") if attrs["class"] == "chart"]
    assert len(charts) == len(page.named("svg")) == 2
    assert all(attrs["role"] == "img" and len(attrs["aria-label"]) > 20 for attrs in charts)
    # Text is text, and not the outline of its letters.
    assert sum(text in NAMES for text in page.texts) >= 2 * len(NAMES)
    # What scrolls can be reached without a mouse.
    assert all(
        attrs["tabindex"] == "0" and attrs["aria-label"] for attrs in page.named("div") if "scroll" in attrs["class"]
    )


def framed(report, tmp_path, width):
    """A page that shows the report as a window of the given width would, and writes how wide it came out."""
    page = tmp_path / "framed.html"
    page.write_text(
        f'<!doctype html><body style="margin:0"><iframe style="border:0" width="{width}" height="900" '
        f'srcdoc="{html.escape(report)}" onload="const page = this.contentDocument.documentElement;'
        'document.title = [page.clientWidth, page.scrollWidth].join()"></iframe>',
        encoding="utf-8",
    )
    return page.as_uri()


def chromium(address, tmp_path, *options):
    # No sandbox: containers and root have none, and the page is our own.
    base = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    base += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", *options]
    return subprocess.run([*base, address], capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.slow
@in_chromium
@pytest.mark.parametrize("width", [375, 1200])
def test_is_never_wider_than_the_window(report, tmp_path, width):
    done = chromium(framed(report, tmp_path, width), tmp_path, "--dump-dom")
    inner, content = re.search(r"<title>(\d+),(\d+)</title>", done.stdout).groups()
    assert 0 < int(content) <= int(inner) <= width
    assert "CONSOLE" not in done.stderr
