"""A plan as one HTML file that opens offline."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import jinja2

import neuroshard as ns
from neuroshard import _planner
from neuroshard._printable import printable
from neuroshard._vocabulary import ELEMENT_BYTES
from neuroshard.cli._analysis import comparison
from neuroshard.cli._analysis.cuts import Cut, cuts_of
from neuroshard.cli._output import result_tables, run_tables, terminal

TEMPLATE = "report.html"
MAX_TABLES = 400
QUOTED = re.compile(r"^table '(.*?)' .*?; (.*)$", re.DOTALL)


class Section(NamedTuple):
    """A section of a bar. percent: of the longest bar."""

    kind: str
    percent: float
    text: str


class Bar(NamedTuple):
    """A bar of a chart. limit: the position of a line, in percent; None for none."""

    label: str
    sections: tuple[Section, ...]
    total: str
    limit: float | None = None


class Row(NamedTuple):
    """A table of the plan."""

    cut: Cut
    size: str
    why: str


def baselines(problem: ns.ShardingProblem, result: ns.PlanResult, algorithm: str,
              model: dict[str, Any], search: dict[str, Any]) -> list[comparison.Entry]:
    """This plan and those of all other algorithms, the cheapest first."""
    entries = [comparison.Entry("this plan", True, result)]
    for name in ns.algorithms():
        if name != algorithm:
            with terminal.searching(f"planning ({name})") as progress:
                entries.append(comparison.of_algorithm(problem, name, model, search, progress))
    return comparison.ranked(entries)


def write(path: str, problem: ns.ShardingProblem, result: ns.PlanResult,
          others: Sequence[comparison.Entry], run: run_tables.Comparison | None = None) -> None:
    _planner.write_file(os.fspath(path), render(problem, result, others, run))


def render(problem: ns.ShardingProblem, result: ns.PlanResult,
           others: Sequence[comparison.Entry], run: run_tables.Comparison | None = None) -> str:
    """run: what steps took, beside what is predicted."""
    loader = jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(__file__)))
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined,
                                     finalize=lambda one: printable(one) if isinstance(one, str)
                                     else one)
    rows = table_rows(problem, result)
    devices = result_tables.shown_devices(result)
    return environment.get_template(TEMPLATE).render(
        problem=problem, result=result, devices=devices,
        times=time_bars(result, devices), memory=memory_bars(problem, result, devices),
        step=step_bar(result), others=other_bars(result, others),
        failures=[one for one in others if one.result is None],
        rows=rows[:MAX_TABLES], row_count=len(rows),
        cut_count=sum(one.cut.kind != "whole" for one in rows),
        notes=[line for line in result.explanation if not QUOTED.match(line)],
        bound=result_tables.bound_of(result), peak=terminal.size(result.memory.peak_bytes),
        provenance=result.plan.provenance, run=run, most_caches=run_tables.MAX_CACHES)


def table_rows(problem: ns.ShardingProblem, result: ns.PlanResult) -> list[Row]:
    """The tables, those that are cut first, then by size."""
    reasons = dict(match.groups() for line in result.explanation
                   if (match := QUOTED.match(line)))
    rows = [Row(cut, terminal.size(cut.table.rows * cut.table.dim * ELEMENT_BYTES[cut.table.type]),
                reasons.get(cut.table.name, "")) for cut in cuts_of(problem, result.plan)]
    return sorted(rows, key=lambda one: one.cut.kind == "whole")


def bars(lines: Sequence[tuple[str, Sequence[tuple[str, float]], float | None]],
         shown: Any) -> list[Bar]:
    """Bars of (label, [(kind, value)], limit), all to one scale."""
    longest = max([sum(value for _, value in sections) for _, sections, _ in lines]
                  + [limit for _, _, limit in lines if limit is not None], default=0) or 1
    return [Bar(label,
                tuple(Section(kind, 100 * value / longest, f"{kind}: {shown(value)}")
                      for kind, value in sections if value > 0),
                shown(sum(value for _, value in sections)),
                None if limit is None else 100 * limit / longest)
            for label, sections, limit in lines]


def in_ms(value: float) -> str:
    return f"{value:.3f} ms"


def time_bars(result: ns.PlanResult, devices: Sequence[int]) -> list[Bar]:
    lines = []
    for device in devices:
        cost = result.breakdown.devices[device]
        lines.append((str(device), [("forward", cost.forward_ms), ("backward", cost.backward_ms),
                                    ("exchange", cost.exchange_ms),
                                    ("fetch", cost.fetch_ms)], None))
    return bars(lines, in_ms)


def memory_bars(problem: ns.ShardingProblem, result: ns.PlanResult,
                devices: Sequence[int]) -> list[Bar]:
    lines = []
    for device in devices:
        memory = result.memory.devices[device]
        lines.append((str(device), [("weights", memory.weights_bytes),
                                    ("optimizer state", memory.optimizer_state_bytes),
                                    ("step data", result_tables.step_bytes(memory)),
                                    ("reserves", memory.reserved_bytes)],
                      problem.topology.devices[device].memory_bytes))
    return bars(lines, terminal.size)


def step_sections(result: ns.PlanResult) -> list[tuple[str, float]]:
    """The terms of a step; under objectives other than "step" they need not add up to its cost."""
    parts = result.breakdown
    return [("forward", parts.max_forward_ms), ("backward", parts.max_backward_ms),
            ("exchange", parts.exchange_ms), ("fetch", parts.fetch_ms), ("dense", parts.dense_ms)]


def step_bar(result: ns.PlanResult) -> Bar:
    return bars([("step", step_sections(result), None)], in_ms)[0]


def other_bars(result: ns.PlanResult, others: Sequence[comparison.Entry]) -> list[Bar]:
    lines = [(comparison.title(one), [("this" if one.result is result else "other", one.result.cost_ms)], None)
             for one in others if one.result is not None]
    if result.lower_bound_ms > 0:
        lines.append(("lower bound", [("bound", result.lower_bound_ms)], None))
    return bars(lines, in_ms)
