"""Charts of a report: tables whose rows have a bar, and each value of the bar as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import neuroshard as ns
from neuroshard.cli._analysis import comparison
from neuroshard.cli._output import terminal

THIS, PREVIOUS, BOUND = "this plan", "previous plan", "lower bound"


class Section(NamedTuple):
    """A section of a bar. percent: of the longest bar."""

    kind: str
    percent: float


class Row(NamedTuple):
    """limit: the position of a line, in percent; None for none. cells: texts, one for each column."""

    label: str
    sections: tuple[Section, ...]
    cells: tuple[str, ...]
    limit: float | None = None


class Chart(NamedTuple):
    """kinds: of the first columns, which are sections of the bars; more: names of further columns."""

    name: str
    label: str
    unit: str
    kinds: tuple[str, ...]
    more: tuple[str, ...]
    rows: tuple[Row, ...]


class Line(NamedTuple):
    """A row before it has a scale. more: texts of the further columns."""

    label: str
    parts: Mapping[str, float]
    more: tuple[str, ...]
    limit: float | None = None


def chart(name: str, label: str, unit: str, lines: Sequence[Line], shown: Callable[[float], str],
          more: Sequence[str], columns: bool = True) -> Chart:
    """All bars to one scale. columns: whether each kind of part has one; kinds that no row has are left out."""
    kinds = [kind for kind in (lines[0].parts if lines else ()) if any(one.parts.get(kind) for one in lines)]
    longest = max([sum(one.parts.values()) for one in lines]
                  + [one.limit for one in lines if one.limit is not None], default=0) or 1
    rows = [Row(one.label,
                tuple(Section(kind, 100 * value / longest) for kind, value in one.parts.items() if value > 0),
                (*(shown(one.parts[kind]) for kind in kinds if columns), *one.more),
                None if one.limit is None else 100 * one.limit / longest) for one in lines]
    return Chart(name, label, unit, tuple(kinds if columns else ()), tuple(more), tuple(rows))


def step(result: ns.PlanResult, previous: ns.PlanResult | None = None) -> Chart:
    """The parts of a step; under objectives other than "step" they need not add up to its cost."""
    lines = [Line(THIS, result.breakdown.parts, (terminal.ms(result.cost_ms),))]
    if previous is not None:
        lines.append(Line(PREVIOUS, previous.breakdown.parts, (terminal.ms(previous.cost_ms),)))
    return chart("The parts of a step", "plan", "ms", lines, terminal.ms, ["step"])


def times(result: ns.PlanResult, devices: Sequence[int]) -> Chart:
    parts = {device: result.breakdown.devices[device].parts for device in devices}
    lines = [Line(str(device), one, (terminal.ms(sum(one.values())),)) for device, one in parts.items()]
    return chart("Time by device", "device", "ms", lines, terminal.ms, ["sum"])


def memory(problem: ns.ShardingProblem, result: ns.PlanResult, devices: Sequence[int]) -> Chart:
    lines = []
    for device in devices:
        used = result.memory.devices[device]
        usable = devices_of(problem)[device].memory_bytes
        lines.append(Line(str(device), used.parts, (terminal.size(used.peak_bytes), terminal.size(usable),
                                                    f"{used.peak_bytes / usable:.0%}"), usable))
    return chart("Memory by device", "device", "", lines, terminal.size, ["peak", "usable", "used"])


def devices_of(problem: ns.ShardingProblem) -> tuple[ns.Device, ...]:
    return problem.topology.devices if problem.topology else ()


def others(result: ns.PlanResult, entries: Sequence[comparison.Entry]) -> Chart:
    lines = [cost_line(comparison.title(one), "this" if one.result is result else "other", one.result.cost_ms, result)
             for one in entries if one.result is not None]
    if result.lower_bound_ms is not None:
        lines.append(cost_line(BOUND, "bound", result.lower_bound_ms, result))
    return chart("Against other ways to plan", "plan", "", lines, terminal.ms, ["step, ms", "to this plan"],
                 columns=False)


def cost_line(name: str, kind: str, cost_ms: float, result: ns.PlanResult) -> Line:
    return Line(name, {kind: cost_ms}, (terminal.ms(cost_ms), terminal.percent(cost_ms / result.cost_ms - 1) if result.cost_ms else ""))
