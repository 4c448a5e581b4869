"""What notebooks and consoles show of problems, plans, results and what-if: short, and with every value."""

import time
import xml.etree.ElementTree as ET

import pytest

import neuroshard as ns
from neuroshard import _html
from support import accessible_html
from support.planning import small_problem


def cells(shown):
    """The caption, and the texts of all rows, of an HTML table, which must be well-formed."""
    html = ET.fromstring(f"<html>{shown._repr_html_()}</html>")
    return html.findtext(".//caption"), [[one.text or "" for one in row] for row in html.iter("tr")]


def test_reprs_are_one_short_line():
    problem = small_problem()
    result = ns.plan(problem, progress=False)
    shown = [problem, result.plan, result, ns.what_if(problem, topologies=["2xCPU", "nothing"])]
    assert all(len(repr(one)) < 200 and "\n" not in repr(one) for one in shown)
    assert repr(problem).startswith("ShardingProblem(4 tables, 4 features, batch ")
    assert f"{result.cost_ms:.3f} ms" in repr(result) and "nothing: not known" in repr(shown[3])


def test_a_problem_has_a_row_for_each_table():
    problem = small_problem()
    caption, rows = cells(problem)
    assert caption in repr(problem) and len(rows) == 1 + len(problem.tables)
    for row, table in zip(rows[1:], problem.tables):
        assert row[:5] == [table.name, f"{table.rows:,}", str(table.dim), table.type, table.optimizer.kind]
        assert row[5] == ", ".join(one.name for one in problem.features if one.table == table.name)


def test_plans_and_results_have_a_row_for_each_device():
    problem = small_problem()
    result = ns.plan(problem, progress=False)
    for shown in (result.plan, result):
        caption, rows = cells(shown)
        assert caption in repr(shown)
        assert [row[:2] for row in rows[1:]] == [
            [str(device), str(len(result.plan.shards_on(device)))] for device in range(result.plan.device_count)]
    html = result._repr_html_()
    assert html.count("<li>") == len(result.explanation) + len(result.remarks) + len(result.assumptions)
    many = result.replace(explanation=[f"sentence {one}" for one in range(90)], remarks=[], assumptions=[])._repr_html_()
    assert many.count("<li>") == 90 and "<summary>78 more</summary>" in many


def test_what_if_has_a_row_for_each_topology():
    cases = ns.what_if(small_problem(), topologies=["2xCPU", "1xCPU@1MiB", "nothing"])
    _, rows = cells(cases)
    assert [row[0] for row in rows[1:]] == ["2xCPU", "1xCPU@1MiB", "nothing"]
    assert rows[1][2] == f"{cases[0].cost_ms:.3f}" and [row[2] for row in rows[2:]] == ["no plan", "not known"]


def test_names_are_shown_as_text():
    problem = ns.ShardingProblem(tables=[ns.Table("<b>\x1b&", 10, 4)], features=[ns.Feature("f", "<b>\x1b&")],
                                 batch=8, topology="1xCPU")
    _, rows = cells(problem)
    assert rows[1][0] == "<b>\\x1b&"
    many = problem.replace(tables=[ns.Table(f"t{one}", 10, 4) for one in range(90)],
                           features=[ns.Feature(f"f{one}", f"t{one}") for one in range(90)])
    assert cells(many)[1][-1] == ["... 50 more"]


def test_device_classes_show_their_numbers():
    text = repr(ns.device_classes()["H200"])
    assert text.startswith("DeviceClass('H200', 139.0 GiB at ") and "8 a node at 372 GB/s" in text
    caption, rows = cells(ns.device_classes()["H200"])
    assert caption.startswith("H200, ") and rows[0] == ["figure", "value", "what", "source"]
    assert ["node_bandwidth_gb_per_s", "372"] in [row[:2] for row in rows]


def test_everybody_can_read_the_tables():
    problem = small_problem()
    result = ns.plan(problem, progress=False)
    for shown in (problem, result, result.plan, ns.what_if(problem, topologies=["2xCPU", "nothing"]),
                  *ns.device_classes().values()):
        assert accessible_html.faults(accessible_html.read(shown._repr_html_())) == [], shown


def test_notebooks_have_a_bar(capsys):
    pytest.importorskip("tqdm", reason="the bar of notebooks is tqdm's")
    with _html.progress_bar() as show:
        show(0.1, 0.25, 1e31, "starting")
        time.sleep(1.1)  # It shows itself after a second.
        show(1.2, 0.5, 1.25, "local search")
    assert "planning: local search:  50%" in (shown := capsys.readouterr().err) and "best 1.250 ms" in shown
    assert not _html.in_notebook()
