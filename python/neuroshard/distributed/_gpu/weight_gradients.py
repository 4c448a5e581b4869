"""Gradients of sample weights: kernels compute a value per id on the rank of its row, and the rank
of the sample adds up the values of all column shards."""

from __future__ import annotations

import torch

from neuroshard.distributed._gpu.layout import Entry, Layout
from neuroshard.distributed._gpu.step_state import Step, begins
from neuroshard.distributed._gpu.transport import Transport


class WeightGradients:
    """The gradients of one step's sample weights, sorted by rank, entry and id."""

    def __init__(self, layout: Layout, step: Step, rank: int) -> None:
        self.layout, self.step, self.rank = layout, step, rank
        received = step.received
        # Each rank computes the values of replicated tables for its own ids alone.
        goes = received.sent & (~received.table.replicated
                                | (torch.arange(layout.ranks) == rank))
        counts = received.count * goes
        self.counts = counts.sum(0).tolist()
        self.values = torch.zeros(sum(self.counts), dtype=torch.float32,
                                  device=received.ids.device)
        # Kernels count from the first of all ids; 0: not computed.
        begin = begins(counts.t()).t() - received.first
        self.addresses = (self.values.data_ptr() + 4 * begin) * (counts > 0)

    def finish(self, transport: Transport, scale: float) -> torch.Tensor:
        """One value per id of this rank. They are not scaled, as weights belong to the rank."""
        total = torch.zeros(self.step.given.ids.shape[0], dtype=torch.float32,
                            device=self.values.device)
        pieces = []  # (rank, entry) in the order in which their values arrive
        receive_counts = []
        for rank, owner in enumerate(self.layout.owners):
            found = [entry for entry in owner.entries if rank == self.rank or not entry.replicated]
            pieces += [(rank, entry) for entry in found]
            receive_counts.append(sum(self._own(rank, entry) for entry in found))
        arrived = transport.swap(self.values, self.counts, receive_counts).wait()
        next_value = 0
        for rank, entry in pieces:
            count = self._own(rank, entry)
            part = arrived[next_value:next_value + count]
            order, begin, end = self.step.span_of(self._bucket(rank, entry))
            total[slice(begin, end) if order is None else order[begin:end]] += part
            next_value += count
        return total if scale == 1 else total / scale

    def _own(self, rank: int, entry: Entry) -> int:
        return self.step.sizes.own[self._bucket(rank, entry)]

    def _bucket(self, rank: int, entry: Entry) -> int:
        return self.layout.owners[rank].streams[entry.stream]
