"""A browser shows reports and notebook tables: nothing is cut, nothing hangs over, axe-core finds nothing, and keys
reach everything. Skipped without a browser; docs/testing.md says how to have one."""

import os
import shutil

import pytest

import neuroshard as ns
from neuroshard.cli._output import report
from support.planning import small_problem

MODEL = {"cost_model": "roofline"}
NEEDS = "reports in a browser need pip install playwright axe-playwright-python, and Chromium (docs/testing.md)"
sync_api = pytest.importorskip("playwright.sync_api", reason=NEEDS)
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=NEEDS)
# Texts that are wider than their element, or outside the page.
CUT = """() => [...document.querySelectorAll('main *, body > table, body > table *')].filter(one => {
  const box = one.getBoundingClientRect(), hidden = getComputedStyle(one).clipPath !== 'none'
    || one.closest('.hidden, thead') && getComputedStyle(one.closest('.hidden, thead')).clipPath !== 'none'
    || one.parentElement.closest('th') && getComputedStyle(one.parentElement.closest('th')).clipPath !== 'none';
  return !hidden && box.width > 0 && (box.right > window.innerWidth + 1 || box.left < -1
    || one.scrollWidth > one.clientWidth + 2 && getComputedStyle(one).display !== 'inline');
}).map(one => `<${one.tagName} class="${one.className}"> ${one.textContent.trim().slice(0, 60)}`)"""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as tools:
        chromium = os.environ.get("NEUROSHARD_CHROMIUM") or shutil.which("chromium") or tools.chromium.executable_path
        if not os.path.exists(chromium):
            pytest.skip(NEEDS)
        made = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A report with all sections and long names, and what notebooks show."""
    folder = tmp_path_factory.mktemp("pages")
    long_name = "collection/of_" + "very_" * 12 + "long.name@module"
    tables = [ns.Table(long_name, 1_000_000, 128, optimizer="adam"), *(ns.Table(f"t{one}", 5000 * one + 7, 64)
                                                                        for one in range(12))]
    problem = small_problem(tables=tables, topology="8xCPU@4GiB", features=[
        ns.Feature(f"f{number}", one.name, mean_pooling=20) for number, one in enumerate(tables)])
    before = ns.plan(problem, algorithm="random", **MODEL).plan
    result = ns.plan(problem, progress=False, warm_start=ns.WarmStart(before, 1e12), **MODEL)
    others = report.baselines(problem, result, "default", MODEL, {})
    (folder / "report.html").write_text(report.render(
        problem, result, others, report.reasons(problem, result, MODEL), None,
        report.previous_of(problem, long_name + ".json", before, MODEL)), encoding="utf-8")
    shown = small_problem()
    cells = [one._repr_html_() for one in (shown, ns.plan(shown, progress=False), ns.device_classes()["H200"])]
    (folder / "notebook.html").write_text(
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Cells</title></head><body><main>'
        f'<h1>Cells</h1>{"".join(cells)}</main></body></html>', encoding="utf-8")
    return folder


@pytest.fixture(params=[(width, scheme) for width in (420, 900, 1440) for scheme in ("light", "dark")],
                ids=lambda one: f"{one[0]}-{one[1]}")
def page(browser, request):
    width, scheme = request.param
    made = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    made.loud = []
    made.on("console", lambda message: made.loud.append(message.text))
    made.on("request", lambda one: made.loud.append(one.url) if not one.url.startswith("file:") else None)
    yield made
    made.close()


def violations(page):
    return [(one["id"], node["html"], node.get("failureSummary")) for one in axe.Axe().run(page).response["violations"]
            for node in one["nodes"]]


def test_reports(page, pages):
    page.goto((pages / "report.html").as_uri())
    page.locator("#glossary summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("dl.terms dt").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert page.evaluate(CUT) == []
    assert violations(page) == [] and page.loud == []


def test_notebooks(page, pages):
    page.goto((pages / "notebook.html").as_uri())
    assert violations(page) == []
