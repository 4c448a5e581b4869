"""A model's tables, open on all ranks under a plan, whose steps are timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from neuroshard._jagged import Jagged
from neuroshard.distributed import ShardedEmbeddingBagCollection
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

RATE = 0.01


@dataclass(frozen=True)
class Tables:
    """given: makes of ids what step takes, before it is timed. step: lookups and updates of a batch.
    phases: milliseconds in the runtime since reset, by phase (docs/runtime.md); {} if the engine does
    not say. All ranks make and close them in the same order."""

    given: Callable[[Jagged], object]
    step: Callable[[object], None]
    phases: Callable[[], dict[str, float]]
    reset: Callable[[], None]
    close: Callable[[], None]


def open_plan(plan: str, problem: ShardingProblem) -> Tables:
    """Our own module. plan: JSON, the same on all ranks."""
    module = ShardedEmbeddingBagCollection(Plan.from_json(plan), problem, learning_rate=RATE,
                                           threads=1)

    def step(ids: object) -> None:
        results = module(ids)
        torch.autograd.backward(list(results.values()),
                                [torch.ones_like(one) for one in results.values()])

    return Tables(lambda ids: ids, step,
                  lambda: {name: spent for name, (spent, _) in module.phases().items()},
                  module.reset_phases, module.close)
