"""Writes what steps took to a file that `neuroshard explain --run` reads."""

from __future__ import annotations

import os
from typing import Protocol

import torch.distributed as dist

from neuroshard._group.agreement import gather, together
from neuroshard.distributed._caches import CacheFigures
from neuroshard.problem import ShardingProblem
from neuroshard.runs import TERMS, CacheRun, Run


class Measured(Protocol):
    """What sharded collections say of their steps."""

    @property
    def process_group(self) -> dist.ProcessGroup | None: ...
    def terms(self) -> dict[str, float]: ...
    def caches(self) -> dict[str, CacheFigures]: ...
    @property
    def problem(self) -> ShardingProblem: ...


def save_run(path: str | os.PathLike[str], tables: Measured, steps: int, rank: int) -> Run:
    """Gathers the figures of all ranks' steps, which rank 0 writes. Raises a ValueError for no steps."""
    if steps <= 0:
        raise ValueError("no step was trained since reset_phases(): there is nothing to save")
    terms = tables.terms()
    caches = {name: CacheRun(rows=one.rows / one.batches, hits=one.hits / one.batches,
                             written=one.written / one.batches, wait_ms=one.wait_ms / one.batches)
              for name, one in tables.caches().items() if one.batches}
    everyone = gather(({term: terms.get(term, 0.0) / steps for term in TERMS}, caches),
                      tables.process_group)
    run = Run(steps=steps, tables=tuple(table.name for table in tables.problem.tables), devices=tuple(one for one, _ in everyone),
              caches={name: cache for _, own in everyone for name, cache in own.items()})
    together(lambda: run.save(path) if rank == 0 else None, tables.process_group, "saving the run")
    return run
