"""A plan as one HTML file that opens offline."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jinja2

import neuroshard as ns
from neuroshard import _planner
from neuroshard._plots import COLORS
from neuroshard._printable import printable
from neuroshard._vocabulary import ELEMENT_BYTES
from neuroshard.cli._analysis import comparison
from neuroshard.cli._analysis.cuts import Cut, cuts_of
from neuroshard.cli._output import charts, glossary, result_tables, run_tables, terminal
from neuroshard.planning import other_placements

TEMPLATE = "report.html"
MAX_TABLES = 400
MAX_MOVES = 40


class Row(NamedTuple):
    """A table of the plan. why: what a step would take with it elsewhere."""

    cut: Cut
    size: str
    why: str


class Previous(NamedTuple):
    """A plan that the report compares with. result: None if it does not serve the problem."""

    name: str
    result: ns.PlanResult | None


class DeviceChange(NamedTuple):
    """Memory and time of a device, before and after, as texts."""

    device: str
    peaks: tuple[str, str]
    times: tuple[str, str]


class PartChange(NamedTuple):
    """A part of a step, in ms."""

    name: str
    before: float
    after: float


def baselines(problem: ns.ShardingProblem, result: ns.PlanResult, algorithm: str,
              model: dict[str, Any], search: dict[str, Any]) -> list[comparison.Entry]:
    """This plan and those of all other algorithms, the cheapest first."""
    entries = [comparison.Entry(charts.THIS, True, result)]
    for name in ns.algorithms():
        if name != algorithm:
            with terminal.searching(f"planning ({name})") as progress:
                entries.append(comparison.of_algorithm(problem, name, model, search, progress))
    return comparison.ranked(entries)


def reasons(problem: ns.ShardingProblem, result: ns.PlanResult, model: dict[str, Any]) -> dict[str, str]:
    """Of each table that the report shows, what a step would take with it elsewhere."""
    names = [cut.table.name for cut in shown_cuts(problem, result)[:MAX_TABLES]]
    return {name: other.text for name, other in
            zip(names, other_placements(problem, result.plan, names, **model), strict=True)}


def previous_of(problem: ns.ShardingProblem, name: str, plan: ns.Plan, model: dict[str, Any]) -> Previous:
    return Previous(name, comparison.of_plan(problem, name, plan, model).result)


def write(path: str, *args: Any, **kwargs: Any) -> None:
    _planner.write_file(os.fspath(path), render(*args, **kwargs))


def render(problem: ns.ShardingProblem, result: ns.PlanResult, others: Sequence[comparison.Entry],
           why: Mapping[str, str] | None = None, run: run_tables.Comparison | None = None,
           previous: Previous | None = None) -> str:
    """others: plans to compare with. why: see reasons(). run: what steps took, beside what is predicted.
    previous: the plan that the result's migration starts from."""
    loader = jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(__file__)))
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined,
                                     finalize=lambda one: printable(one) if isinstance(one, str)
                                     else one)
    rows = table_rows(problem, result, why or {})
    devices = result_tables.shown_devices(result)
    before = previous.result if previous else None
    return environment.get_template(TEMPLATE).render(
        problem=problem, result=result, devices=devices, colors=COLORS,
        times=charts.times(result, devices), memory=charts.memory(problem, result, devices),
        step=charts.step(result, before), others=charts.others(result, others) if any(one.result for one in others) else None,
        failures=[one for one in others if one.result is None],
        rows_of_tables=rows[:MAX_TABLES], row_count=len(rows),
        cut_count=sum(one.cut.kind != "whole" for one in rows),
        notes=[line for line in result.explanation if not line.startswith("table '")],
        assumptions=[*(one.text for one in result.assumptions), *result.remarks], terms=glossary.terms(),
        bound=result_tables.bound_of(result), peak=terminal.size(result.memory.peak_bytes),
        provenance=result.plan.provenance, run=run, most_caches=run_tables.MAX_CACHES,
        previous=previous, migration=result.migration, most_moves=MAX_MOVES, size=terminal.size,
        part_changes=part_changes(before, result) if before else [],
        device_changes=device_changes(before, result, devices) if before else [])


def shown_cuts(problem: ns.ShardingProblem, result: ns.PlanResult) -> list[Cut]:
    """Of the tables, those that are cut first, then by size."""
    return sorted(cuts_of(problem, result.plan), key=lambda one: one.kind == "whole")


def table_rows(problem: ns.ShardingProblem, result: ns.PlanResult, why: Mapping[str, str]) -> list[Row]:
    return [Row(cut, terminal.size(cut.table.rows * cut.table.dim * ELEMENT_BYTES[cut.table.type]),
                why.get(cut.table.name, "")) for cut in shown_cuts(problem, result)]


def part_changes(before: ns.PlanResult, after: ns.PlanResult) -> list[PartChange]:
    old = before.breakdown.parts
    changes = [PartChange(kind, old[kind], value) for kind, value in after.breakdown.parts.items()]
    return [*(one for one in changes if one.before or one.after),
            PartChange("step", before.cost_ms, after.cost_ms)]


def device_changes(before: ns.PlanResult, after: ns.PlanResult, devices: Sequence[int]) -> list[DeviceChange]:
    return [DeviceChange(str(device),
                         two(terminal.size(one.memory.devices[device].peak_bytes) for one in (before, after)),
                         two(terminal.ms(sum(one.breakdown.devices[device].parts.values()))
                             for one in (before, after)))
            for device in devices]


def two(texts: Any) -> tuple[str, str]:
    first, second = texts
    return first, second
