"""The tables under the plan that is left and under the one that comes, and how a table moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from neuroshard._artifact.dtypes import DTYPES
from neuroshard._artifact.optimizer_states import ROW_STATES, STATE_NAMES
from neuroshard.distributed._checkpoint.row_state_merge import plan_merges
from neuroshard.distributed._checkpoint.sharded import Chunk, Sharded
from neuroshard.distributed._checkpoint.state import state_of_table
from neuroshard.distributed._reshard.boxes import Box
from neuroshard.distributed._reshard.pieces import must_move, plan_pieces
from neuroshard.distributed._reshard.transfer import Move, Transfer
from neuroshard.distributed._shards import LocalShard
from neuroshard.plans import Plan
from neuroshard.shards import Shard
from neuroshard.tables import Table

Values = dict[str, Sharded]


@dataclass(frozen=True)
class Side:
    """The tables under a plan. devices: by rank of the ranks that talk, its device in the plan, None
    if it has none. own: this rank's shards by table."""

    plan: Plan
    devices: Sequence[int | None]
    own: Mapping[str, Sequence[LocalShard]]

    def values(self, table: Table, this_rank: int) -> list[Values]:
        """By rank, the values of a table as checkpoints name them. Those of other ranks have no
        memory and say which chunks these hold."""
        shards = self.plan.shards_of(table.name)

        def held(rank: int, device: int | None) -> Sequence[LocalShard]:
            if rank == this_rank:
                return self.own.get(table.name, ())
            return [outline(shard, table) for shard in shards if device in shard.devices]

        return [state_of_table(table.name, self.plan, table, held(rank, device))
                for rank, device in enumerate(self.devices)]


def by_table(shards: Iterable[LocalShard]) -> dict[str, list[LocalShard]]:
    found: dict[str, list[LocalShard]] = {}
    for shard in shards:
        found.setdefault(shard.table, []).append(shard)
    return found


def outline(shard: Shard, table: Table) -> LocalShard:
    """A shard without memory."""
    size = (shard.row_count, shard.width)
    kind = table.optimizer.kind
    of_rows = ROW_STATES.get(kind, ())
    return LocalShard(shard.name, shard.table, shard.rows, shard.cols, shard.devices,
                      torch.empty(size, dtype=DTYPES[table.type], device="meta"),
                      {name: torch.empty(size[:1] if name in of_rows else size, dtype=torch.float32,
                                         device="meta") for name in STATE_NAMES[kind]})


def move_table(table: Table, before: Side, after: Side, transfer: Transfer,
               distance: Callable[[int, int], int], sent: list[int]) -> list[int]:
    """Fills this rank's shards of a table under the plan that comes. Called on all ranks. Returns, by
    rank, the bytes that it wants and does not hold.

    sent: as in plan_pieces, of all tables."""
    held = before.values(table, transfer.rank)
    wanted = after.values(table, transfer.rank)
    merges = [plan_merges(values, held[0]) for values in wanted]
    needed = [0] * transfer.size
    moves = []
    for key in sorted(wanted[0]):
        sources, targets = ([chunks_of(values[key]) for values in side] for side in (held, wanted))
        boxes = [[[box_of(one) for one in chunks] for chunks in side] for side in (sources, targets)]
        size = wanted[0][key].dtype.itemsize
        pieces = plan_pieces(*boxes, size, distance, sent)
        needed = [so_far + count * size
                  for so_far, count in zip(needed, must_move(*boxes), strict=True)]
        moves.append(Move(pieces, *boxes, [one.tensor for one in sources[transfer.rank]],
                          [one.tensor for one in targets[transfer.rank]]))
    transfer.run(moves)
    for merge in merges[transfer.rank]:
        merge.finish()
    return needed


def chunks_of(value: Sharded) -> list[Chunk]:
    """In an order that all ranks share."""
    return sorted(value.chunks, key=lambda one: (one.offsets, tuple(one.tensor.shape)))


def box_of(chunk: Chunk) -> Box:
    return tuple((begin, begin + size)
                 for begin, size in zip(chunk.offsets, chunk.tensor.shape, strict=True))
