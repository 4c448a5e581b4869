"""Compares plans under one cost model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import neuroshard as ns


class Entry(NamedTuple):
    """A plan in the comparison: result, or error when there is no valid plan. made: whether it was
    planned here."""

    name: str
    made: bool
    result: ns.PlanResult | None = None
    error: ns.Error | None = None

    @property
    def message(self) -> str:
        if isinstance(self.error, ns.PlanningError):
            own = self.error.limit == "algorithm"
            return self.error.message if own else f"{self.error.limit}: {self.error.message}"
        return str(self.error).splitlines()[0] if self.error else ""


# Of an algorithm that imitates another planner: its plans are chosen by our costs.
TITLES = {"torchrec": "TorchRec-like (our costs)"}


def title(entry: Entry) -> str:
    """The name that people read."""
    return TITLES.get(entry.name, entry.name) if entry.made else entry.name


def of_algorithm(problem: ns.ShardingProblem, algorithm: str, model: dict[str, Any],
                 search: dict[str, Any], progress: Any = False) -> Entry:
    from neuroshard.cli._input.search_options import for_algorithm

    search = for_algorithm(search, algorithm)
    try:
        return Entry(algorithm, True, ns.plan(problem, algorithm=algorithm, progress=progress,
                                              **model, **search))
    except ns.PlanningError as error:
        return Entry(algorithm, True, error=error)


def of_plan(problem: ns.ShardingProblem, name: str, plan: ns.Plan,
            model: dict[str, Any]) -> Entry:
    try:
        return Entry(name, False, ns.inspect(problem, plan, **model))
    except ns.InvalidPlan as error:
        return Entry(name, False, error=error)


def ranked(entries: Iterable[Entry]) -> list[Entry]:
    """The cheapest first, those without a plan last."""
    return sorted(entries, key=lambda one: (one.result is None,
                                            one.result.cost_ms if one.result else 0))


def best_bound(entries: Iterable[Entry]) -> float | None:
    """The largest lower bound that is known; None for none."""
    bounds = (one.result.lower_bound_ms for one in entries if one.result)
    return max((bound for bound in bounds if bound is not None), default=None)
