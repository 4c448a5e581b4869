"""Explains how a table is placed by what the step would cost with the table placed otherwise.

Each alternative is a plan that the planner's verifier checks and its cost model prices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import neuroshard as ns
from neuroshard.cli._analysis.cuts import Cut

# The most devices on which a table is tried, those with the least compute first.
MAX_TRIED = 32
# Relative differences of cost below this count as none.
SAME = 5e-4


class Reason(NamedTuple):
    """other_ms: the least cost with the table whole, or whole on another device if it is whole now;
    None if no device can hold it. device: the device of that plan."""

    cut: Cut
    other_ms: float | None
    device: int | None
    text: str


def reason_for(problem: ns.ShardingProblem, result: ns.PlanResult, cut: Cut,
               model: dict[str, Any]) -> Reason:
    name = cut.table.name
    if any(shard.table == name for shard in problem.constraints.fixed_shards):
        return Reason(cut, None, None, "its shards are written by hand in the workload")
    best: tuple[float, int] | None = None
    refused = ""
    for device in candidates(result, cut):
        other = moved(result.plan, cut, device)
        found = other.check(problem)
        if found:
            refused = refused or str(found[0])
            continue
        cost = ns.evaluate(problem, other, **model).cost_ms
        if best is None or cost < best[0]:
            best = (cost, device)
    form = "whole on another device" if cut.kind == "whole" else "whole"
    if best is None:
        return Reason(cut, None, None, f"no device can hold it {form}: {refused}"
                      if refused else "there is one device")
    change = best[0] / result.cost_ms - 1
    if abs(change) < SAME:
        text = f"{form}, a step would take as long"
    else:
        text = f"{form}, a step would take {best[0]:.3f} ms ({change:+.1%}), on device {best[1]}"
    return Reason(cut, best[0], best[1], text)


def candidates(result: ns.PlanResult, cut: Cut) -> list[int]:
    own = set(cut.shards[0].devices) if cut.kind == "whole" else set()
    costs = result.breakdown.devices
    order = sorted(set(range(len(costs))) - own,
                   key=lambda one: costs[one].forward_ms + costs[one].backward_ms)
    return order[:MAX_TRIED]


def moved(plan: ns.Plan, cut: Cut, device: int) -> ns.Plan:
    """The plan with this table whole on one device."""
    first = cut.shards[0]
    whole = ns.Shard(name=first.name, table=first.table, rows=(0, cut.table.rows),
                     cols=(0, cut.table.dim), devices=device, tier=first.tier)
    return plan.replace(shards=[*(one for one in plan.shards if one.table != first.table), whole])
