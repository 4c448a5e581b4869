"""Profiles batches and searches a plan for them, on a thread beside training."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from neuroshard import planning
from neuroshard._group.agreement import attempt
from neuroshard.distributed._monitor.advice import Advice, advice_of
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem
from neuroshard.profiling.statistics import Profile, apply

# By feature, the ids of a batch and the number of them in each sample.
Bags = Mapping[str, tuple[numpy.ndarray, numpy.ndarray]]


class Search:
    """One search for batches, by parts of ranks."""

    def __init__(self, batches: Sequence[Sequence[Bags]], problem: ShardingProblem, plan: Plan,
                 options: Mapping[str, Any], distinct_ids: bool) -> None:
        """plan: in use. options: of neuroshard.plan. distinct_ids: of the module."""
        self._stopped = threading.Event()
        self._outcome: tuple[Advice | None, str] = (None, "")
        self._thread = threading.Thread(target=self._run, args=(batches, problem, plan, options, distinct_ids),
                                        name="neuroshard plan monitor", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def outcome(self) -> tuple[Advice | None, str]:
        """The advice, or why there is none. Waits for it."""
        self._thread.join()
        return self._outcome

    def stop(self) -> None:
        """Ends the search at its next report of progress."""
        self._stopped.set()
        self._thread.join()

    def _run(self, batches: Sequence[Sequence[Bags]], problem: ShardingProblem, plan: Plan,
             options: Mapping[str, Any], distinct_ids: bool) -> None:
        def search() -> Advice:
            measured = measure(problem, batches, distinct_ids)
            warm = planning.WarmStart(previous=plan, **{
                key: options[key] for key in ("horizon_steps",) if key in options})
            rest = {key: value for key, value in options.items() if key != "horizon_steps"}
            return advice_of(planning.plan(measured, warm_start=warm, progress=self._goes_on, **rest),
                             measured)

        advice, error = attempt(search)
        self._outcome = advice, f"{type(error).__name__}: {error}" if error else ""

    def _goes_on(self, _: planning.Progress) -> bool:
        return not self._stopped.is_set()


def measure(problem: ShardingProblem, batches: Sequence[Sequence[Bags]], distinct_ids: bool) -> ShardingProblem:
    """The problem with the statistics of these batches alone: without snapshots."""
    problem = problem.replace(snapshots=())
    profile = Profile(problem, distinct_ids=distinct_ids)
    for number, parts in enumerate(batches):
        profile.add({name: tuple(map(numpy.concatenate, zip(*(part[name] for part in parts))))
                     for name in parts[0]}, f"batch {number} of the sample")
    return apply(problem, profile.feature_statistics(), profile.table_statistics())
