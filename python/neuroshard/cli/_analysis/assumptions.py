"""What a prediction takes for granted, as sentences."""

from __future__ import annotations

from collections.abc import Sequence

import neuroshard as ns
from neuroshard._printable import counted

MOST_NAMES = 6


def assumptions_of(problem: ns.ShardingProblem, result: ns.PlanResult) -> list[str]:
    """What the workload leaves open, then what lies outside the range of the cost model."""
    return [*of_workload(problem), *result.remarks]


def of_workload(problem: ns.ShardingProblem) -> list[str]:
    found = []
    unknown = [one.name for one in problem.tables if one.access is None]
    if unknown and not problem.snapshots:
        found.append(f"no statistics of the ids of {names_of(unknown, len(problem.tables), 'table')}: every row is "
                     "taken as equally likely (neuroshard profile measures it)")
    means = [one.name for one in problem.features if one.p99_pooling <= 0]
    if means:
        found.append(f"no p99 of the ids per sample of {names_of(means, len(problem.features), 'feature')}: memory is "
                     "that of batches with the mean number of ids")
    return found


def names_of(names: Sequence[str], total: int, what: str) -> str:
    """"all 26 tables", "2 of 26 tables ('a', 'b')"."""
    if len(names) == total:
        return f"the {what}" if total == 1 else f"all {counted(total, what)}"
    listed = ", ".join(f"'{one}'" for one in names[:MOST_NAMES])
    return f"{len(names)} of {counted(total, what)} ({listed}{', ...' if len(names) > MOST_NAMES else ''})"
