"""The built site in a browser, at the width of a screen and of a telephone.

Needs selenium, chromium with its driver, and pages in docs/_build or in the folder that SKLDP_PAGES names. Without them
the tests are skipped, or fail if SKLDP_BROWSER is "required". SKLDP_AXE names axe-core's axe.min.js.
"""

import importlib.util
import os
import runpy
import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = Path(os.environ.get("SKLDP_PAGES", DOCS / "_build"))
WIDTHS = (1280, 420)
ACCESSIBLE = (
    *("index", "tutorial", "reference", "glossary", "guide/index", "guide/linear", "background/epsilon"),
    *("papers/bitrand", "auto_examples/index", "reference/generated/skldp.PrivateLinearRegression"),
)
# An element that moves within its own frame, such as a wide table, does not widen the page.
FAULTS = """
const faults = [];
const width = document.documentElement.clientWidth;
// The theme hides what is wider than the page.
const moves = node => node && node.tagName !== "ARTICLE" &&
  (["auto", "scroll"].includes(getComputedStyle(node).overflowX) || moves(node.parentElement));
const wide = [...document.querySelectorAll("article :not(mjx-assistive-mml, mjx-assistive-mml *)")]
  .filter(node => node.getBoundingClientRect().right > width + 1 && !moves(node.parentElement));
if (document.documentElement.scrollWidth > width || wide.length) {
  const shown = wide.slice(0, 3).map(node => node.tagName + "." + node.className);
  faults.push(`${document.documentElement.scrollWidth} px wide in ${width}: ${shown}`);
}
for (const image of document.images)
  if (!image.complete || !image.naturalWidth) faults.push(`image ${image.src} is missing`);
for (const image of document.querySelectorAll("article img"))
  if (!image.hasAttribute("alt")) faults.push(`image ${image.src} has no text`);
return faults;
"""


@pytest.fixture(scope="module")
def browser():
    programs = ("chromium", "chromium-browser", "google-chrome")
    chromium, driver = next(filter(None, map(shutil.which, programs)), None), shutil.which("chromedriver")
    found = {
        "selenium": importlib.util.find_spec("selenium"),
        "chromium": chromium,
        "chromedriver": driver,
        f"built pages in {PAGES}": (PAGES / "index.html").is_file(),
    }
    if missing := [name for name, one in found.items() if not one]:
        stop = pytest.fail if os.environ.get("SKLDP_BROWSER") == "required" else pytest.skip
        stop(f"NO PAGE WAS LOOKED AT: without {', '.join(missing)}")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--allow-file-access-from-files"):
        options.add_argument(argument)
    running = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield running
    running.quit()


def faults_of(browser, page, width):
    # A window cannot be narrower than 500 pixels; a device can.
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page.as_uri())
    return browser.execute_script(FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_and_have_their_images(browser, width):
    written = sorted(page for page in PAGES.rglob("*.html") if "generated" not in page.parts)
    generated = sorted((PAGES / "reference" / "generated").glob("*.html"))
    assert len(written) > 40
    faults = {
        str(page.relative_to(PAGES)): found
        for page in [*written, *generated[::8]]
        if not page.is_relative_to(PAGES / "_modules") and (found := faults_of(browser, page, width))
    }
    assert not faults, "\n".join(f"{page}: {found}" for page, found in faults.items())


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_are_accessible(browser, width):
    if "SKLDP_AXE" not in os.environ:
        pytest.skip("SKLDP_AXE does not name axe.min.js")
    script = Path(os.environ["SKLDP_AXE"]).read_text(encoding="utf-8")
    for name in ACCESSIBLE:
        faults_of(browser, PAGES / f"{name}.html", width)
        browser.execute_script(script)
        # scikit-learn's diagrams have buttons within buttons.
        run = "axe.run({exclude: ['.shown']}).then(arguments[0])"
        found = browser.execute_async_script(run)["violations"]
        assert not found, (name, [(fault["id"], fault["nodes"][0]["html"]) for fault in found])


@pytest.mark.slow
def test_the_reference_leads_to_guides_examples_and_sources(browser):
    page = (PAGES / "reference" / "generated" / "skldp.BitRandTransformer.html").read_text(encoding="utf-8")
    for text in ("User guide: <a", "Examples using BitRandTransformer", "[source]", "See also"):
        assert text in page


def test_the_faults_of_a_page_are_seen(browser, tmp_path):
    page = tmp_path / "page.html"
    head = "<!doctype html><meta name=viewport content='width=device-width'><article>"
    page.write_text(f"{head}<img src='none.png'><div style='width: 600px'>wide</div>")
    found = faults_of(browser, page, 420)
    assert ["wide in 420" in one or "is missing" in one or "has no text" in one for one in found] == [True] * 3
    page.write_text(f"{head}<div style='overflow-x: auto'><div style='width: 600px'>wide</div></div>")
    assert faults_of(browser, page, 420) == []


def test_hidden_code_and_output_are_not_words_of_a_page():
    pytest.importorskip("sphinx")
    from docutils import nodes

    count = runpy.run_path(str(DOCS / "page_texts.py"))["count_words"]
    page = nodes.section("", nodes.title("", "", nodes.Text("A title")))
    page += nodes.paragraph("", "", nodes.Text("Three short words."))
    page += nodes.literal_block("", "x = 1")
    assert count(page) == 8
    page += nodes.literal_block("", "2 of 3 printed", classes=["output"])
    page += nodes.comment("", "nothing of this")
    assert count(page) == 8
