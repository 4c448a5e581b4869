"""The layout of exchanges, read from the manifest; it is the same on every rank.

A bucket holds the ids of one lookup that fall into one range of rows. It is sent as a stream to
each rank that holds columns of these rows; for a replicated table to every rank, since each copy is
updated with all ids. An entry is a lookup on one slot of a rank. Pooled results of an entry are
columns of the rows that its rank sends to the rank of each sample; others are a block of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from neuroshard._manifest import Manifest
from neuroshard._row_layout import padded
from neuroshard.errors import TensorError

F32_BYTES = 4

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
    """kernel: number of the lookup on its rank. column: first column in the rows of results, a
    multiple of 16 bytes; unpooled entries are numbered as if all had one batch. divided: whether
    it is part of a mean over row shards, which is divided after the sum; kernels divide other
    means themselves."""

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
        """Columns, padded to a multiple of 16 bytes."""
        return padded(self.width, F32_BYTES)


@dataclass(frozen=True)
class Owner:
    """The lookups of one rank. streams: the buckets it receives, those of replicated tables last.
    own_streams: how many are not of replicated tables."""

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
    """Columns of a result, and the (rank, entry) whose rows are added up there in this order."""

    cols: Range
    addends: tuple[tuple[int, Entry], ...]


@dataclass(frozen=True)
class Result:
    """The result of one lookup: segments side by side, or the rows of this rank's copy of the
    table."""

    lookup: Lookup
    segments: tuple[Segment, ...]
    replicated: bool

    @property
    def addends(self) -> tuple[tuple[int, Entry], ...]:
        """The (rank, entry) of all segments, each once, in the order of addition."""
        return tuple(dict.fromkeys(one for segment in self.segments for one in segment.addends))


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
        """Whether some bucket has only a part of its feature's ids."""
        return any(not self.is_whole(bucket) for bucket in self.buckets)

    def is_whole(self, bucket: Bucket) -> bool:
        return bucket.rows == (0, self.rows_of_lookup[bucket.lookup])

    @property
    def layers(self) -> int:
        return 1 + max((bucket.layer for bucket in self.buckets), default=0)


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
    layout = plain["layout"][0]
    buckets = tuple(Bucket(one["lookup"], tuple(one["rows"]), one["layer"])
                    for one in layout["buckets"])
    owners = tuple(read_owner(one) for one in layout["devices"])
    tables = tuple(one["name"] for one in plain["tables"])
    results = tuple(read_result(lookup, one, owners)
                    for lookup, one in zip(lookups, layout["results"], strict=True))
    return Layout(tuple(exchange["features"]), pooled == {True},
                  exchange["weighted"], lookups, rows, tables, buckets, owners, results)


def read_owner(plain: dict) -> Owner:
    entries = tuple(Entry(one["kernel"], one["slot"], one["lookup"], one["stream"],
                          tuple(one["cols"]), one["padded_column"], one["replicated"],
                          one["divided"])
                    for one in plain["entries"])
    return Owner(tuple(plain["streams"]), plain["own_streams"], entries)


def read_result(lookup: Lookup, plain: dict, owners: tuple[Owner, ...]) -> Result:
    segments = tuple(
        Segment(tuple(one["cols"]),
                tuple((rank, owners[rank].entries[entry]) for rank, entry in one["parts"]))
        for one in plain["segments"])
    return Result(lookup, segments, plain["replicated"])
