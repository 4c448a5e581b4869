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
        self._name = own.group_name if own else None
        self._rooms: dict[str, tuple[list[int], list[int]]] = {}

    def split(self, values: torch.Tensor, sent: Sequence[int], taken: Sequence[int]) -> torch.Tensor:
        """values: those for rank 0 first. sent, taken: how many go to, and come from, each rank."""
        if self._name is None:
            return values
        return torch.ops.neuroshard.exchange_numbers(self._name, values, sent, taken)

    def with_heads(self, kind: str, heads: Sequence[Sequence[int]],
                   values: Sequence[torch.Tensor]) -> tuple[list[list[int]], list[torch.Tensor]]:
        """For each rank a head, of one length on all, and any number of values [n]; gives those of all
        ranks for this one. In one exchange where a message has room for all values: how much, both ranks
        know from the message before of this kind. Others follow in a message of their own."""
        if self._name is None:
            return [list(one) for one in heads], list(values)
        rooms, taken_rooms = self._rooms.setdefault(kind, ([0] * self.size, [0] * self.size))
        length = 1 + len(heads[0])
        sent, expected = ([length + room for room in one] for one in (rooms, taken_rooms))
        messages = torch.zeros(sum(sent), dtype=torch.int64)
        for message, head, one in zip(messages.split(sent), heads, values):
            message[:length] = torch.tensor([one.shape[0], *head])
            message[length:length + one.shape[0]] = one[:message.shape[0] - length]
        parts = self.split(messages, sent, expected).split(expected)
        told = [one[:length].tolist() for one in parts]
        taken = [part[length:length + count] for part, (count, *_) in zip(parts, told)]
        rests = [one[room:] for one, room in zip(values, rooms)]
        more = [max(0, count - room) for (count, *_), room in zip(told, taken_rooms)]
        others = self.split(torch.cat(rests), [one.shape[0] for one in rests], more).split(more)
        self._rooms[kind] = ([next_room(room, one.shape[0]) for room, one in zip(rooms, values)],
                             [next_room(room, count) for room, (count, *_) in zip(taken_rooms, told)])
        return ([one[1:] for one in told],
                [torch.cat([one, other]) if other.shape[0] else one for one, other in zip(taken, others)])


def next_room(room: int, count: int) -> int:
    """What the next message has room for, after one of `count` values in `room`."""
    return count + count // 8 if count > room or 2 * count < room else room
