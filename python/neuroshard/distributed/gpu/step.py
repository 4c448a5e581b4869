"""One step: what arrived from whom, where it lies, and what kernels are told of it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import torch

from neuroshard import cuda
from neuroshard.distributed.gpu.layout import Entry, Layout, Owner
from neuroshard.distributed.gpu.routing import Routed
from neuroshard.distributed.gpu.transport import Arrival
from neuroshard.jagged import Jagged

WORDS = ctypes.sizeof(cuda.Part) // 8


@dataclass
class Sizes:
    """Numbers of the host. batches, counts: by rank, of its bags, and of the ids of each stream
    that it sends to this rank. own: ids of this rank by bucket. feature_begin: of its ids."""

    batches: list[int]
    counts: list[list[int]]
    own: list[int]
    feature_begin: list[int]


@dataclass
class Step:
    """learns: an update may follow. Tensors are kept until then."""

    given: Jagged
    learns: bool
    routed: Routed
    sizes: Sizes
    lengths: Arrival
    ids: Arrival
    weights: Arrival | None
    layout: Layout
    received: Received | None = None

    def __post_init__(self) -> None:
        ends = [0] * self.layout.layers
        self._begins = []
        for bucket, count in zip(self.layout.buckets, self.sizes.own):
            self._begins.append(ends[bucket.layer])
            ends[bucket.layer] += count

    def span_of(self, bucket: int) -> tuple[torch.Tensor | None, int, int]:
        """Where a bucket's ids are: an order of positions, None for the ids as they came, and
        the range in it."""
        one, orders = self.layout.buckets[bucket], self.routed.orders
        if orders is None:
            feature = self.layout.lookups[one.lookup].feature
            begin = self.sizes.feature_begin[feature]
        else:
            begin = self._begins[bucket]
        order = None if orders is None else orders[one.layer]
        return order, begin, begin + self.sizes.own[bucket]

    def positions_of(self, bucket: int) -> torch.Tensor | None:
        """Of a bucket's ids among those of this rank; None: all of its feature."""
        order, begin, end = self.span_of(bucket)
        return None if order is None else order[begin:end]


class Received:
    """What has arrived at this rank: ids by source rank, stream, bag. Kernels read them there."""

    def __init__(self, owner: Owner, layout: Layout, rank: int, step: Step) -> None:
        self.owner, self.layout, self.rank, self.sizes = owner, layout, rank, step.sizes
        self.learns = step.learns
        self.ids = step.ids.wait()
        self.weights = step.weights.wait() if step.weights else None
        lengths = step.lengths.wait()
        self.offsets = torch.zeros(lengths.shape[0] + 1, dtype=torch.int64, device=lengths.device)
        torch.cumsum(lengths, 0, out=self.offsets[1:])
        # By source rank and stream: the first id, and the first length.
        self.first_id: list[list[int]] = []
        self.first_length: list[list[int]] = []
        ids = lengths_before = 0
        for batch, counts in zip(self.sizes.batches, self.sizes.counts):
            self.first_id.append([])
            self.first_length.append([])
            for count in counts:
                self.first_id[-1].append(ids)
                self.first_length[-1].append(lengths_before)
                ids += count
                lengths_before += batch if layout.pooled else 1

    def has(self, source: int, entry: Entry) -> bool:
        """Ids of copies come from other ranks only to be learned from."""
        return entry.stream < len(self.sizes.counts[source])

    def count(self, source: int, entry: Entry) -> int:
        return self.sizes.counts[source][entry.stream]

    def rows(self, source: int, entry: Entry) -> int:
        """Rows of results: bags, or ids."""
        return self.sizes.batches[source] if self.layout.pooled else self.count(source, entry)

    def entries(self) -> list[tuple[Entry, int]]:
        """(entry, source rank) in the order of the parts: a row's gradients are added so."""
        return [(entry, source) for entry in self.owner.entries
                for source in range(len(self.sizes.batches)) if self.has(source, entry)]

    def parts(self, places: Places) -> tuple[torch.Tensor, ctypes.Array]:
        """For cuda.Device.forward; the tensor is their memory."""
        ids, offsets = self.ids.data_ptr(), self.offsets.data_ptr()
        weights = self.weights.data_ptr() if self.weights is not None else 0
        values = []
        for entry, source in self.entries():
            begin = self.first_id[source][entry.stream]
            out, stride = places.of(entry, source)
            pooled = self.layout.pooled
            values.append((
                entry.kernel | 1 << 32, 0, ids,  # exact
                offsets + 8 * self.first_length[source][entry.stream] if pooled else 0, weights,
                begin, begin + self.count(source, entry),
                self.sizes.batches[source] if pooled else 0, 0, out, stride))
        memory = torch.tensor(values, dtype=torch.int64).view(-1, WORDS)
        return memory, (cuda.Part * len(values)).from_address(memory.data_ptr())


class Places:
    """Where the results, or gradients, of this rank's entries lie: for each source rank one
    block of remote = its bags x columns of all entries, or, if not pooled, one per entry."""

    def __init__(self, received: Received) -> None:
        self._received = received
        owner, pooled = received.owner, received.layout.pooled
        ranks = range(len(received.sizes.batches))
        self.width = sum(one.stride for one in owner.remote)
        self.copies_width = sum(one.stride for one in owner.replicated)
        self.counts, self.copy_counts = [], []
        self._begin: dict[tuple[Entry, int], int] = {}
        next_value = 0
        for source in ranks:
            before = next_value
            for entry in owner.remote:
                if pooled:
                    self._begin[entry, source] = before + entry.column
                else:
                    self._begin[entry, source] = next_value
                    next_value += received.count(source, entry) * entry.stride
            if pooled:
                next_value += received.sizes.batches[source] * self.width
            self.counts.append(next_value - before)
        self.total = next_value
        for source in ranks:
            next_value = 0
            for entry in owner.replicated:
                if not received.has(source, entry):
                    break
                self._begin[entry, source] = entry.column if pooled else next_value
                next_value += received.count(source, entry) * entry.stride
            self.copy_counts.append(received.sizes.batches[source] * self.copies_width if pooled
                                    else next_value)
        self.rows = self.copies = 0

    def begin(self, entry: Entry, source: int) -> int:
        """The entry's first value in the array, or in the block, that it is in."""
        return self._begin[entry, source]

    def stride(self, entry: Entry) -> int:
        if not self._received.layout.pooled:
            return entry.stride
        return self.copies_width if entry.replicated else self.width

    def of(self, entry: Entry, source: int) -> tuple[int, int]:
        """The address and stride of results; 0: they are another rank's to compute."""
        if entry.replicated and source != self._received.rank:
            return 0, 0
        array = self.copies if entry.replicated else self.rows
        return (array + 4 * self.begin(entry, source) if array else 0), self.stride(entry)
