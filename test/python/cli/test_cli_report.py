"""neuroshard plan --html and compare --html: one file of well-formed HTML whose bars and cells are the plan's
numbers, that everybody can read."""

import re

import pytest

import neuroshard as ns
from neuroshard import _plots
from neuroshard.cli._analysis import comparison
from neuroshard.cli._output import glossary, report, terminal
from support import accessible_html
from support.commands import make_runner
from support.planning import ROOT, small_problem

MODEL = {"cost_model": "roofline"}


def planned_for(**changes):
    return small_problem(tables=[ns.Table("big <b>&", 1_000_000, 128), ns.Table("b", 100, 8)],
                         features=[ns.Feature("f", "big <b>&", mean_pooling=50), ns.Feature("g", "b")], **changes)


@pytest.fixture(scope="module")
def planned():
    problem = planned_for()
    previous = ns.plan(problem, algorithm="size", **MODEL).plan
    result = ns.plan(problem, warm_start=ns.WarmStart(previous, 1e12), **MODEL)
    others = report.baselines(problem, result, "default", MODEL, {"seed": 0})
    return (problem, result, others, report.reasons(problem, result, MODEL), None,
            report.previous_of(problem, "old <i>.json", previous, MODEL))


@pytest.fixture(scope="module")
def page(planned):
    return accessible_html.read(report.render(*planned))


def table_of(page, section):
    return page.with_id(section).first("table")


def columns_of(page, section):
    """The cells of each column of a section's first table, by its name."""
    head, *rows = table_of(page, section).rows()
    return {name: [row[at] for row in rows] for at, name in enumerate(head)}


def bars_of(page, section):
    """Of each bar its (class, percent)."""
    return [[(one.attributes["class"], float(re.fullmatch(r"width:([\d.]+)%", one.attributes["style"])[1]))
             for one in row.all("i")] for row in table_of(page, section).first("tbody").all("tr")]


def test_nothing_comes_from_elsewhere(planned, page):
    assert not list(page.all("script", "link", "img", "iframe", "base"))
    assert not [one for one in page.all() if {"src", "onclick"} & set(one.attributes)]
    text = report.render(*planned)
    assert "http" not in text and "url(" not in text and "@import" not in text


def test_everybody_can_read_it(page):
    assert accessible_html.faults(page) == []
    html = page.first("html")
    assert html.attributes["lang"] == "en" and page.first("title").text()
    assert len(list(page.all("h1"))) == len(list(page.all("main"))) == 1
    viewport = next(one for one in page.all("meta") if one.attributes.get("name") == "viewport")
    assert "width=device-width" in viewport.attributes["content"] and "maximum-scale" not in viewport.attributes["content"]


def test_colors_can_be_told_apart(page):
    for name, colors in accessible_html.schemes(page.first("style").text()).items():
        for ground in ("card", "page"):
            for text in ("text", "soft", "link"):
                assert accessible_html.contrast(colors[text], colors[ground]) >= 4.5, (name, text, ground)
    dark = accessible_html.schemes(page.first("style").text())["dark"]
    assert accessible_html.contrast(dark["card"], "#ffffff") > 10
    for color in _plots.COLORS.values():
        assert min(accessible_html.contrast(color, one) for one in ("#ffffff", dark["card"])) >= 2.2, color


def test_rows_of_tables_say_their_columns_without_room_for_headers(page):
    for table in page.all("table"):
        if table.attributes["class"] == "numbers":
            continue
        head = [one.text() for one in table.first("tr").all("th")]
        for row in table.first("tbody").all("tr"):
            for name, cell in zip(head, row.all("th", "td")):
                if cell.tag == "td" and cell.attributes.get("class") != "picture":
                    assert name in (cell.attributes["data-label"], f"{cell.attributes['data-label']}, ms")


