"""Shards of tables: rows, columns, devices, tier, and names for those that have none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from neuroshard import _fields
from neuroshard._vocabulary import CACHE_POLICIES, ROUTES, TIERS

Tier = Literal["hbm", "dram", "ssd"]
CachePolicy = Literal["lru", "lfu"]
Route = Literal["auto", "direct", "relay"]


@dataclass(frozen=True, kw_only=True)
class Shard(_fields.Record):
    """A rectangle of a table and where it lives.

    rows, cols: [begin, end). devices: one owner, or several that each hold a copy. tier:
    "hbm" (device memory), "dram" (the memory of the device's host) or "ssd" (a file on the host's
    disks). cache_rows: of a shard in the last two, how many of its rows device memory has room for,
    a multiple of 32 (0 for target torchrec-1.9, which sizes caches itself). cache_policy: which rows leave when there is no room, those used longest ago
    ("lru") or least often ("lfu"). route: how pooled results
    and their gradients travel between the groups (nodes) of the topology: "direct", by "relay",
    or "auto"; one for all shards of a table. sync_every: of a shard with copies, 0: they apply the same
    sums in each step and keep the same bits; k: each applies the gradients of its own part of the batch,
    and weights and optimizer states are averaged over the copies after each k-th step, which is not
    exact. name: empty when the planner may give one.
    """

    name: str = ""
    table: str
    rows: tuple[int, int]
    cols: tuple[int, int]
    devices: tuple[int, ...]
    tier: Tier = "hbm"
    cache_rows: int = 0
    cache_policy: CachePolicy = "lru"
    route: Route = "auto"
    sync_every: int = 0

    if TYPE_CHECKING:
        def __init__(self, *, name: str = "", table: str, rows: Sequence[int],
                     cols: Sequence[int], devices: int | Iterable[int],
                     tier: Tier = "hbm", cache_rows: int = 0, cache_policy: CachePolicy = "lru",
                     route: Route = "auto", sync_every: int = 0) -> None:
            ...

    def __post_init__(self) -> None:
        self._text("name", "table")
        self._set("rows", _fields.span(self.rows, "Shard.rows"))
        self._set("cols", _fields.span(self.cols, "Shard.cols"))
        self._set("devices", _fields.device_list(self.devices, "Shard.devices"))
        self._choice("tier", TIERS)
        self._whole("cache_rows")
        self._choice("cache_policy", CACHE_POLICIES)
        self._choice("route", ROUTES)
        self._whole("sync_every")

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.cols[1] - self.cols[0]

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return self.rows[1] - self.rows[0]

    @property
    def replicated(self) -> bool:
        """Whether several devices have a copy: all of them of a whole table, or any."""
        return len(self.devices) > 1


def named(shards: tuple[Shard, ...]) -> tuple[Shard, ...]:
    """The shards, those without a name named table_0, table_1, ..."""
    taken = {shard.name for shard in shards}
    counts: dict[str, int] = {}
    result = []
    for shard in shards:
        while not shard.name:
            index = counts.get(shard.table, 0)
            counts[shard.table] = index + 1
            if f"{shard.table}_{index}" not in taken:
                shard = shard.replace(name=f"{shard.table}_{index}")
        result.append(shard)
    return tuple(result)


def shard_of_plain(plain: dict[str, Any]) -> Shard:
    return Shard(**plain)
