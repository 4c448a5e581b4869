"""Exchanges of numbers between all ranks, for the maps of ids."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist


class Exchange:
    """All-to-alls of i64 on the CPU, in a group of their own. All ranks make them in one order. Raises a
    DistBackendError with the cause if ranks are gone."""

    def __init__(self, group: dist.ProcessGroup | None, own: dist.ProcessGroup | None, rank: int,
                 size: int) -> None:
        """own: a group of the ranks of `group` for these exchanges alone; None: there is one rank."""
        self.group, self.rank, self.size = group, rank, size
        self.native = torch.classes.neuroshard.IdExchange(own.group_name if own else "")

    def split(self, values: torch.Tensor, sent: Sequence[int], taken: Sequence[int]) -> torch.Tensor:
        """values: those for rank 0 first. sent, taken: how many go to, and come from, each rank."""
        return self.native.split(values, sent, taken)
