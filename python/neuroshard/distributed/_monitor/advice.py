"""What a change of the plan would bring."""

from __future__ import annotations

from dataclasses import dataclass

from neuroshard import _planner
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem
from neuroshard.results import PlanResult


@dataclass(frozen=True)
class Advice:
    """The plan in use and the one that a search found for the ids of today.

    plan, problem: what tables.reshard() takes; the problem has the statistics that were measured.
    step_ms: predicted for the plan in use; None if it breaks a rule or a limit for the problem, which
    why_not says. new_step_ms: for the new plan. bytes, move_ms: of moving to it, as the planner
    predicts them. tables: that move."""

    plan: Plan
    problem: ShardingProblem
    step_ms: float | None
    why_not: str
    new_step_ms: float
    bytes: int
    move_ms: float
    tables: int

    @property
    def steps_to_pay_off(self) -> float | None:
        """Steps after which the time of moving is saved; None if none is."""
        if self.step_ms is None or self.step_ms <= self.new_step_ms:
            return None
        return self.move_ms / (self.step_ms - self.new_step_ms)

    def __str__(self) -> str:
        if self.step_ms is None:
            now = f"the plan in use does not serve: {self.why_not}"
        else:
            now = f"a step of the plan in use takes {self.step_ms:.3f} ms with the ids of today"
        if not self.tables:
            return f"{now}; no better plan was found"
        steps = self.steps_to_pay_off
        pays = "" if steps is None else f", which pays off after {steps:,.0f} steps"
        return (f"{now}; another would take {self.new_step_ms:.3f} ms: "
                f"{_planner.format_bytes(self.bytes)} of {self.tables} tables would move, in "
                f"{self.move_ms:.3f} ms{pays}")


def advice_of(result: PlanResult, problem: ShardingProblem) -> Advice:
    """result: of a search from the plan in use."""
    move = result.migration
    return Advice(result.plan, problem, move.previous_cost_ms, move.why_not_previous,
                  result.cost_ms, move.bytes, move.move_ms, len(move.moves))
