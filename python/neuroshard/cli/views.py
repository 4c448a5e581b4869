"""A plan's result as tables."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

import neuroshard as ns
from neuroshard.cli import show
from neuroshard.cli.shapes import Cut, cuts_of

# More devices than this are shown as the most and the least loaded ones.
MAX_DEVICES = 32
MAX_CUTS = 40


def print_result(out: Console, problem: ns.ShardingProblem, result: ns.PlanResult) -> None:
    print_summary(out, problem, result)
    print_devices(out, problem, result)
    print_cuts(out, cuts_of(problem, result.plan))
    if result.explanation:
        out.print("[bold]Why[/bold]")
        show.sentences(out, result.explanation)
    if result.remarks:
        out.print("[bold]Remarks[/bold]")
        show.sentences(out, result.remarks)


def print_summary(out: Console, problem: ns.ShardingProblem, result: ns.PlanResult) -> None:
    out.print(f"[bold]{result.cost_ms:.3f} ms[/bold] per step, {bound_of(result)}; "
              f"{len(problem.tables)} tables in {len(result.plan.shards)} shards on "
              f"{escape(str(problem.topology))}; fullest device "
              f"{show.size(result.memory.peak_bytes)}", soft_wrap=True)
    for line in str(result).splitlines()[1:]:
        # Snapshots and migration, which only the API words.
        if line.strip().startswith(("snapshots (", "the previous plan")):
            out.print(line, markup=False)


def bound_of(result: ns.PlanResult) -> str:
    if result.lower_bound_ms <= 0:
        return "no lower bound is known"
    above = show.percent(result.cost_ms / result.lower_bound_ms - 1)
    return f"no plan is below {result.lower_bound_ms:.3f} ms ({above} above it)"


def print_devices(out: Console, problem: ns.ShardingProblem, result: ns.PlanResult) -> None:
    made = show.table("Devices", "device", "class", "shards", "weights", "state", "step data",
                      "reserves", "peak", "of", "forward, ms", "backward, ms", "exchange, ms",
                      left=2)
    numbers = shown_devices(result)
    for device in numbers:
        memory, cost = result.memory.devices[device], result.breakdown.devices[device]
        room = problem.topology.devices[device]
        made.add_row(
            str(device), room.device_class, str(len(result.plan.shards_on(device))),
            show.size(memory.weights_bytes), show.size(memory.optimizer_state_bytes),
            show.size(step_bytes(memory)), show.size(reserved_bytes(memory)),
            show.size(memory.peak_bytes), f"{memory.peak_bytes / room.memory_bytes:.0%}",
            show.ms(cost.forward_ms), show.ms(cost.backward_ms), show.ms(exchange_ms(cost)))
    out.print(made)
    if len(numbers) < result.plan.device_count:
        out.print(f"  ... the {len(numbers)} of {result.plan.device_count} devices that compute "
                  "longest; --json has all")


def shown_devices(result: ns.PlanResult) -> list[int]:
    costs = result.breakdown.devices
    order = sorted(range(len(costs)), key=lambda one: -compute_ms(costs[one]))
    return sorted(order[:MAX_DEVICES])


def step_bytes(memory: ns.DeviceMemory) -> int:
    return memory.ids_bytes + max(memory.forward_bytes, memory.backward_bytes)


def reserved_bytes(memory: ns.DeviceMemory) -> int:
    return (memory.communicator_bytes + memory.dense_reserve_bytes
            + memory.fragmentation_reserve_bytes)


def compute_ms(cost: ns.DeviceCost) -> float:
    return cost.forward_ms + cost.backward_ms


def exchange_ms(cost: ns.DeviceCost) -> float:
    return cost.input_ms + cost.forward_communication_ms + cost.backward_communication_ms


def print_cuts(out: Console, cuts: Iterable[Cut]) -> None:
    cut = [one for one in cuts if one.kind != "whole"]
    if not cut:
        out.print("No table is cut.")
        return
    made = show.table("What is cut", "table", "rows x dim", "cut by", "shards", "pieces",
                      "devices", left=3)
    for one in cut[:MAX_CUTS]:
        made.add_row(escape(one.table.name), f"{one.table.rows:,} x {one.table.dim}", one.kind,
                     str(len(one.shards)), one.pieces, one.devices)
    out.print(made)
    if len(cut) > MAX_CUTS:
        out.print(f"  ... and {len(cut) - MAX_CUTS} more; --json has all")
