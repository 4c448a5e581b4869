"""Prints the result of planning as tables."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

import neuroshard as ns
from neuroshard.cli._analysis.cuts import Cut, cuts_of
from neuroshard.cli._output import terminal

# More devices than this are shown as the most and the least loaded ones.
MAX_DEVICES = 32
MAX_CUTS = 40
MAX_CACHES = 40
# So many tables with a copy on every device share a sentence.
MANY_COPIED = 5
COPIED = re.compile(r"table '(.*)' is on every device; whole, a step would take [\d.]+ ms \(([+-][\d.]+) %\)")
# Columns of text that the table of devices takes.
WIDE = 124


def print_result(out: Console, problem: ns.ShardingProblem, result: ns.PlanResult) -> None:
    print_summary(out, problem, result)
    print_devices(out, problem, result)
    print_buffers(out, result)
    print_cuts(out, cuts_of(problem, result.plan))
    print_caches(out, result)
    if result.explanation:
        out.print("[bold]Why[/bold]")
        terminal.sentences(out, grouped(result.explanation))
    if result.remarks:
        out.print("[bold]Remarks[/bold]")
        terminal.sentences(out, result.remarks)
    print_assumptions(out, result)


def grouped(sentences: Iterable[str]) -> list[str]:
    """The sentences of the search, those on copied tables as one where there are many: they say the same of each."""
    found = [(line, COPIED.match(line)) for line in sentences]
    copied = [match for _, match in found if match]
    if len(copied) < MANY_COPIED:
        return [line for line, _ in found]
    names = ", ".join(f"'{match[1]}'" for match in copied[:MANY_COPIED])
    shares = [float(match[2]) for match in copied]
    text = (f"{len(copied)} tables ({names}, ...) are on every device; with one of them whole, a step would take "
            f"{min(shares):+.1f} to {max(shares):+.1f} % of its time more; 'neuroshard explain' has each")
    first = next(index for index, (_, match) in enumerate(found) if match)
    return [text if index == first else line for index, (line, match) in enumerate(found)
            if not match or index == first]


def print_assumptions(out: Console, result: ns.PlanResult) -> None:
    if result.assumptions:
        out.print("[bold]Assumptions[/bold]")
        terminal.sentences(out, [one.text for one in result.assumptions])


def print_summary(out: Console, problem: ns.ShardingProblem, result: ns.PlanResult) -> None:
    out.print(f"[bold]{result.cost_ms:.3f} ms[/bold] per {step_of(problem)}{interval_of(result)}, "
              f"{bound_of(result)}; "
              f"{len(problem.tables)} tables in {len(result.plan.shards)} shards on "
              f"{escape(str(problem.topology))}; fullest device "
              f"{terminal.size(result.memory.peak_bytes)}", soft_wrap=True)
    for line in str(result).splitlines()[1:]:
        # The lines on snapshots and migration, which the API writes.
        if line.strip().startswith(("snapshots (", "the previous plan")):
            out.print(line, markup=False)
    for what, interval in (("compute", result.breakdown.compute_interval),
                           ("an exchange", result.breakdown.communication_interval)):
        if interval is not None:
            out.print(f"  Nine of ten times of {what} were {interval.low:.2f} to "
                      f"{interval.high:.2f} of the predicted.")


def step_of(problem: ns.ShardingProblem) -> str:
    return "step" if problem.mode == "training" else "step of lookups alone (mode inference)"


def interval_of(result: ns.PlanResult) -> str:
    parts = result.breakdown
    if parts.high_ms <= 0:
        return ""
    return f" (nine of ten between {parts.low_ms:.3f} and {parts.high_ms:.3f})"


def bound_of(result: ns.PlanResult) -> str:
    if result.lower_bound_ms is None:
        return "no lower bound is known"
    above = terminal.percent(result.cost_ms / result.lower_bound_ms - 1)
    return f"no plan is below {result.lower_bound_ms:.3f} ms ({above} above it)"


def print_devices(out: Console, problem: ns.ShardingProblem, result: ns.PlanResult) -> None:
    """One table, or two where the terminal is narrow."""
    numbers = shown_devices(result)
    held = {"shards": [str(len(result.plan.shards_on(device))) for device in numbers],
            **memory_columns(problem, result, numbers)}
    times = time_columns(problem, result, numbers)
    classes = {"class": [problem.topology.devices[device].device_class for device in numbers]}
    if out.width >= WIDE:
        print_columns(out, "Devices", numbers, {**classes, **held, **times}, left=2)
    else:
        print_columns(out, "Memory of the devices", numbers, held, left=1)
        print_columns(out, "Time of the devices", numbers, {**classes, **times}, left=2)
    if len(numbers) < result.plan.device_count:
        out.print(f"  ... the {len(numbers)} of {result.plan.device_count} devices that compute "
                  "longest; --json has all")


def print_buffers(out: Console, result: ns.PlanResult) -> None:
    if not result.buffers:
        return
    made = terminal.table("Buffers of a step", "kind", "largest", "on device", "mean")
    for kind, devices in result.buffers.items():
        largest = max(devices)
        if largest:
            made.add_row(kind.replace("_", " "), terminal.size(largest),
                         str(devices.index(largest)), terminal.size(sum(devices) / len(devices)))
    out.print(made)


def print_caches(out: Console, result: ns.PlanResult) -> None:
    """The shards in lower tiers, those first that fetch most rows."""
    if not result.breakdown.caches:
        return
    shards = {shard.name: shard for shard in result.plan.shards}
    caches = sorted(result.breakdown.caches, key=lambda one: one.hits - one.rows)
    made = terminal.table("Shards in lower tiers", "shard", "tier", "rows cached", "of", "rows of a batch",
                          "hits", left=2)
    for one in caches[:MAX_CACHES]:
        shard = shards[one.shard]
        made.add_row(escape(one.shard), shard.tier, f"{shard.cache_rows:,}", f"{shard.row_count:,}",
                     f"{one.rows:,.0f}", f"{one.hits / one.rows if one.rows else 1:.1%}")
    out.print(made)
    if len(caches) > MAX_CACHES:
        out.print(f"  ... the {MAX_CACHES} of {len(caches)} that fetch most rows; --json has all")


def print_columns(out: Console, title: str, devices: list[int], columns: dict[str, list[str]],
                  left: int) -> None:
    made = terminal.table(title, "device", *columns, left=left)
    for row in zip(map(str, devices), *columns.values()):
        made.add_row(*row)
    out.print(made)


def memory_columns(problem: ns.ShardingProblem, result: ns.PlanResult,
                   devices: list[int]) -> dict[str, list[str]]:
    memory = [result.memory.devices[device] for device in devices]
    rooms = [problem.topology.devices[device].memory_bytes for device in devices]
    return {"weights": [terminal.size(one.weights_bytes) for one in memory],
            "state": [terminal.size(one.optimizer_state_bytes) for one in memory],
            "step data": [terminal.size(one.step_bytes) for one in memory],
            "reserves": [terminal.size(one.reserved_bytes) for one in memory],
            "peak": [terminal.size(one.peak_bytes) for one in memory],
            "of": [f"{one.peak_bytes / room:.0%}" for one, room in zip(memory, rooms)]}


def time_columns(problem: ns.ShardingProblem, result: ns.PlanResult, devices: list[int]) -> dict[str, list[str]]:
    costs = [result.breakdown.devices[device] for device in devices]
    columns = {"forward, ms": [terminal.ms(one.forward_ms) for one in costs],
               "backward, ms": [terminal.ms(one.backward_ms) for one in costs],
               "exchange, ms": [terminal.ms(one.exchange_ms) for one in costs]}
    if problem.mode == "inference":
        del columns["backward, ms"]
    if any(one.fetch_ms > 0 for one in costs):
        columns["fetch, ms"] = [terminal.ms(one.fetch_ms) for one in costs]
    return columns


def shown_devices(result: ns.PlanResult) -> list[int]:
    costs = result.breakdown.devices
    order = sorted(range(len(costs)), key=lambda one: -compute_ms(costs[one]))
    return sorted(order[:MAX_DEVICES])


def compute_ms(cost: ns.DeviceCost) -> float:
    return cost.forward_ms + cost.backward_ms


def print_cuts(out: Console, cuts: Iterable[Cut]) -> None:
    cut = [one for one in cuts if one.kind != "whole"]
    if not cut:
        out.print("No table is cut.")
        return
    made = terminal.table("What is cut", "table", "rows x dim", "cut by", "pieces", "devices",
                          "shards", left=5, long=("pieces",))
    for one in cut[:MAX_CUTS]:
        made.add_row(escape(one.table.name), f"{one.table.rows:,} x {one.table.dim}", one.kind,
                     one.pieces, one.devices, str(len(one.shards)))
    out.print(made)
    if len(cut) > MAX_CUTS:
        out.print(f"  ... and {len(cut) - MAX_CUTS} more; --json has all")
