"""Adds up the partial results of shards, and hands gradients to the shards in the same way."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuroshard._dtypes import DTYPES
from neuroshard._row_layout import padded
from neuroshard.distributed._gpu.layout import F32_BYTES, Entry, Layout, Result
from neuroshard.distributed._gpu.step_state import Places, Sizes, Step


class Home:
    """The rows of partial results that this rank's batch has on each rank: for rank r either
    [batch, columns of all its entries], or, if not pooled, a block per entry."""

    def __init__(self, layout: Layout, sizes: Sizes, batch: int) -> None:
        self.layout, self.batch = layout, batch
        self.counts: list[int] = []
        self._block: dict[tuple[int, Entry], tuple[int, int]] = {}  # first value, rows
        self.begins: list[int] = []
        self.widths = [sum(entry.stride for entry in owner.remote) for owner in layout.owners]
        next_value = 0
        for rank, owner in enumerate(layout.owners):
            self.begins.append(next_value)
            if layout.pooled:
                next_value += batch * self.widths[rank]
            else:
                for entry in owner.remote:
                    rows = sizes.own[owner.streams[entry.stream]]
                    self._block[rank, entry] = next_value, rows
                    next_value += rows * entry.stride
            self.counts.append(next_value - self.begins[-1])
        self.total = next_value

    def view(self, values: torch.Tensor, rank: int, entry: Entry) -> torch.Tensor:
        """[rows, columns of the entry] within all values."""
        if self.layout.pooled:
            block = self.block(values, rank)
            return block[:, entry.column:entry.column + entry.width]
        begin, rows = self._block[rank, entry]
        block = values[begin:begin + rows * entry.stride].view(rows, entry.stride)
        return block[:, :entry.width]

    def block(self, values: torch.Tensor, rank: int) -> torch.Tensor:
        begin = self.begins[rank]
        return values[begin:begin + self.counts[rank]].view(self.batch, self.widths[rank])


def bag_counts(step: Step, result: Result) -> torch.Tensor:
    """[batch, 1]: ids of each bag of the lookup's feature, by which a mean divides; 1 for empty
    bags, whose sum is zero."""
    batch, feature = step.routed.batch, result.lookup.feature
    offsets = step.given.offsets[feature * batch:(feature + 1) * batch + 1]
    return offsets.diff().clamp_(min=1).to(torch.float32).unsqueeze(1)


class Assembler:
    """Assembles results: puts columns side by side, adds row shards in rank order, divides means
    and rounds once."""

    def __init__(self, layout: Layout, step: Step, home: Home, places: Places, rank: int) -> None:
        self.layout, self.step, self.home, self.places = layout, step, home, places
        self.rank = rank
        # The entries of replicated tables, by lookup.
        self.copies = {one.lookup: (number, one) for number, one in
                       enumerate(layout.owners[rank].entries) if one.replicated}

    def results(self, remote: torch.Tensor, copies: torch.Tensor) -> list[torch.Tensor]:
        return [self._result(number, remote, copies).to(DTYPES[result.lookup.result_type])
                for number, result in enumerate(self.layout.results)]

    def _result(self, number: int, remote: torch.Tensor, copies: torch.Tensor) -> torch.Tensor:
        result = self.layout.results[number]
        if result.replicated:
            return self._copied(number, copies).contiguous()
        if not self.layout.pooled:
            return self._unpooled(result, remote)
        segments = []
        for segment in result.segments:
            total = None
            for rank, entry in segment.addends:
                first = segment.cols[0] - entry.cols[0]
                part = self.home.view(remote, rank, entry)
                part = part[:, first:first + segment.cols[1] - segment.cols[0]]
                total = part.float() if total is None else total + part
            if segment.addends[0][1].divided:
                total = total / bag_counts(self.step, result)
            segments.append(total)
        return torch.cat(segments, 1)

    def _copied(self, lookup: int, values: torch.Tensor) -> torch.Tensor:
        """[rows, columns] of a replicated table within the values of all."""
        number, entry = self.copies[lookup]
        stride = int(self.places.stride[number])
        begin = int(self.places.begin[number, self.rank])
        rows = int(self.step.received.rows[number, self.rank])
        if self.layout.pooled:
            return values.view(rows, stride)[:, begin:begin + entry.width]
        return values[begin:begin + rows * stride].view(rows, stride)[:, :entry.width]

    def _unpooled(self, result: Result, remote: torch.Tensor) -> torch.Tensor:
        begin, end = self._ids(result.lookup.feature)
        whole = remote.new_empty((end - begin, result.lookup.dim), dtype=torch.float32)
        for rank, entry in result.addends:
            part = self.home.view(remote, rank, entry).float()
            target = whole[:, entry.cols[0]:entry.cols[1]]
            positions = self.step.positions_of(self._bucket(rank, entry))
            if positions is None:
                target.copy_(part)
            else:
                target[positions - begin] = part
        return whole

    def _ids(self, feature: int) -> tuple[int, int]:
        begin = self.step.sizes.feature_begin
        return begin[feature], begin[feature + 1]

    def _bucket(self, rank: int, entry: Entry) -> int:
        return self.layout.owners[rank].streams[entry.stream]

    # Gradients, the other way

    def gradients(self, given: Sequence[torch.Tensor],
                  scale: float) -> tuple[torch.Tensor, torch.Tensor]:
        """The f32 gradients of (the partial results of all ranks, the results of replicated
        tables)."""
        rows = [gradient.float() if scale == 1 else gradient.float() * scale
                for gradient in given]
        divided = {lookup: rows[lookup] / bag_counts(self.step, self.layout.results[lookup])
                   for lookup in {entry.lookup for owner in self.layout.owners
                                  for entry in owner.entries if entry.divided}}
        device = self.step.given.ids.device
        remote = torch.empty(self.home.total, dtype=torch.float32, device=device)
        for rank, owner in enumerate(self.layout.owners):
            if self.layout.pooled:
                pieces = [fill_up((divided if entry.divided else rows)[entry.lookup]
                                  [:, entry.cols[0]:entry.cols[1]])
                          for entry in in_columns(owner.remote)]
                if pieces:
                    torch.cat(pieces, 1, out=self.home.block(remote, rank))
                continue
            for entry in owner.remote:
                self._spread(rows[entry.lookup], rank, entry, self.home.view(remote, rank, entry))
        copies = torch.empty(self.places.copy_counts[self.rank], dtype=torch.float32,
                             device=device)
        for lookup in self.copies:
            self._copied(lookup, copies).copy_(rows[lookup])
        return remote, copies

    def _spread(self, rows: torch.Tensor, rank: int, entry: Entry, target: torch.Tensor) -> None:
        begin, _ = self._ids(self.layout.lookups[entry.lookup].feature)
        positions = self.step.positions_of(self._bucket(rank, entry))
        rows = rows if positions is None else rows[positions - begin]
        target.copy_(rows[:, entry.cols[0]:entry.cols[1]])


def in_columns(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry.column)


def fill_up(piece: torch.Tensor) -> torch.Tensor:
    """Pads columns with zeros to a multiple of 16 bytes."""
    missing = padded(piece.shape[1], F32_BYTES) - piece.shape[1]
    return torch.nn.functional.pad(piece, (0, missing)) if missing else piece
