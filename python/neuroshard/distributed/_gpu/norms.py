"""Norms of gradient rows over all columns, for exact row-wise optimizers.

Column shards of the same rows receive the same ids, so their lists of distinct rows are equal and
norms are sent without row numbers. Where column shards of a table have different ranges of rows,
the common rows are looked up in these lists, which waits for the device."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from neuroshard import cuda
from neuroshard._gpu import table_tensors
from neuroshard._manifest import Manifest
from neuroshard._optimizer_states import ROW_WISE
from neuroshard.distributed._gpu.step_state import Received
from neuroshard.distributed._gpu.transport import Transport

Range = tuple[int, int]


class NormExchange:
    """Sums the norms of a step's two-phase slots in place, over all owners of the row's columns in
    column order."""

    def __init__(self, manifest: Manifest, transport: Transport, place: torch.device) -> None:
        self.transport, self.place = transport, place
        plain = manifest.plain
        # By rank: the (slot, shard) that exchange norms.
        self.shards = [[(slot, shard) for slot, shard in enumerate(manifest.shards_of(rank))
                        if self._is_cut(plain, shard)] for rank in range(transport.ranks)]
        self.needed = any(self.shards)
        spans: dict[int, set[Range]] = {}
        for own in self.shards:
            for _, shard in own:
                spans.setdefault(shard["table"], set()).add(tuple(shard["rows"]))
        self.ragged = {table for table, rows in spans.items()
                       if any(a != b and overlap(a, b) for a in rows for b in rows)}

    @staticmethod
    def _is_cut(plain: dict, shard: dict) -> bool:
        table = plain["tables"][shard["table"]]
        kind = table["optimizer"]["kind"] if table["optimizer"] else ""
        return (plain["optimizer_semantics"] == "exact" and kind in ROW_WISE
                and tuple(shard["cols"]) != (0, table["dim"]))

    def run(self, device: cuda.Device | None, received: Received) -> None:
        """Exchanges and sums norms; called between Device.backward and backward_apply on all
        ranks."""
        rank = self.transport.rank
        own = {slot: Slot(device, slot, shard, received, shard["table"] in self.ragged, self.place)
               for slot, shard in self.shards[rank]}
        send, send_counts, receive_counts = [], [], []
        for peer in range(self.transport.ranks):
            pieces = [own[mine].section(theirs["rows"])
                      for mine, theirs in self._meetings(peer, peer_sends=False)]
            send += [own[mine].values[begin:end] for (mine, _), (begin, end) in
                     zip(self._meetings(peer, peer_sends=False), pieces)]
            send_counts.append(sum(end - begin for begin, end in pieces))
            receive_counts.append(sum(
                end - begin for mine, theirs in self._meetings(peer, peer_sends=True)
                for begin, end in [own[mine].section(theirs["rows"])]))
        values = torch.cat(send) if send else torch.empty(0, device=self.place)
        arrived = self.transport.swap(values, send_counts, receive_counts).wait()
        self._add(own, arrived)

    def _add(self, own: dict[int, Slot], arrived: torch.Tensor) -> None:
        contributions: dict[int, list] = {slot: [] for slot in own}
        next_value = 0
        for peer in range(self.transport.ranks):
            for mine, theirs in self._meetings(peer, peer_sends=True):
                begin, end = own[mine].section(theirs["rows"])
                part = arrived[next_value:next_value + end - begin]
                contributions[mine].append((theirs["cols"][0], begin, end, part))
                next_value += end - begin
        for slot, parts in contributions.items():
            total = torch.zeros_like(own[slot].values)
            for _, begin, end, part in sorted(parts, key=lambda one: one[0]):
                total[begin:end] += part
            own[slot].values.copy_(total)

    def _meetings(self, peer: int, *, peer_sends: bool) -> Iterator[tuple[int, dict]]:
        """(slot here, shard there) that share rows, by the sender's slot and then the
        receiver's."""
        here, there = self.shards[self.transport.rank], self.shards[peer]
        pairs = ([(one, other) for other in there for one in here] if peer_sends else
                 [(one, other) for one in here for other in there])
        for (slot, shard), (_, other) in pairs:
            if shard["table"] == other["table"] and overlap(shard["rows"], other["rows"]):
                yield slot, other


class Slot:
    """The norms of a slot, one for each distinct row, ascending. If the rows are not looked up,
    `values` has the largest possible number; those after the last row are never read."""

    def __init__(self, device: cuda.Device, slot: int, shard: dict, received: Received,
                 ragged: bool, place: torch.device) -> None:
        self.shard = shard
        entries = received.table.slot == slot
        counts = received.count[entries].flatten().tolist()
        count = min(sum(counts), shard["rows"][1] - shard["rows"][0])
        self.rows = None
        if ragged:
            firsts = received.first[entries].flatten().tolist()
            ids = [received.ids[begin:begin + size] for begin, size in zip(firsts, counts)]
            self.rows = torch.unique(torch.cat(ids))
            count = self.rows.shape[0]
        norms = device.norms(slot)
        if norms.capacity < count:
            raise cuda.CudaError(f"slot {slot} has room for {norms.capacity} norms, expected "
                                 f"{count}")
        self.values = table_tensors.foreign(norms.norms, count, place)

    def section(self, rows: Range) -> Range:
        """The positions of the norms of a range of the table's rows."""
        if self.rows is None:
            return 0, self.values.shape[0]
        bounds = torch.tensor(rows, dtype=self.rows.dtype, device=self.rows.device)
        begin, end = torch.searchsorted(self.rows, bounds).tolist()
        return begin, end


def overlap(a: Range, b: Range) -> bool:
    return a[0] < b[1] and b[0] < a[1]
