"""What smaller types of results and gradients on the wire would bring."""

from __future__ import annotations

from typing import Any

import neuroshard as ns

SMALLER = ("bf16", "f32/bf16", "bf16/f32")  # of both, of gradients, of results
LEAST_SAVING = 0.01  # of a step


def smaller_wire_ms(problem: ns.ShardingProblem, result: ns.PlanResult,
                    model: dict[str, Any]) -> dict[str, float]:
    """The predicted steps of the same plan with bf16 on the wire, by wire type: those that are less.
    Nothing for a plan that has a smaller type, or whose type was searched, or that has no room for the
    copies of rows in bf16. model: the arguments of evaluate."""
    if result.plan.complete(problem).batch.wire_type != "f32" or result.plan.chosen_wire_type:
        return {}
    found = {}
    for wire_type in SMALLER:
        smaller = problem.replace(batch=problem.batch.replace(wire_type=wire_type))
        try:
            found[wire_type] = ns.evaluate(smaller, result.plan, **model).cost_ms
        except ns.InvalidPlan:
            continue
    less = {wire_type: cost for wire_type, cost in found.items()
            if cost < result.cost_ms * (1 - LEAST_SAVING)}
    return less if SMALLER[0] in less else {}


def sentence(result: ns.PlanResult, smaller_ms: dict[str, float]) -> str:
    both, *parts = smaller_ms
    text = (f"results and gradients travel as f32; with wire_type \"{both}\" of the batch a step of this "
            f"plan would take {smaller_ms[both]:.3f} ms instead of {result.cost_ms:.3f}, each value "
            "rounded to 8 bits on the way")
    apart = [f"{smaller_ms[one]:.3f} ms with \"{one}\", {'gradients' if one == 'f32/bf16' else 'results'}"
             " alone" for one in parts]
    return "; ".join([text, *apart])
