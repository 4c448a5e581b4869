"""Runs several plans of a model on all ranks in turns, and times their steps term by term.

All plans are open at once and take turns step by step, so that other load on the machine affects all
of them alike. A step is the lookups and updates of one batch, without a dense part; its time is that
of the slowest rank."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist

from neuroshard._group.agreement import gather, rank_of, size_of
from neuroshard.calibration._models import draw_ids
from neuroshard.distributed import ShardedEmbeddingBagCollection
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

INPUT_SETS = 4
WARM_UP = 3


@dataclass(frozen=True)
class Steps:
    """The steps of one plan. Milliseconds. step: of the slowest rank, step by step. phases: per step,
    by rank, then by phase (docs/runtime.md)."""

    step: list[float]
    phases: list[dict[str, float]]


def run_step(tables: torch.nn.Module, ids: object) -> float:
    begin = time.perf_counter()
    results = tables(ids)
    torch.autograd.backward(list(results.values()),
                            [torch.ones_like(one) for one in results.values()])
    return (time.perf_counter() - begin) * 1e3


def measure_steps(problem: ShardingProblem, plans: Mapping[str, str],
                  rounds: int) -> dict[str, Steps]:
    """plans: JSON by name, the same on all ranks."""
    rank, size = rank_of(None), size_of(None)
    modules = {name: ShardedEmbeddingBagCollection(Plan.from_json(text), problem,
                                                   learning_rate=0.01, threads=1)
               for name, text in plans.items()}
    inputs = [draw_ids(problem, problem.batch.global_size // size, one * size + rank)
              for one in range(INPUT_SETS)]
    times: dict[str, list[float]] = {name: [] for name in modules}
    for turn in range(WARM_UP + rounds):
        for name, module in modules.items():
            if turn == WARM_UP:
                module.reset_phases()
            if size > 1:
                dist.barrier()
            elapsed = run_step(module, inputs[turn % INPUT_SETS])
            if turn >= WARM_UP:
                times[name].append(elapsed)
    found = {}
    for name, module in modules.items():
        own = {phase: one[0] / rounds for phase, one in module.phases().items()}
        found[name] = Steps([max(one) for one in zip(*gather(times[name], None))],
                            gather(own, None))
        module.close()
    return found
