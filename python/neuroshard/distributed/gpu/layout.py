"""Who sends what to whom: all that follows from the manifest alone, equal on every rank.

A bucket holds the ids of one lookup that fall into one range of rows. It goes as a stream to
each rank that has columns of these rows, or, for a replicated table, to every rank: copies of
a table learn from all ids. An entry is a lookup on one slot of a rank; its results are columns
of the rows that the rank sends to every bag's home, or a block of its own if it is not pooled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from neuroshard.distributed.shards import Manifest
from neuroshard.errors import TensorError

ALIGNED = 4  # f32 values of 16 bytes, which kernels store at a time

Range = tuple[int, int]


@dataclass(frozen=True)
class Lookup:
    feature: int
    table: int
    mean: bool
    dim: int
    result_type: str


@dataclass(frozen=True)
class Bucket:
    """layer: buckets of one layer have no id in common."""

    lookup: int
    rows: Range
    layer: int


@dataclass(frozen=True)
class Entry:
    """kernel: number of the lookup on its rank. column: of the rows of results, where unpooled
    entries count as of one batch; each begins at a multiple of 16 bytes. divided: part of a mean
    over shards of rows, which is divided after the sum; kernels divide other means themselves."""

    kernel: int
    slot: int
    lookup: int
    stream: int
    cols: Range
    column: int
    replicated: bool
    divided: bool

    @property
    def width(self) -> int:
        return self.cols[1] - self.cols[0]

    @property
    def stride(self) -> int:
        """Columns with those that fill up to 16 bytes."""
        return padded(self.width)


@dataclass(frozen=True)
class Owner:
    """What one rank looks up. streams: buckets, those of replicated tables last."""

    streams: tuple[int, ...]
    own_streams: int
    entries: tuple[Entry, ...]

    @property
    def remote(self) -> tuple[Entry, ...]:
        return tuple(one for one in self.entries if not one.replicated)

    @property
    def replicated(self) -> tuple[Entry, ...]:
        return tuple(one for one in self.entries if one.replicated)


@dataclass(frozen=True)
class Segment:
    """Columns of a result, and the (rank, entry) whose rows are added up there, in order."""

    cols: Range
    pieces: tuple[tuple[int, Entry], ...]


@dataclass(frozen=True)
class Result:
    """Of one lookup: segments side by side, or the rows of this rank's copy of the table."""

    lookup: Lookup
    segments: tuple[Segment, ...]
    replicated: bool

    @property
    def pieces(self) -> tuple[tuple[int, Entry], ...]:
        """Each once, in the order in which they are added."""
        return tuple(dict.fromkeys(one for segment in self.segments for one in segment.pieces))


@dataclass(frozen=True)
class Layout:
    features: tuple[str, ...]
    pooled: bool
    weighted: bool
    lookups: tuple[Lookup, ...]
    rows_of_lookup: tuple[int, ...]
    tables: tuple[str, ...]
    buckets: tuple[Bucket, ...]
    owners: tuple[Owner, ...]
    results: tuple[Result, ...]

    @property
    def ranks(self) -> int:
        return len(self.owners)

    @property
    def sifted(self) -> bool:
        """Whether some bucket takes but some of its feature's ids."""
        return any(not self.is_whole(bucket) for bucket in self.buckets)

    def is_whole(self, bucket: Bucket) -> bool:
        return bucket.rows == (0, self.rows_of_lookup[bucket.lookup])

    @property
    def layers(self) -> int:
        return 1 + max((bucket.layer for bucket in self.buckets), default=0)


