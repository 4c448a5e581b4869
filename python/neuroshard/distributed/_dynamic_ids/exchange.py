"""Exchanges of numbers between all ranks, for the maps of ids."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from neuroshard._group.watched_group import watched_group_of


class Exchange:
    """All-to-alls of i64 on the CPU, in a group of their own. All ranks make them in one order. Raises a
    GroupError with the cause if ranks are gone."""

    def __init__(self, group: dist.ProcessGroup | None, own: dist.ProcessGroup | None, rank: int,
                 size: int) -> None:
        """own: a group of the ranks of `group` for these exchanges alone; None: there is one rank."""
        self.group, self.rank, self.size = group, rank, size
        self._own = own

    def equal(self, values: torch.Tensor) -> torch.Tensor:
        """values: [ranks, n], a row for each rank. Gives the rows of all ranks for this one."""
        if self._own is None:
            return values
        received = torch.empty_like(values)
        self._run(received, values, None, None)
        return received

    def split(self, values: torch.Tensor, sent: Sequence[int], taken: Sequence[int]) -> torch.Tensor:
        """values: those for rank 0 first. sent, taken: how many go to, and come from, each rank. Of
        values [n, fields], the rows are counted."""
        if self._own is None:
            return values
        received = values.new_empty((sum(taken), *values.shape[1:]))
        self._run(received, values.contiguous(), list(taken), list(sent))
        return received

    def _run(self, received: torch.Tensor, values: torch.Tensor, taken: list[int] | None,
             sent: list[int] | None) -> None:
        try:
            dist.all_to_all_single(received, values, taken, sent, group=self._own)
        except RuntimeError as error:
            watched_group_of(self.group).fail(error, "could not exchange dynamic ids")
