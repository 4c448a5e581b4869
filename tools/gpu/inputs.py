"""Ids for the speed measurements, made on the GPU: several sets, so that no set is still in the
cache when its turn comes again."""

from dataclasses import dataclass

import torch

CACHE_BYTES = 256 << 20  # four times the L2 cache of an H200, the largest of these GPUs
MOST_SETS = 32


@dataclass
class InputSet:
    """One batch, feature-major: offsets from 0, [tables * bags + 1]."""

    ids: torch.Tensor
    offsets: torch.Tensor
    gradients: torch.Tensor | None  # f32 [bags, sum of dims]
    out: torch.Tensor  # f32 [bags, sum of dims]


class Ids:
    """Draws ids of a table with `rows` rows."""

    def __init__(self, rows, zipf, place, seed=1):
        self.rows, self.place = rows, place
        self.generator = torch.Generator(place).manual_seed(seed)
        self.cumulative = None
        if zipf:
            shares = torch.arange(1, rows + 1, dtype=torch.float64, device=place) ** -1.05
            self.cumulative = shares.cumsum(0) / shares.sum()

    def draw(self, count):
        if self.cumulative is None:
            return torch.randint(0, self.rows, (count,), device=self.place,
                                 generator=self.generator)
        uniform = torch.rand(count, dtype=torch.float64, device=self.place,
                             generator=self.generator)
        ranks = torch.searchsorted(self.cumulative, uniform).clamp_(max=self.rows - 1)
        # Popular rows are spread over the table.
        return (ranks * 2654435761 + 12345) % self.rows


def number_of_sets(step_bytes, touched, free_bytes):
    """As many sets as touch much more memory than the cache has, within the free memory."""
    wanted = -(-CACHE_BYTES // max(1, touched))
    return int(max(2, min(MOST_SETS, wanted, free_bytes // max(1, step_bytes))))


def touched_bytes(point):
    """Bytes that one set of a point brings into the cache and the next does not need: rows that
    are popular in one are popular in all."""
    rows = min(point.lookups * point.row_bytes, point.table_bytes)
    streamed = point.forward_bytes() - point.lookups * point.dim * point.element_bytes
    return streamed + (rows // 10 if point.zipf else rows)


def make_sets(point, tables, count, place):
    draw = Ids(point.rows, point.zipf, place)
    width = tables * point.dim
    return [InputSet(
        draw.draw(point.lookups),
        torch.arange(tables * point.bags + 1, device=place) * point.ids,
        torch.randn((point.bags, width), device=place),
        torch.empty((point.bags, width), device=place)) for _ in range(count)]


def unique_rows(point, tables, ids):
    """Distinct rows that a set touches, over all tables."""
    per_table = ids.view(tables, -1)
    return sum(int(part.unique().numel()) for part in per_table)


def make_features(features, bags, count, place):
    """Sets of features of different tables, (rows, dim, ids per bag) each, without gradients;
    ids are uniform."""
    sets = []
    for number in range(count):
        ids = [Ids(rows, False, place, seed=number * 1000 + index).draw(bags * pooling)
               for index, (rows, _, pooling) in enumerate(features)]
        lengths = torch.tensor([pooling for _, _, pooling in features], device=place)
        ends = lengths.repeat_interleave(bags).cumsum(0)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64, device=place), ends])
        out = torch.empty((bags, sum(dim for _, dim, _ in features)), device=place)
        sets.append(InputSet(torch.cat(ids), offsets, None, out))
    return sets
