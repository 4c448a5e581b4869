"""Exchanges of numbers between all ranks, for the maps of ids."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

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
        self._rooms: dict[str, tuple[list[int], list[int]]] = {}

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

    def with_heads(self, kind: str, heads: Sequence[Sequence[int]],
                   values: Sequence[torch.Tensor]) -> tuple[list[list[int]], list[torch.Tensor]]:
        """For each rank a head, of one length on all, and any number of values [n]; gives those of all
        ranks for this one. In one exchange where a message has room for all values: how much, both ranks
        know from the message before of this kind. Others follow by themselves."""
        if self._own is None:
            return [list(one) for one in heads], list(values)
        rooms, taken_rooms = self._rooms.setdefault(kind, ([0] * self.size, [0] * self.size))
        length = 1 + len(heads[0])
        messages = torch.zeros(sum(rooms) + length * self.size, dtype=torch.int64)
        for message, head, one in zip(messages.split([length + room for room in rooms]), heads, values):
            message[:length] = torch.tensor([one.shape[0], *head])
            message[length:length + one.shape[0]] = one[:message.shape[0] - length]
        received = self.split(messages, [length + room for room in rooms],
                              [length + room for room in taken_rooms])
        parts = received.split([length + room for room in taken_rooms])
        told = [one[:length].tolist() for one in parts]
        taken = [part[length:length + count] for part, (count, *_) in zip(parts, told)]
        rests = [values[rank][rooms[rank]:] for rank in range(self.size)]
        for rank, rest in enumerate(self._rests(rests, [max(0, one[0] - room) for one, room in
                                                        zip(told, taken_rooms)])):
            if rest.shape[0]:
                taken[rank] = torch.cat([taken[rank], rest])
            rooms[rank] = next_room(rooms[rank], values[rank].shape[0])
            taken_rooms[rank] = next_room(taken_rooms[rank], told[rank][0])
        return [one[1:] for one in told], taken

    def _rests(self, rests: Sequence[torch.Tensor], counts: Sequence[int]) -> list[torch.Tensor]:
        """What messages had no room for. counts: of the ranks' for this one."""
        taken = [rests[rank] if rank == self.rank else rests[rank].new_empty(count)
                 for rank, count in enumerate(counts)]
        others = [rank for rank in range(self.size) if rank != self.rank]
        with self._explained():
            # Receives first, so that no data waits for them.
            work = [dist.irecv(taken[rank], group=self._own, group_src=rank) for rank in others if counts[rank]]
            work += [dist.isend(rests[rank].contiguous(), group=self._own, group_dst=rank) for rank in others
                     if rests[rank].shape[0]]
            for one in work:
                one.wait()
        return taken

    def _run(self, received: torch.Tensor, values: torch.Tensor, taken: list[int] | None,
             sent: list[int] | None) -> None:
        with self._explained():
            dist.all_to_all_single(received, values, taken, sent, group=self._own)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            watched_group_of(self.group).fail(error, "could not exchange dynamic ids")


def next_room(room: int, count: int) -> int:
    """What the next message has room for, after one of `count` values in `room`."""
    return count + count // 8 if count > room or 2 * count < room else room
