"""Routes ids to the ranks that own their rows, on the device and without waiting for it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from neuroshard.distributed._gpu.layout import Layout
from neuroshard.errors import TensorError
from neuroshard._jagged import Jagged

# The state of a rank's ids, sent in the header.
RIGHT, BAD_OFFSETS, BAD_ID, FAILED = range(4)


@dataclass(frozen=True)
class Routed:
    """Ids by bucket. lengths: [buckets, batch] ids of each bag in each bucket. totals: [buckets].
    orders: for each layer the positions of the ids, sorted by bucket and then ascending; None: ids
    stay in place, since each bucket is a whole feature. feature_begin: [features + 1]. code,
    place: the kind and position of the first error, scalars."""

    batch: int
    lengths: torch.Tensor
    totals: torch.Tensor
    orders: list[torch.Tensor] | None
    feature_begin: torch.Tensor
    code: torch.Tensor
    place: torch.Tensor


class Router:
    """Sorts ids by bucket, with a copy of the layout's bounds on the device."""

    def __init__(self, layout: Layout, place: torch.device) -> None:
        self.layout, self.place = layout, place

        def on_device(values: list[int]) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.int64, device=place)

        features = len(layout.features)
        # Keys are (feature << shift) + id, ascending by feature and then by id.
        self.shift = max((rows.bit_length() for rows in layout.rows_of_lookup), default=1) + 1
        rows = [0] * features
        self.lookups_of = [[] for _ in range(features)]
        for number, lookup in enumerate(layout.lookups):
            self.lookups_of[lookup.feature].append(number)
            least = rows[lookup.feature] or layout.rows_of_lookup[number]
            rows[lookup.feature] = min(least, layout.rows_of_lookup[number])
        if any(len(found) != 1 for found in self.lookups_of):
            raise TensorError("expected one lookup for each feature of the artifact")
        self.rows = on_device(rows)
        self.feature_of_bucket = on_device([layout.lookups[one.lookup].feature
                                            for one in layout.buckets])
        self.layer_bounds = [self._bounds(layer, on_device) for layer in range(layout.layers)]

    def _bounds(self, layer: int, on_device) -> tuple[torch.Tensor, torch.Tensor]:
        """The first keys of a layer's buckets, and the bucket from each on; after a bucket's last
        key begins the bucket `none`."""
        none = len(self.layout.buckets)
        bounds = {}
        for number, bucket in enumerate(self.layout.buckets):
            if bucket.layer != layer:
                continue
            base = self.layout.lookups[bucket.lookup].feature << self.shift
            bounds.setdefault(base + bucket.rows[1], none)
            bounds[base + bucket.rows[0]] = number
        starts = sorted(bounds)
        buckets = on_device([none, *(bounds[start] for start in starts)])
        return on_device(starts), buckets.to(torch.int32)  # fewer bits to sort by

    def route(self, given: Jagged) -> Routed:
        """given: ids, offsets. Wrong values raise nothing here; `code` reports them."""
        features = len(self.layout.features)
        batch = (given.offsets.shape[0] - 1) // features
        ids, offsets, count = given.ids, given.offsets, given.ids.shape[0]
        positions = torch.arange(count, device=self.place)
        bags = torch.searchsorted(offsets, positions, right=True) - 1
        bags.clamp_(0, max(features * batch - 1, 0))
        feature = torch.div(bags, max(batch, 1), rounding_mode="floor")
        bad = (ids < 0) | (ids >= self.rows[feature])
        code, place = self._judge(offsets, bad, count, positions)
        begin = offsets[torch.arange(features + 1, device=self.place) * batch]
        lengths = offsets.diff().view(features, batch)
        if not self.layout.sifted:
            lengths = lengths.index_select(0, self.feature_of_bucket)
            return Routed(batch, lengths, lengths.sum(1), None, begin, code, place)
        keys = [self._keys(layer, ids, feature) for layer in range(self.layout.layers)]
        lengths = self._count(keys, bags - feature * batch, batch)
        orders = [torch.sort(key, stable=True).indices for key in keys]
        return Routed(batch, lengths, lengths.sum(1), orders, begin, code, place)

    def _keys(self, layer: int, ids: torch.Tensor, feature: torch.Tensor) -> torch.Tensor:
        """The bucket of each id; the number of buckets stands for none."""
        starts, buckets = self.layer_bounds[layer]
        within = ids.long().clamp(0, (1 << self.shift) - 1)
        return buckets[torch.searchsorted(starts, (feature << self.shift) + within, right=True)]

    def _count(self, keys: list[torch.Tensor], bag: torch.Tensor, batch: int) -> torch.Tensor:
        # Wrong offsets may say that there are ids but no bags.
        buckets, stride = len(self.layout.buckets), max(batch, 1)
        counts = torch.zeros((buckets + 1) * stride, dtype=torch.int64, device=self.place)
        for key in keys:
            counts.scatter_add_(0, key.long() * stride + bag, torch.ones_like(bag))
        return counts.view(buckets + 1, stride)[:buckets, :batch]

    def _judge(self, offsets: torch.Tensor, bad: torch.Tensor, count: int,
               positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wrong = (offsets[0] != 0) | (offsets[-1] != count) | (offsets.diff() < 0).any()
        if count == 0:
            return wrong.long() * BAD_OFFSETS, torch.zeros_like(offsets[0])
        first = torch.where(bad, positions, count).min()
        code = torch.where(wrong, BAD_OFFSETS, (first < count).long() * BAD_ID)
        return code, first

    def explain(self, given: Jagged, code: int, place: int) -> str:
        """The error's text, the same as the CPU runtime's. Waits for the device."""
        offsets = given.offsets.tolist()
        if code == BAD_OFFSETS:
            return offsets_message(offsets, given.ids.shape[0])
        features = len(self.layout.features)
        batch = (len(offsets) - 1) // features
        # The last bag that begins at or before the id: empty bags may begin there too.
        bag = max(one for one in range(features * batch) if offsets[one] <= place)
        lookup = self.lookups_of[bag // batch][0]
        return (f"feature \"{self.layout.features[bag // batch]}\", bag {bag % batch}, "
                f"position {place - offsets[bag]} (id {place} of the input): "
                f"id {int(given.ids[place])} is out of range for table "
                f"\"{self.layout.tables[self.layout.lookups[lookup].table]}\" with "
                f"{self.layout.rows_of_lookup[lookup]} rows")


def offsets_message(offsets: list[int], count: int) -> str:
    if offsets[0] != 0:
        return f"offsets must start at 0, found {offsets[0]}"
    for index, (one, following) in enumerate(zip(offsets, offsets[1:])):
        if following < one:
            return (f"offsets must not decrease: offset {index} is {one}, the next "
                    f"{following}")
    return f"the last offset must be the number of ids {count}, found {offsets[-1]}"
