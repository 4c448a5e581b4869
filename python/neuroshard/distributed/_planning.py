"""Plans on rank 0 and gives the plan to all ranks."""

from __future__ import annotations

from neuroshard import planning
from neuroshard._group.agreement import attempt, gather, rank_of
from neuroshard.errors import GroupError
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem


def plan(problem: ShardingProblem, process_group: object = None, **options: object) -> Plan:
    """Calls neuroshard.plan on rank 0; every rank of process_group (None: the default one) gets the plan, or an error.

    problem, options: those of neuroshard.plan. On rank 0 an error is neuroshard.plan's own, elsewhere a
    GroupError with its text."""
    result = error = None
    if rank_of(process_group) == 0:
        result, error = attempt(lambda: planning.plan(problem, **options).plan.to_json())
    text, message = gather((result, f"{type(error).__name__}: {error}" if error else None),
                           process_group)[0]
    if error:
        raise error
    if message is not None:
        raise GroupError(f"rank 0: planning failed: {message}")
    return Plan.from_json(text)
