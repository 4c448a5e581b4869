"""The state of one step on a rank: the ids that arrived, and the arguments of kernels.

Arrays by entry and source rank are host tensors, since a step may have thousands of parts."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import torch

from neuroshard import cuda
from neuroshard.distributed._gpu.layout import Layout, Owner
from neuroshard.distributed._gpu.routing import Routed
from neuroshard.distributed._gpu.transport import Arrival
from neuroshard._jagged import Jagged

PART_WORDS = ctypes.sizeof(cuda.Part) // 8
GRADIENT_WORDS = ctypes.sizeof(cuda.Gradient) // 8


@dataclass
class Sizes:
    """Counts on the host. batches: bags of each rank. counts: by rank, the ids in each stream that
    it sends to this rank. own: this rank's ids by bucket. feature_begin: where each feature's ids
    begin on this rank."""

    batches: list[int]
    counts: list[list[int]]
    own: list[int]
    feature_begin: list[int]


@dataclass
class Step:
    """learns: whether an update may follow; tensors are kept for it."""

    layout: Layout
    given: Jagged
    learns: bool
    routed: Routed
    sizes: Sizes
    lengths: Arrival | None = None
    ids: Arrival | None = None
    weights: Arrival | None = None
    received: Received | None = None

    def __post_init__(self) -> None:
        ends = [0] * self.layout.layers
        self._begins = []
        for bucket, count in zip(self.layout.buckets, self.sizes.own):
            self._begins.append(ends[bucket.layer])
            ends[bucket.layer] += count

    def span_of(self, bucket: int) -> tuple[torch.Tensor | None, int, int]:
        """(order, begin, end): a bucket's ids are at positions order[begin:end]; order None: at
        begin to end themselves."""
        one, orders = self.layout.buckets[bucket], self.routed.orders
        if orders is None:
            begin = self.sizes.feature_begin[self.layout.lookups[one.lookup].feature]
            return None, begin, begin + self.sizes.own[bucket]
        begin = self._begins[bucket]
        return orders[one.layer], begin, begin + self.sizes.own[bucket]

    def positions_of(self, bucket: int) -> torch.Tensor | None:
        """The positions of a bucket's ids among this rank's ids; None: all ids of its feature."""
        order, begin, end = self.span_of(bucket)
        return None if order is None else order[begin:end]


class Table:
    """A rank's entries as arrays, [entries, 1]."""

    def __init__(self, owner: Owner) -> None:
        def array(values: list[int]) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.int64).view(-1, 1)

        self.kernel = array([one.kernel for one in owner.entries])
        self.stream = array([one.stream for one in owner.entries]).flatten()
        self.stride = array([one.stride for one in owner.entries])
        self.column = array([one.column for one in owner.entries])
        self.slot = array([one.slot for one in owner.entries]).flatten()
        self.replicated = array([one.replicated for one in owner.entries]).bool()
        self.width = int(self.stride[~self.replicated].sum())
        self.copies_width = int(self.stride[self.replicated].sum())


