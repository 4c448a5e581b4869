"""Runs and times TorchRec's planner in several settings, and ours, on one case."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.proposers import (DynamicProgrammingProposer, GreedyProposer,
                                                    GridSearchProposer, UniformProposer)
from torchrec.distributed.planner.storage_reservations import FixedAbsoluteStorageReservation
from torchrec.distributed.planner.types import PlannerError
from torchrec.distributed.types import ShardingPlan

import neuroshard as ns
from neuroshard.bench._planners.case import Case, make_sharders
from neuroshard.bench._planners.rating import Rating
from neuroshard.bench._planners.rules import TRAINED, make_constraints, problem_under, types_under
from neuroshard.torchrec import NeuroShardPlanner, quiet

DEFAULT, OURS = "torchrec", "neuroshard"
# Our search with TorchRec's rating as cost model: compares the searches without the models.
OURS_BY_RATING = "neuroshard, by TorchRec's rating"
MIN_PARTITIONS = (64, 32, 16, 8, 4)
# The min_partition also tried with the dynamic-programming proposer.
WITH_DYNAMIC = 32
# Sharding types that a user may try alone.
ALONE = ("table_wise", "row_wise")


@dataclass
class Planned:
    """The plan of a planner in one setting, or why it failed. seconds, cpu_seconds: of each repeat,
    from the construction of the planner to its plan."""

    setting: str
    plan: ShardingPlan | None = None
    failure: str = ""
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)


def held_back(case: Case) -> int:
    """Bytes per device that our planner reserves for the dense part, the communicator and
    fragmentation; TorchRec's planner reserves as many."""
    memory = ns.plan(problem_under(case, "per-shard"), progress=False).memory
    return max(one.dense_reserve_bytes + one.communicator_bytes + one.fragmentation_reserve_bytes
               for one in memory.devices)


def timed(setting: str, plan: Callable[[], ShardingPlan], repeats: int) -> Planned:
    done = Planned(setting)
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            with quiet():
                done.plan = plan()
        except (PlannerError, ns.PlanningError) as error:
            done.failure = str(error).strip().splitlines()[0]
        done.seconds.append(time.perf_counter() - wall)
        done.cpu_seconds.append(time.process_time() - cpu)
    return done


def ask_torchrec(case: Case, types: dict[str, list[str] | None], reserve: int,
                 min_partition: int | None = None, dynamic: bool = False) -> ShardingPlan:
    """TorchRec's planner with its own enumerator, estimators and partitioner, no statistics
    printed. dynamic: adds its dynamic-programming proposer to its four default ones."""
    proposers = [GridSearchProposer(), GreedyProposer(), GreedyProposer(use_depth=False),
                 UniformProposer(), DynamicProgrammingProposer()]
    planner = EmbeddingShardingPlanner(
        topology=case.topology, batch_size=case.batch_per_rank,
        constraints=make_constraints(case, types, min_partition),
        proposer=proposers if dynamic else None,
        storage_reservation=FixedAbsoluteStorageReservation(reserve), stats=[])
    return planner.plan(case.model, make_sharders())


def ask_neuroshard(case: Case, rules: str, by_rating: bool = False) -> ShardingPlan:
    """Ours, on the same Topology, model and constraints. Unrestricted it may replicate, which
    it does only where a table's types name it."""
    options = {"cost_model": Rating(case), "objective": "published"} if by_rating else {}
    types = types_under(case, rules)
    if rules == "unrestricted":
        types = {name: [*TRAINED, "data_parallel"] for name in types}
    planner = NeuroShardPlanner(
        case.topology, batch_size=case.batch_per_rank,
        constraints=make_constraints(case, types), per_shard_state=rules != "exact",
        device_class=case.problem.topology.devices[0].device_class, progress=False, **options)
    return planner.plan(case.model, make_sharders())


def settings(case: Case, rules: str, tuned: bool) -> dict[str, dict]:
    """The settings of TorchRec's planner to try: by name, the arguments of ask_torchrec."""
    types = types_under(case, rules)
    found = {DEFAULT: {"types": types}}
    if not tuned or rules == "unrestricted":
        return found
    cut = any("column_wise" in one for one in types.values())
    for width in MIN_PARTITIONS if cut else ():
        found[f"{DEFAULT}, min_partition {width}"] = {"types": types, "min_partition": width}
    for width in (None, WITH_DYNAMIC) if cut else (None,):
        name = f"{DEFAULT}, dynamic" + (f", min_partition {width}" if width else "")
        found[name] = {"types": types, "min_partition": width, "dynamic": True}
    if rules == "exact":
        for kind in ALONE:
            found[f"{DEFAULT}, only {kind}"] = {"types": {name: [kind] for name in types}}
    return found


def contest(case: Case, rules: str, reserve: int, repeats: int, tuned: bool) -> list[Planned]:
    """TorchRec's planner in all settings, its default first, then ours. tuned: adds settings, each
    of which runs once."""
    found = [timed(name, partial(ask_torchrec, case, reserve=reserve, **arguments),
                   repeats if name == DEFAULT else 1)
             for name, arguments in settings(case, rules, tuned).items()]
    if tuned and rules != "unrestricted":
        found.append(timed(OURS_BY_RATING, partial(ask_neuroshard, case, rules, True), 1))
    return [*found, timed(OURS, partial(ask_neuroshard, case, rules), repeats)]