def test_bars_and_cells_of_time_are_the_breakdown(planned, page):
    _, result, *_ = planned
    rows = [{"forward": one.forward_ms, "backward": one.backward_ms, "exchange": one.input_ms
             + one.forward_communication_ms + one.backward_communication_ms} for one in result.breakdown.devices]
    longest = max(sum(row.values()) for row in rows)
    assert bars_of(page, "time") == [[(kind, round(100 * value / longest, 3)) for kind, value in row.items() if value]
                                     for row in rows]
    columns = columns_of(page, "time")
    for kind in rows[0]:
        assert columns[f"{kind}, ms"] == [f"{row[kind]:.3f}" for row in rows]
    assert columns["sum, ms"] == [f"{sum(row.values()):.3f}" for row in rows]
    assert "A sum may be above the step" in page.with_id("time").text()


def test_bars_and_cells_of_memory_end_at_the_peak_and_have_the_limit(planned, page):
    problem, result, *_ = planned
    rooms = [one.memory_bytes for one in problem.topology.devices]
    columns = columns_of(page, "memory")
    for device, (memory, bar) in enumerate(zip(result.memory.devices, bars_of(page, "memory"), strict=True)):
        assert sum(share for _, share in bar) == pytest.approx(100 * memory.peak_bytes / max(rooms), abs=0.01)
        assert columns["peak"][device] == terminal.size(memory.peak_bytes)
        assert columns["weights"][device] == terminal.size(memory.weights_bytes)
        assert columns["step data"][device] == terminal.size(
            memory.ids_bytes + max(memory.forward_bytes, memory.backward_bytes))
        assert columns["usable"][device] == terminal.size(rooms[device])
    limits = [one.attributes["style"] for one in table_of(page, "memory").all("b")]
    assert limits == ["left:100.000%"] * len(rooms)


def test_the_step_adds_up(planned, page):
    _, result, *_, previous = planned
    columns = columns_of(page, "step")
    assert columns["plan"] == ["this plan", "previous plan"]
    assert columns["step, ms"] == [f"{result.cost_ms:.3f}", f"{previous.result.cost_ms:.3f}"]
    parts = [values for name, values in columns.items() if name.endswith(", ms") and name != "step, ms"]
    for number, cost in enumerate((result.cost_ms, previous.result.cost_ms)):
        assert sum(float(values[number]) for values in parts) == pytest.approx(cost, abs=0.003)
    longest = max(result.cost_ms, previous.result.cost_ms)
    assert sum(share for _, share in bars_of(page, "step")[0]) == pytest.approx(100 * result.cost_ms / longest, abs=0.01)


def test_every_algorithm_and_the_bound_are_there(planned, page):
    _, result, others, *_ = planned
    columns = columns_of(page, "baselines")
    ranked = [one for one in others if one.result]
    assert columns["plan"] == [*(comparison.title(one) for one in ranked), "lower bound"]
    assert columns["step, ms"][:-1] == [f"{one.result.cost_ms:.3f}" for one in ranked]
    assert {one.name for one in others} == {"this plan", *ns.algorithms()[1:]}
    assert [bar[0][0] for bar in bars_of(page, "baselines")].count("this") == 1


def test_algorithms_without_a_plan_say_why(planned):
    problem, result, *_ = planned
    error = ns.PlanningError("device memory", "too <large>")
    page = accessible_html.read(report.render(problem, result, [
        comparison.Entry("this plan", True, result), comparison.Entry("dim", True, error=error)]))
    assert "dim has no plan: device memory: too <large>" in page.with_id("baselines").text()


def test_every_table_says_why_it_is_where_it_is(planned, page):
    problem, result, _, why, *_ = planned
    columns = columns_of(page, "tables")
    assert sorted(columns["table"]) == sorted(one.name for one in problem.tables)
    assert columns["why"] == [why[name] for name in columns["table"]] and all(columns["why"])
    assert len(result.plan.shards_of("big <b>&")) > 1
    reason = next(one for one in result.explanation if one.startswith("table 'big"))
    assert reason.endswith(columns["why"][columns["table"].index("big <b>&")])


