"""Loaders of all ranks, stopped at the same step."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import TypeVar

import torch
import torch.distributed as dist

from neuroshard.distributed.agreement import GroupError, first_line, rank_of, size_of

T = TypeVar("T")


def lockstep(loader: Iterable[T], process_group: dist.ProcessGroup | None = None) -> Iterator[T]:
    """The batches of a rank's loader, for as many steps as every rank has one.

    Each step begins with an exchange of one number. When a loader ends before the others, all
    ranks stop at that step, and those that still had a batch warn which ranks ran out. An error
    of a loader is raised on its rank and ends the others with a GroupError."""
    batches = iter(loader)
    step = 0
    while True:
        error = None
        try:
            batch, state = next(batches), 1
        except StopIteration:
            batch, state = None, 0
        except Exception as failure:  # noqa: BLE001, the others must not wait for this rank
            batch, state, error = None, -1, failure
        states = exchange(state, process_group, step)
        if error:
            raise error
        failed = [rank for rank, one in enumerate(states) if one < 0]
        if failed:
            raise GroupError(f"rank {failed[0]}: its loader failed before step {step}")
        short = [rank for rank, one in enumerate(states) if one == 0]
        if short:
            if state:
                warnings.warn(f"stopped after {step} steps: the loader of rank "
                              f"{', '.join(map(str, short))} has no more batches", stacklevel=2)
            return
        yield batch
        step += 1


def exchange(state: int, group: dist.ProcessGroup | None, step: int) -> list[int]:
    """One number of each rank."""
    if size_of(group) == 1:
        return [state]
    on_gpu = "nccl" in dist.get_backend(group)
    place = torch.device("cuda", torch.cuda.current_device()) if on_gpu else None
    states = torch.zeros(size_of(group), dtype=torch.int64, device=place)
    mine = torch.tensor([state], dtype=torch.int64, device=place)
    try:
        dist.all_gather_into_tensor(states, mine, group=group)
    except RuntimeError as error:
        raise GroupError(f"rank {rank_of(group)}: could not reach the other ranks before step "
                         f"{step}: {first_line(error)}") from error
    return states.tolist()
