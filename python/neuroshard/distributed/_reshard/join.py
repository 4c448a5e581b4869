"""Makes the module of a rank that takes part in a plan from now on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist

from neuroshard.distributed import _arguments
from neuroshard.distributed._collection import (ShardedEmbeddingBagCollection,
                                                ShardedEmbeddingCollection)
from neuroshard.distributed._device import pick_device
from neuroshard.distributed._distinct_ids import DistinctIds
from neuroshard.distributed._engine import Engine
from neuroshard.distributed._optimizer import FusedOptimizer
from neuroshard.distributed._out_of_range import OutOfRange
from neuroshard.distributed._row_order import RowOrder
from neuroshard.distributed._reshard.id_maps import take_maps
from neuroshard.distributed._reshard.meeting import Meeting, Said, check_group, meet
from neuroshard.distributed._reshard.reshard import Target, move
from neuroshard.distributed._session import Session
from neuroshard.distributed._updates import Updates
from neuroshard.errors import TensorError
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem


def join_resharded(plan: Plan, problem: ShardingProblem, *,
                   process_group: dist.ProcessGroup | None = None,
                   artifact: str | os.PathLike[str] | None = None, name: str | None = None,
                   threads: int | None = None, device: torch.device | str | int | None = None,
                   tier_directory: str | os.PathLike[str] | None = None,
                   grad_scaler: torch.amp.GradScaler | None = None
                   ) -> ShardedEmbeddingBagCollection | ShardedEmbeddingCollection:
    """The module of a rank that has no tables yet, while those that have some call its counterpart,
    tables.reshard(plan, problem, process_group). Weights, optimizer states, number of updates,
    learning rates and when to update are those of the others. process_group has all ranks that have tables now, and
    this one; artifact, name, threads, device, tier_directory and grad_scaler are those of the collections.

    Raises an Error on all ranks, before anything has moved, if plan and problem do not fit."""
    start = time.monotonic()
    check_group(process_group)
    target = Target(plan, problem, process_group, artifact)
    if target.rank is None:
        raise ValueError("process_group: this rank is not in it, so it has no tables to join")

    joiners = []

    def prepare() -> Said:
        target.check()
        plan.verify(problem)
        joiners.append(Joiner(problem, Engine(pick_device(device)), _arguments.name(name),
                              _arguments.threads(threads), _arguments.tier_directory(tier_directory),
                              grad_scaler))
        return target.say(joiners[0].engine)

    meeting = meet([process_group], prepare)
    return joiners[0].join(meeting, target, start)


class Joiner:
    """A collection that has no tables yet."""

    def __init__(self, problem: ShardingProblem, engine: Engine, name: str | None,
                 threads: int | None, tier_directory: Path | None,
                 grad_scaler: torch.amp.GradScaler | None) -> None:
        unpooled = any(feature.pooling == "none" for feature in problem.features)
        kind = ShardedEmbeddingCollection if unpooled else ShardedEmbeddingBagCollection
        self.engine = engine
        self._module = kind.__new__(kind)
        torch.nn.Module.__init__(self._module)
        self._module._check_features(problem)
        self._options, self._scaler = (name, threads, tier_directory), grad_scaler

    def join(self, meeting: Meeting, target: Target,
             start: float) -> ShardedEmbeddingBagCollection | ShardedEmbeddingCollection:
        source, module = meeting.source, self._module
        module._begin()
        module._optimizer = FusedOptimizer(source.groups,
                                           [table.name for table in target.problem.tables])
        module._updates = Updates.joining(source.updates, module._optimizer, self._scaler)
        module._out_of_range = OutOfRange(source.out_of_range)
        module._distinct_ids = DistinctIds(source.distinct_ids)
        module._row_order = RowOrder(source.row_order)

        def open_session() -> Session:
            if source.updates.scaled != (self._scaler is not None):
                raise TensorError("grad_scaler: expected " + ("one" if source.updates.scaled else "none") +
                                  ", as the ranks that have tables")
            return Session(target.plan, target.problem, target.group, target.artifact, *self._options,
                           self.engine, module._updates)

        module._policies = {name: one.policy for name, one in source.maps.items()}
        session, _, moved = move(meeting, target, None, {}, open_session, start)
        module._take(session, target.plan, target.problem)
        take_maps(module.dynamic_ids, moved)
        return module.requires_grad_(not source.frozen)