def test_what_changes_is_there(planned, page):
    _, result, *_, previous = planned
    section = page.with_id("change")
    assert "What changes from old <i>.json" in section.text()
    parts, devices, moves = [table.rows()[1:] for table in section.all("table")]
    assert parts[-1] == ["step", f"{previous.result.cost_ms:.3f}", f"{result.cost_ms:.3f}",
                         f"{result.cost_ms - previous.result.cost_ms:+.3f}"]
    for name, before, after, difference in parts:
        assert float(after) - float(before) == pytest.approx(float(difference), abs=0.0015), name
    assert [row[1:3] for row in devices] == [
        [terminal.size(one.memory.devices[device].peak_bytes) for one in (previous.result, result)] for device in (0, 1)]
    assert moves == [[one.table, terminal.size(one.bytes), one.what] for one in result.migration.moves] != []


def test_the_box_says_what_is_assumed(planned, page):
    _, result, *_ = planned
    lines = [one.text() for one in page.with_id("assumptions").all("li")]
    assert lines == [*(one.text for one in result.assumptions), *result.remarks] and result.assumptions


def test_words_are_those_of_the_page(page):
    terms = [(one.text(), other.text()) for one, other in zip(
        page.with_id("glossary").all("dt"), page.with_id("glossary").all("dd"), strict=True)]
    assert terms == [tuple(one) for one in glossary.terms()]
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    names = [name for name, _ in terms]
    assert len(names) == sum(line.startswith("| ") for line in text.splitlines()) - 2 and names == sorted(names)
    for _, meaning in terms:
        assert meaning.endswith(".") and not set("`[]*_") & set(meaning)
    assert {*_plots.COLORS, "peak", "usable memory", "lower bound", "replicated", "whole", "rows", "columns"} <= set(names)


def test_a_plan_without_bound_and_baselines(planned):
    problem, result, *_ = planned
    page = accessible_html.read(report.render(problem, result.replace(lower_bound_ms=None, migration=None), []))
    assert "unknown" in page.text() and page.with_id("baselines") is None and page.with_id("change") is None
    assert accessible_html.faults(page) == []


def test_a_previous_plan_that_does_not_serve_says_why(planned):
    problem, result, *_ = planned
    wide = planned_for(topology="4xCPU@4GiB")
    previous = ns.plan(wide, algorithm="dim", **MODEL).plan
    after = ns.inspect(problem, result.plan, previous=previous, **MODEL)
    page = accessible_html.read(report.render(problem, after, [], previous=report.previous_of(
        problem, "old.json", previous, MODEL)))
    assert f"The previous plan does not serve: {after.migration.why_not_previous}" in page.with_id("change").text()
    assert accessible_html.faults(page) == []


def test_the_commands_write_it(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make_runner(capsys, tmp_path)
    done = run("plan", "small.json", "--html", "report.html", "-o", "new.json")
    assert done.code == 0 and "report.html" in done.err
    page = accessible_html.read((tmp_path / "report.html").read_text())
    assert page.first("h1").text() == "4 tables on 2 CPU of 4.0 GiB"
    assert run("plan", "small.json", "-a", "size", "-o", "old.json").code == 0
    assert run("compare", "small.json", "old.json", "new.json", "-a", "dim", "--html", "change.html").code == 0
    page = accessible_html.read((tmp_path / "change.html").read_text())
    assert "What changes from old.json" in page.text()
    assert set(columns_of(page, "baselines")["plan"]) - {"lower bound"} == {"old.json", "new.json", "dim"}
    assert run("plan", "small.json", "--given", "new.json", "--previous", "old.json", "--html", "same.html").code == 0
    assert (accessible_html.read((tmp_path / "same.html").read_text()).with_id("change").text()
            == page.with_id("change").text())
    for plans in ((), ("old.json",), ("old.json", "old.json"), ("old.json", "new.json", "report.html")):
        refused = run("compare", "small.json", *plans, "--html", "x.html")
        assert refused.code == 2 and "--html is of two plans, one before and one after" in refused.err
    twice = run("compare", "small.json", "old.json", "./old.json", "--html", "x.html")
    assert twice.code == 2 and "got the file old.json twice" in twice.err
    three = run("compare", "small.json", "old.json", "old.json", "new.json", "--html", "x.html")
    assert three.code == 2 and "one after, got: 3" in three.err
    assert run("compare", "small.json", "old.json", "new.json", "--html", "old.json").code == 1
