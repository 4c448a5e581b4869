"""Stops the data loaders of all ranks at the same step."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import TypeVar

import torch.distributed as dist

from neuroshard._group.agreement import size_of
from neuroshard._group.watched_group import watched_group_of
from neuroshard._printable import name_ranks
from neuroshard.errors import GroupError

T = TypeVar("T")


def lockstep(loader: Iterable[T], process_group: dist.ProcessGroup | None = None) -> Iterator[T]:
    """The batches of a rank's loader, until the first rank of process_group (None: the default one) runs out.

    Each step begins with an exchange of one number. When a loader ends before the others, all
    ranks stop at that step, and those that still had a batch warn which ranks ran out. An error
    of a loader is raised on its rank and ends the others with a GroupError. A rank that leaves
    its loop earlier must do so at the same step on all ranks."""
    batches = None
    step = 0
    while True:
        error = None
        try:
            batches = iter(loader) if batches is None else batches
            batch, state = next(batches), 1
        except StopIteration:
            batch, state = None, 0
        except Exception as failure:  # noqa: BLE001, the others must not wait for this rank
            batch, state, error = None, -1, failure
        states = exchange(state, process_group)
        if error:
            raise error
        failed = [rank for rank, one in enumerate(states) if one < 0]
        if failed:
            raise GroupError(f"rank {failed[0]}: its loader failed before step {step}")
        short = [rank for rank, one in enumerate(states) if one == 0]
        if short:
            if state:
                warnings.warn(f"stopped after {step} steps: {name_ranks(short)} ran out of batches",
                              stacklevel=2)
            return
        yield batch
        step += 1


def exchange(state: int, group: dist.ProcessGroup | None) -> list[int]:
    """One number of each rank."""
    return [state] if size_of(group) == 1 else watched_group_of(group).gather_numbers(state)
