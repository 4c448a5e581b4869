"""What a smaller type of results and gradients on the wire would bring."""

from __future__ import annotations

from typing import Any

import neuroshard as ns

SMALLER = "bf16"
LEAST_SAVING = 0.01  # of a step


def smaller_wire_ms(problem: ns.ShardingProblem, result: ns.PlanResult,
                    model: dict[str, Any]) -> float | None:
    """The predicted step of the same plan with bf16 on the wire; None if that is not less. model: the
    arguments of evaluate."""
    if result.plan.complete(problem).batch.wire_type != "f32" or result.plan.chosen_wire_type:
        return None
    batch = problem.batch.replace(wire_type=SMALLER)
    cost = ns.evaluate(problem.replace(batch=batch), result.plan, **model).cost_ms
    return cost if cost < result.cost_ms * (1 - LEAST_SAVING) else None


def sentence(result: ns.PlanResult, smaller_ms: float) -> str:
    return (f"results and gradients travel as f32; with wire_type \"{SMALLER}\" of the batch a step "
            f"of this plan would take {smaller_ms:.3f} ms instead of {result.cost_ms:.3f}, each value "
            "rounded to 8 bits on the way")
