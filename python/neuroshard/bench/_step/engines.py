"""One training step of the same tables by several engines: lookups, a loss, updates.

The loss is the sum of the squares of all results, joined to one tensor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

import neuroshard as ns
from neuroshard._group.agreement import rank_of, size_of
from neuroshard.calibration import draw_ids

ROWS = 10_000
RATE = 0.1
# So many batches take turns.
BATCHES = 8


@dataclass(frozen=True)
class Model:
    """batch: of each rank. pooling: ids of each feature and sample, uniform over the rows."""

    tables: int
    dim: int
    batch: int
    pooling: int
    optimizer: str

    def problem(self) -> ns.ShardingProblem:
        ranks = size_of(None)
        return ns.ShardingProblem(
            tables=[ns.Table(f"t{one}", ROWS, self.dim, optimizer=self.optimizer)
                    for one in range(self.tables)],
            features=[ns.Feature(f"f{one}", f"t{one}", mean_pooling=self.pooling)
                      for one in range(self.tables)],
            batch=self.batch * ranks, topology=f"{ranks}xCPU")


@dataclass(frozen=True)
class Engine:
    """step: one step of the batch with a number; returns the CPU seconds in it that are dense work,
    where the engine tells them apart, else None. phases: milliseconds in the runtime since reset(),
    on this rank; 0 where the engine does not say."""

    step: Callable[[int], float | None]
    reset: Callable[[], object] = lambda: None
    phases: Callable[[], float] = lambda: 0.0
    close: Callable[[], object] = lambda: None


def batches_of(model: Model, kind: str) -> list:
    """kind: "jagged", or "keyed" for TorchRec's KeyedJaggedTensor."""
    problem = model.problem()
    jagged = [draw_ids(problem, model.batch, one * size_of(None) + rank_of(None))
              for one in range(BATCHES)]
    if kind == "jagged":
        return jagged
    from torchrec import KeyedJaggedTensor
    return [KeyedJaggedTensor(keys=[feature.name for feature in problem.features], values=one.ids,
                              lengths=one.offsets.diff()) for one in jagged]


def backward(joined: torch.Tensor) -> None:
    joined.square().sum().backward()


def open_module(model: Model) -> ns.ShardedEmbeddingBagCollection:
    problem = model.problem()
    return ns.ShardedEmbeddingBagCollection(ns.distributed.plan(problem), problem,
                                            learning_rate=RATE, threads=1)


def engine_of(module: ns.ShardedEmbeddingBagCollection,
              step: Callable[[int], float | None]) -> Engine:
    return Engine(step, module.reset_phases,
                  lambda: sum(spent for spent, _ in module.phases().values()), module.close)


def neuroshard(model: Model, kind: str) -> Engine:
    module, batches = open_module(model), batches_of(model, kind)

    def step(number: int) -> None:
        results = module(batches[number % BATCHES])
        backward(torch.cat(list(results.values()), dim=1) if isinstance(results, Mapping)
                 else results.values())

    return engine_of(module, step)


def apart(model: Model, kind: str) -> Engine:
    """Our module; what passes between its forward and its backward is the dense work."""
    module, batches = open_module(model), batches_of(model, kind)
    ends = [0.0]

    def gradients_are_there(_: torch.Tensor) -> None:
        ends[0] = time.process_time()

    def step(number: int) -> float:
        results = module(batches[number % BATCHES])
        apart = list(results.values()) if isinstance(results, Mapping) else [results.values()]
        begin = time.process_time()
        apart[0].register_hook(gradients_are_there)
        backward(torch.cat(apart, dim=1) if len(apart) > 1 else apart[0])
        return ends[0] - begin

    return engine_of(module, step)


def torchrec(model: Model, kind: str) -> Engine:
    """TorchRec's DistributedModelParallel with the plan of its own planner."""
    from neuroshard.calibration.torchrec_engine import (open_module, plan_of_torchrec,
                                                        update_of_copies)

    problem = model.problem()
    module = open_module(plan_of_torchrec(problem), problem)
    update = update_of_copies(module, problem)
    batches = batches_of(model, "keyed")

    def step(number: int) -> None:
        backward(module(batches[number % BATCHES]).wait().values())
        update()

    return Engine(step)


ENGINES = {"neuroshard": neuroshard, "torchrec": torchrec, "apart": apart}
