"""The maps of dynamic ids go to the ranks of another plan, as they do by way of a checkpoint: each rank gets
a part of their entries, and those that own an id under the other plan take it from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.distributed as dist

from neuroshard._group.agreement import gather
from neuroshard.distributed._dynamic_ids.adoption import adopt
from neuroshard.distributed._dynamic_ids.dealing import first_share
from neuroshard.distributed._dynamic_ids.id_table import FIELDS, IdTable, with_owner
from neuroshard.distributed._reshard.meeting import Meeting, MovingMap


class MovedMap(NamedTuple):
    """A rank's part of a map that has moved. before: what it was."""

    before: MovingMap
    entries: torch.Tensor
    candidates: torch.Tensor


def moving_maps(tables: Mapping[str, IdTable]) -> dict[str, MovingMap]:
    return {name: MovingMap(table.policy, table.seed, table.owner.batches(), table.exchange.size)
            for name, table in tables.items()}


def move_maps(tables: Mapping[str, IdTable], rows: Mapping[str, int], meeting: Meeting,
              group: dist.ProcessGroup | None) -> dict[str, MovedMap]:
    """All ranks that talk call it together. tables: those of this rank under the old plan; none where it has
    none. rows: of all tables. group: of the ranks that talk, for this alone; None: there is one."""
    moved = {}
    for name, before in meeting.source.maps.items():
        table = tables.get(name)
        nothing = torch.empty(0, FIELDS + 1, dtype=torch.int64)
        entries, candidates = ((with_owner(one, table.exchange.rank) for one in
                                (table.owner.entries(), table.owner.candidates())) if table else (nothing, nothing))
        begin, first = (table.begins[table.exchange.rank], table.candidate_range[0]) if table else (0, 0)
        moved[name] = MovedMap(before, share_out(entries, begin, rows[name] - 1, meeting, group),
                               share_out(candidates, first, before.policy.num_candidates(rows[name]), meeting,
                                         group))
    return moved


def share_out(entries: torch.Tensor, begin: int, total: int, meeting: Meeting,
              group: dist.ProcessGroup | None) -> torch.Tensor:
    """Of `total` entries one after the other on the ranks of the old plan, the part of this rank of the new
    one. begin: where its entries are among them."""
    if group is None:
        return entries
    held = gather((begin, begin + entries.shape[0]), meeting.group)
    ranks = sum(one is not None for one in meeting.new)
    wanted = [(0, 0) if one is None else first_share(total, one, ranks) for one in meeting.new]
    own, goal = held[meeting.rank], wanted[meeting.rank]
    sent = [common(own, one) for one in wanted]
    taken = [common(one, goal) for one in held]
    values = torch.cat([entries[first - own[0]:last - own[0]] for first, last in sent]).flatten()
    width = entries.shape[1]
    received = torch.empty(sum(last - first for first, last in taken) * width, dtype=torch.int64)
    dist.all_to_all_single(received, values, *([(last - first) * width for first, last in spans]
                                               for spans in (taken, sent)), group=group)
    parts = received.reshape(-1, width).split([last - first for first, last in taken])
    return torch.cat([part for _, part in sorted(zip(taken, parts), key=lambda one: one[0])])


def common(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The range that is in both; an empty one in the first if there is none."""
    first, last = max(one[0], other[0]), min(one[1], other[1])
    return (first, last) if first < last else (one[0], one[0])


def take_maps(tables: Mapping[str, IdTable], moved: Mapping[str, MovedMap]) -> None:
    """All ranks of the new plan call it together."""
    for name, one in moved.items():
        tables[name].seed = one.before.seed
        adopt(tables[name], one.entries, one.candidates, one.before.ranks, one.before.batches)
