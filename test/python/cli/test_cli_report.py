"""neuroshard plan --html: one file of well-formed HTML whose bars are the plan's numbers."""

import re
from html.parser import HTMLParser

import pytest

import neuroshard as ns
from neuroshard.cli._analysis import comparison
from neuroshard.cli._output import report
from support.commands import make_runner
from support.planning import small_problem

VOID = {"meta", "br"}
MODEL = {"cost_model": "roofline"}


class Page(HTMLParser):
    """sections: by id, (tag, attributes) and texts in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.sections = [], [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def section(self):
        return next((one["id"] for tag, one in reversed(self.open) if tag == "section"), "")

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in VOID:
            self.open.append((tag, attributes))
        self.tags.append((tag, attributes))
        self.sections.setdefault(self.section(), []).append((tag, attributes))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if data.strip() and self.open[-1][0] != "style":
            self.texts.append(data.strip())
            self.sections.setdefault(self.section(), []).append(("text", data.strip()))

    def parts(self, section):
        """(class, percent) of the pieces of the section's bars."""
        return [(one["class"], float(re.fullmatch(r"width:([\d.]+)%", one["style"])[1]))
                for tag, one in self.sections[section] if tag == "i" and "style" in one]

    def words(self, section):
        return [one for tag, one in self.sections[section] if tag == "text"]


@pytest.fixture(scope="module")
def planned():
    problem = small_problem(tables=[ns.Table("big <b>&", 1_000_000, 128), ns.Table("b", 100, 8)],
                            features=[ns.Feature("f", "big <b>&", mean_pooling=50),
                                      ns.Feature("g", "b")])
    result = ns.plan(problem, **MODEL)
    search = {"seed": 0}
    others = report.baselines(problem, result, "default", MODEL, search)
    return problem, result, others


@pytest.fixture(scope="module")
def page(planned):
    return Page(report.render(*planned))


def test_nothing_comes_from_elsewhere(planned, page):
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "base"}
    assert not [one for _, one in page.tags if {"src", "href", "onclick"} & set(one)]
    text = report.render(*planned)
    assert "http" not in text and "url(" not in text and "@import" not in text


def test_bars_of_time_are_the_breakdown(planned, page):
    _, result, _ = planned
    rows = [(one.forward_ms, one.backward_ms, one.input_ms + one.forward_communication_ms
             + one.backward_communication_ms) for one in result.breakdown.devices]
    longest = max(map(sum, rows))
    expected = [(kind, round(100 * value / longest, 3)) for row in rows
                for kind, value in zip(("forward", "backward", "exchange"), row) if value > 0]
    assert page.parts("time") == expected
    assert [f"{sum(row):.3f} ms" for row in rows] == [
        one for one in page.words("time") if one.endswith(" ms")]


def test_bars_of_memory_end_at_the_peak_and_have_the_limit(planned, page):
    problem, result, _ = planned
    rooms = [one.memory_bytes for one in problem.topology.devices]
    shares = {}
    pieces = iter(page.parts("memory"))
    for device, memory in enumerate(result.memory.devices):
        count = sum(value > 0 for value in (
            memory.weights_bytes, memory.optimizer_state_bytes,
            memory.ids_bytes + max(memory.forward_bytes, memory.backward_bytes)))
        shares[device] = sum(next(pieces)[1] for _ in range(count + 1))
        assert shares[device] == pytest.approx(100 * memory.peak_bytes / max(rooms), abs=0.01)
    limits = [one["style"] for tag, one in page.sections["memory"] if tag == "b"]
    assert limits == ["left:100.000%"] * len(rooms)


def test_the_step_adds_up(planned, page):
    _, result, _ = planned
    assert sum(share for _, share in page.parts("step")) == pytest.approx(100, abs=0.01)
    assert f"{result.cost_ms:.3f} ms" in page.words("step")


def test_every_algorithm_and_the_bound_are_there(planned, page):
    _, result, others = planned
    words = page.words("baselines")
    labels = [f"{one.result.cost_ms:.3f} ms" for one in others if one.result]
    assert [comparison.title(one) for one in others if one.result] + ["lower bound"] == [
        one for one in words if not one.endswith(" ms") and "no plan" not in one][1:]
    assert [one for one in words if one.endswith(" ms")][:len(labels)] == labels
    assert {one.name for one in others} == {"this plan", *ns.algorithms()[1:]}
    assert [kind for kind, _ in page.parts("baselines")].count("this") == 1


def test_algorithms_without_a_plan_say_why(planned):
    problem, result, _ = planned
    error = ns.PlanningError("device memory", "too <large>")
    page = Page(report.render(problem, result, [comparison.Entry("this plan", True, result),
                                                comparison.Entry("dim", True, error=error)]))
    assert "dim has no plan: device memory: too <large>" in page.words("baselines")


def test_the_table_says_what_was_split_and_why(planned, page):
    problem, result, _ = planned
    words = page.words("tables")
    assert len(result.plan.shards_of("big <b>&")) > 1 and "big <b>&" in words
    reason = next(one for one in result.explanation if one.startswith("table 'big"))
    assert any("a step would take" in one and reason.endswith(one) for one in words)
    for line in result.remarks:
        assert line in page.words("notes")


def test_a_plan_without_bound_and_baselines(planned):
    problem, result, _ = planned
    page = Page(report.render(problem, result.replace(lower_bound_ms=0.0), []))
    assert "unknown" in page.texts and "lower bound" not in page.words("baselines")


def test_the_command_writes_it(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = make_runner(capsys, tmp_path)("plan", "small.json", "--html", "report.html")
    assert done.code == 0 and "report.html" in done.err
    assert "4 tables on 2 CPU of 4.0 GiB" in Page((tmp_path / "report.html").read_text()).texts
