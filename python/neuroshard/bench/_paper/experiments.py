"""What each experiment runs: by name of a row, the arguments of plan()."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import neuroshard as ns

GREEDY = ("dim", "lookup", "size", "size-lookup")
# More than any device's dims.
NO_CAP = 1e6
Searches = Mapping[str, Mapping[str, object]]


def published(**settings: float) -> dict[str, object]:
    return {"algorithm": "published", "published": ns.PublishedSettings(**settings)}


WITHOUT_GRID = {"grid_points": 1, "grid_begin": NO_CAP, "grid_end": NO_CAP}
ABLATIONS: Searches = {"published": published(), "without beam": published(depth=0),
                       "without grid": published(**WITHOUT_GRID),
                       "without both": published(depth=0, **WITHOUT_GRID)}
# The paper's letters, and ours.
SWEEPS: dict[str, Searches] = {
    "N": {f"N = {value}": published(candidates=value) for value in (10, 1, 2, 5, 20)},
    "K": {f"K = {value}": published(beam_width=value) for value in (3, 1, 2, 5, 8)},
    "L": {f"L = {value}": published(depth=value) for value in (10, 0, 2, 5, 15, 20)},
    "M": {f"M = {value}": published(grid_points=value) for value in (11, 1, 3, 6, 21)}}
BASELINES: Searches = {"published": published(), "default": {},
                       **{name: {"algorithm": name} for name in (*GREEDY, "random")}}


@dataclass(frozen=True)
class Solved:
    """Costs by task, None where there was no plan; CPU seconds of all."""

    costs: list[float | None]
    seconds: float


def solve(tasks: list[ns.ShardingProblem], searches: Searches,
          cost_model: str) -> dict[str, Solved]:
    return {name: solve_one(tasks, search, cost_model) for name, search in searches.items()}


def solve_one(tasks: list[ns.ShardingProblem], search: Mapping[str, object],
              cost_model: str) -> Solved:
    costs: list[float | None] = []
    begin = time.process_time()
    for task in tasks:
        try:
            costs.append(ns.plan(task, objective="published", cost_model=cost_model,
                                 **search).cost_ms)
        except ns.PlanningError:
            costs.append(None)
    return Solved(costs, time.process_time() - begin)


def ratio(one: Solved, base: Solved) -> float:
    """Geometric mean of the costs over those of base, of the tasks that both solve; nan if none."""
    pairs = [(a, b) for a, b in zip(one.costs, base.costs) if a and b]
    return statistics.geometric_mean(a / b for a, b in pairs) if pairs else float("nan")


def best_of(solved: Mapping[str, Solved], names: Iterable[str]) -> Solved:
    """For each task the lowest cost of some of the searches."""
    found = [[cost for cost in costs if cost] for costs in zip(*(solved[name].costs
                                                                 for name in names))]
    return Solved([min(costs, default=None) for costs in found], 0)
