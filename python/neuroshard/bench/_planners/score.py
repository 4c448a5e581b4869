"""Prices a TorchRec plan by our cost model and by TorchRec's rating."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from torchrec.distributed.types import ShardingPlan

import neuroshard as ns
from neuroshard.bench._planners.case import Case
from neuroshard.bench._planners.contest import Planned
from neuroshard.bench._planners.rating import Rating
from neuroshard.bench._planners.rules import problem_under
from neuroshard.torchrec import from_torchrec

PARTS = ("input_ms", "fetch_ms", "max_forward_ms", "exposed_forward_communication_ms",
         "backward_communication_ms", "max_backward_ms")


@dataclass
class Score:
    """The price of a plan. parts: the terms of the predicted step in ms, which add up to it.
    memory: bytes of each device. shapes: the number of tables by how they are cut. rating: the
    quantity that TorchRec's planner minimises, in its own milliseconds. problems: the rules of
    problem or target that the plan breaks; if there are any, there is no price."""

    setting: str
    rules: str
    step_ms: float = 0
    parts: dict[str, float] = field(default_factory=dict)
    memory: list[int] = field(default_factory=list)
    shapes: dict[str, int] = field(default_factory=dict)
    rating: float = 0
    problems: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)


def score(case: Case, rules: str, planned: Planned) -> Score:
    found = Score(planned.setting, rules, seconds=planned.seconds,
                  cpu_seconds=planned.cpu_seconds)
    if planned.plan is None:
        found.problems = [planned.failure]
        return found
    problem = problem_under(case, rules)
    try:
        plan = read_back(case, rules, planned.plan)
    except ValueError as error:
        found.problems = [str(error)]
        return found
    found.problems = [str(one) for one in plan.check(problem)]
    if found.problems:
        return found
    result = ns.inspect(problem, plan, cost_model="roofline")
    found.step_ms = result.cost_ms
    found.parts = {part: getattr(result.breakdown, part) for part in PARTS}
    found.memory = [one.peak_bytes for one in result.memory.devices]
    found.shapes = dict(Counter(shape_of(plan, table.name) for table in problem.tables))
    found.rating = Rating(case).of_plan(planned.plan)
    return found


def read_back(case: Case, rules: str, plan: ShardingPlan) -> ns.Plan:
    """The plan as one of ours. Under exact rules its optimizer semantics are exact, which
    verify() then checks."""
    def size(_: str, name: str) -> tuple[int, int]:
        table = case.problem.table(name)
        return table.rows, table.dim

    semantics = problem_under(case, rules).optimizer_semantics
    return from_torchrec(plan, size, case.ranks, optimizer_semantics=semantics)


def shape_of(plan: ns.Plan, table: str) -> str:
    """How a table is cut by its shards, since TorchRec's "column_wise" may be a single shard."""
    shards = plan.shards_of(table)
    if len(shards[0].devices) > 1:
        return "replicated"
    if len(shards) == 1:
        return "whole"
    return "rows" if len({one.rows for one in shards}) > 1 else "columns"