def padded(columns: int) -> int:
    return -(-columns // ALIGNED) * ALIGNED


def make_layout(manifest: Manifest) -> Layout:
    plain = manifest.plain
    if len(plain["exchanges"]) != 1:
        raise TensorError(f"the artifact has {len(plain['exchanges'])} inputs of ids; expected one")
    exchange = manifest.exchange
    lookups = tuple(Lookup(one["feature"], one["table"], one["pooling"] == "mean",
                           manifest.table(one["table"])["dim"], one["result_type"])
                    for one in exchange["lookups"])
    pooled = {one["pooling"] != "none" for one in exchange["lookups"]}
    if len(pooled) > 1:
        raise TensorError("some lookups of the artifact are pooled and some are not; expected "
                          "one kind in a collection")
    padding = [one for one in exchange["lookups"] if one["padding_idx"] is not None]
    if padding:
        feature = exchange["features"][padding[0]["feature"]]
        raise TensorError(f"feature \"{feature}\" has a padding_idx, which cannot be run on GPUs: "
                          "leave such ids out of the bags")
    if any(one["weighted"] != exchange["weighted"] for one in exchange["lookups"]):
        raise TensorError("some lookups of the artifact are weighted and some are not; expected "
                          "one kind in a collection")
    rows = tuple(manifest.table(one.table)["rows"] for one in lookups)
    buckets = make_buckets(plain, lookups)
    owners = tuple(make_owner(plain, rank, buckets, lookups)
                   for rank in range(plain["devices"]))
    tables = tuple(one["name"] for one in plain["tables"])
    results = tuple(make_result(number, lookup, owners, buckets)
                    for number, lookup in enumerate(lookups))
    return Layout(tuple(exchange["features"]), pooled == {True},
                  exchange["weighted"], lookups, rows, tables, buckets, owners, results)


def make_buckets(plain: dict, lookups: Iterable[Lookup]) -> tuple[Bucket, ...]:
    result = []
    for number, lookup in enumerate(lookups):
        ranges = {tuple(shard["rows"]) for shard in plain["shards"]
                  if shard["table"] == lookup.table}
        ends: list[int] = []  # of the last range of each layer
        for begin, end in sorted(ranges):
            layer = next((one for one, last in enumerate(ends) if last <= begin), len(ends))
            ends[layer:layer + 1] = [end]
            result.append(Bucket(number, (begin, end), layer))
    return tuple(result)


def make_owner(plain: dict, rank: int, buckets: tuple[Bucket, ...],
               lookups: tuple[Lookup, ...]) -> Owner:
    """Entries by lookup: a row's gradients are added in this order."""
    binding = plain["bindings"][rank]
    bound = []
    for kernel, (_, lookup, slot) in enumerate(binding["lookups"]):
        shard = plain["shards"][binding["slots"][slot]]
        bucket = next(number for number, one in enumerate(buckets)
                      if one.lookup == lookup and one.rows == tuple(shard["rows"]))
        # One of one is not a copy.
        bound.append((kernel, slot, lookup, bucket, shard, len(shard["devices"]) > 1))
    # The same order on every rank, so that copies have their columns at the same places.
    bound.sort(key=lambda one: one[2])
    own = dict.fromkeys(one[3] for one in bound if not one[5])
    copies = sorted({one[3] for one in bound if one[5]})
    streams = [*own, *copies]
    entries, next_column = [], {False: 0, True: 0}
    for kernel, slot, lookup, bucket, shard, copied in bound:
        whole = tuple(shard["rows"]) == (0, plain["tables"][shard["table"]]["rows"])
        entry = Entry(kernel, slot, lookup, streams.index(bucket), tuple(shard["cols"]),
                      next_column[copied], copied, lookups[lookup].mean and not whole)
        next_column[copied] += entry.stride
        entries.append(entry)
    return Owner(tuple(streams), len(own), tuple(entries))


def make_result(number: int, lookup: Lookup, owners: tuple[Owner, ...],
                buckets: tuple[Bucket, ...]) -> Result:
    """Pieces by rank, then row, then column; columns cut wherever a piece begins or ends."""
    found = [(rank, entry) for rank, owner in enumerate(owners) for entry in owner.entries
             if entry.lookup == number]
    if any(entry.replicated for _, entry in found):
        return Result(lookup, (), True)

    def rows_of(piece: tuple[int, Entry]) -> Range:
        rank, entry = piece
        return buckets[owners[rank].streams[entry.stream]].rows

    found.sort(key=lambda piece: (piece[0], rows_of(piece), piece[1].cols))
    cuts = sorted({cut for _, entry in found for cut in entry.cols})
    segments = tuple(
        Segment((begin, end), tuple(piece for piece in found
                                    if piece[1].cols[0] < end and begin < piece[1].cols[1]))
        for begin, end in pairwise(cuts))
    return Result(lookup, segments, False)