class Received:
    """The ids that arrived at this rank, by source rank, stream and bag. Kernels read them there.

    count, first, first_length: [entries, ranks], the number of an entry's ids from a source rank,
    and where they and their lengths begin. sent: false for ids of replicated tables that other
    ranks do not send. parts: those that were sent, by entry and then by source, the order in which
    a row's gradients are added."""

    def __init__(self, table: Table, pooled: bool, rank: int, step: Step) -> None:
        self.table, self.pooled, self.rank, self.sizes = table, pooled, rank, step.sizes
        self.ids = step.ids.wait()
        self.weights = step.weights.wait() if step.weights else None
        lengths = step.lengths.wait()
        self.offsets = torch.zeros(lengths.shape[0] + 1, dtype=torch.int64, device=lengths.device)
        torch.cumsum(lengths, 0, out=self.offsets[1:])
        most = max(map(len, self.sizes.counts))
        counts = torch.tensor([[*one, *[0] * (most - len(one))] for one in self.sizes.counts],
                              dtype=torch.int64).view(len(self.sizes.counts), most)
        sent = torch.tensor([[at < len(one) for at in range(most)] for one in self.sizes.counts],
                            dtype=torch.bool).view(counts.shape)
        self.batches = torch.tensor(self.sizes.batches, dtype=torch.int64)
        lengths_of = sent * (self.batches.view(-1, 1) if pooled else 1)
        self.count, self.first, self.first_length, self.sent = (
            one.t()[table.stream] for one in (counts, begins(counts), begins(lengths_of), sent))

    @property
    def rows(self) -> torch.Tensor:
        """[entries, ranks] rows of results: bags, or ids."""
        return self.batches.expand(self.count.shape) if self.pooled else self.count

    def parts(self, out: torch.Tensor, stride: torch.Tensor) -> tuple[torch.Tensor, ctypes.Array]:
        """The parts for cuda.Device.forward, and the tensor that holds them. out: addresses of the
        results, [entries, ranks]; 0: not computed. stride: [entries, 1]."""
        words = torch.zeros((*self.count.shape, PART_WORDS), dtype=torch.int64)
        words[..., 0] = self.table.kernel | 1 << 32  # exact
        words[..., 2] = self.ids.data_ptr()
        if self.pooled:
            words[..., 3] = self.first_length * 8 + self.offsets.data_ptr()
            words[..., 7] = self.batches
        words[..., 4] = self.weights.data_ptr() if self.weights is not None else 0
        words[..., 5] = self.first
        words[..., 6] = self.first + self.count
        words[..., 9] = out
        words[..., 10] = stride
        memory = words[self.sent]
        return memory, (cuda.Part * len(memory)).from_address(memory.data_ptr())

    def gradients(self, address: torch.Tensor, stride: torch.Tensor,
                  of_weights: torch.Tensor | None) -> tuple[torch.Tensor, ctypes.Array]:
        """The gradients for cuda.Device.backward, and the tensor that holds them."""
        words = torch.zeros((*self.count.shape, GRADIENT_WORDS), dtype=torch.int64)
        words[..., 0] = address
        words[..., 1] = stride
        if of_weights is not None:
            words[..., 2] = of_weights
        memory = words[self.sent]
        return memory, (cuda.Gradient * len(memory)).from_address(memory.data_ptr())


def begins(counts: torch.Tensor) -> torch.Tensor:
    """The first position of each of consecutive runs of these lengths."""
    return (counts.flatten().cumsum(0) - counts.flatten()).view(counts.shape)


class Places:
    """The positions of the results, or gradients, of this rank's entries, counted in values. For
    each source rank there is a block [its bags, columns of all entries], or a block for each entry
    if they are not pooled. Replicated tables have an array of their own, in which each source rank
    begins at the same place.

    begin: [entries, ranks]. counts, copy_counts: values by source rank."""

    def __init__(self, received: Received) -> None:
        table, self.replicated = received.table, received.table.replicated
        rows = received.rows * received.sent
        if received.pooled:
            sizes = received.batches * table.width
            self.begin = table.column + torch.where(self.replicated, 0, begins(sizes))
            self.stride = torch.where(self.replicated, table.copies_width, table.width)
            self.counts = sizes.tolist()
            self.copy_counts = (received.batches * table.copies_width).tolist()
            return
        values = rows * table.stride
        own, copies = values * ~self.replicated, values * self.replicated
        self.begin = torch.where(self.replicated, copies.cumsum(0) - copies, begins(own.t()).t())
        self.stride = table.stride
        self.counts, self.copy_counts = own.sum(0).tolist(), copies.sum(0).tolist()

    def addresses(self, rows: torch.Tensor, copies: torch.Tensor, rank: int) -> torch.Tensor:
        """Addresses of results. Each rank computes those of replicated tables for its own bags."""
        mine = torch.arange(self.begin.shape[1]) == rank
        array = torch.where(self.replicated, copies.data_ptr() * mine, rows.data_ptr())
        return (array + 4 * self.begin) * (array != 0)
