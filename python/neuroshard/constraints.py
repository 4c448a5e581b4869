"""Constraints on plans: devices, co-location, kinds of cuts, reserves, fixed shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from neuroshard import _fields
from neuroshard._vocabulary import KINDS
from neuroshard.shards import Shard, named, shard_of_plain

Kind = Literal["table_wise", "column_wise", "row_wise", "table_row_wise", "row_column",
               "replicated"]
LowerTier = Literal["dram", "ssd"]
LOWER_TIERS = ("dram", "ssd")


@dataclass(frozen=True)
class Place(_fields.Record):
    """A table and some devices; one device number stands for a list of one."""

    table: str
    devices: tuple[int, ...]

    if TYPE_CHECKING:
        def __init__(self, table: str, devices: int | Iterable[int]) -> None:
            ...

    def __post_init__(self) -> None:
        self._text("table")
        self._set("devices", _fields.device_list(self.devices, "Place.devices"))


@dataclass(frozen=True)
class TableRule(_fields.Record):
    """What one table allows. allowed_kinds: empty for every kind. min_width: the smallest
    number of columns of a shard, unless the table has fewer. cache_share: of a table that shall lie
    below device memory: for which share of its rows its caches have room, up to 1; 0: the table is
    in device memory. tier: where such a table lies, "dram" (host memory of GPUs) or "ssd" (disk);
    None: "dram" where all devices are GPUs, else "ssd". sync_every: if k > 0, copies that a plan makes of
    the table drift and are averaged after every k steps, as those of TorchRec's DMPCollection: not
    exact (Shard.sync_every)."""

    table: str
    allowed_kinds: tuple[Kind, ...] = ()
    min_width: int = 1
    cache_share: float = 0.0
    tier: LowerTier | None = None
    sync_every: int = 0

    if TYPE_CHECKING:
        def __init__(self, table: str, allowed_kinds: Iterable[Kind] = (),
                     min_width: int = 1, cache_share: float = 0.0,
                     tier: LowerTier | None = None, sync_every: int = 0) -> None:
            ...

    def __post_init__(self) -> None:
        self._text("table")
        self._set("allowed_kinds", _fields.texts(self.allowed_kinds, "TableRule.allowed_kinds"))
        for kind in self.allowed_kinds:
            if kind not in KINDS:
                raise ValueError(f"TableRule.allowed_kinds: expected {', '.join(KINDS)}, "
                                 f"got: {kind!r}")
        self._whole("min_width")
        self._number("cache_share")
        self._whole("sync_every")
        if self.tier is not None:
            self._choice("tier", LOWER_TIERS)


@dataclass(frozen=True, kw_only=True)
class Reserves(_fields.Record):
    """Bytes held back on each device, or texts such as "4GiB"; None: the default of its class.

    dense_bytes: for the dense model. fragmentation_bytes: for the allocator.
    communicator_bytes: for the exchanges' own buffers.
    """

    dense_bytes: int | None = None
    fragmentation_bytes: int | None = None
    communicator_bytes: int | None = None

    if TYPE_CHECKING:
        def __init__(self, *, dense_bytes: int | str | None = None,
                     fragmentation_bytes: int | str | None = None,
                     communicator_bytes: int | str | None = None) -> None:
            ...

    def __post_init__(self) -> None:
        for name in ("dense_bytes", "fragmentation_bytes", "communicator_bytes"):
            if getattr(self, name) is not None:
                self._set(name, _fields.byte_size(getattr(self, name), f"Reserves.{name}"))


@dataclass(frozen=True, kw_only=True)
class Constraints(_fields.Record):
    """Rules for the plan.

    pins: shards of the table lie on these devices only. forbids: no shard of it does. Both
    are {"table": [devices]} or lists of Place. co_locate: lists of tables that occupy the
    same devices. separate: lists of tables of which no device holds two. tables: what single
    tables allow. reserves: bytes that tables leave free on each device.
    fixed_shards: shards written by hand, kept as they are.
    """

    pins: tuple[Place, ...] = ()
    forbids: tuple[Place, ...] = ()
    co_locate: tuple[tuple[str, ...], ...] = ()
    separate: tuple[tuple[str, ...], ...] = ()
    tables: tuple[TableRule, ...] = ()
    reserves: Reserves = Reserves()
    fixed_shards: tuple[Shard, ...] = ()

    if TYPE_CHECKING:
        def __init__(self, *, pins: Iterable[Place] | Mapping[str, int | Iterable[int]] = (),
                     forbids: Iterable[Place] | Mapping[str, int | Iterable[int]] = (),
                     co_locate: Iterable[Iterable[str]] = (),
                     separate: Iterable[Iterable[str]] = (), tables: Iterable[TableRule] = (),
                     reserves: Reserves = Reserves(),
                     fixed_shards: Iterable[Shard] = ()) -> None:
            ...

    def __post_init__(self) -> None:
        for name in ("pins", "forbids"):
            value = getattr(self, name)
            if isinstance(value, Mapping):
                self._set(name, tuple(Place(*item) for item in value.items()))
            self._records(name, Place)
        for name in ("co_locate", "separate"):
            where = f"Constraints.{name}"
            sets = _fields.items(getattr(self, name), where, "lists of tables")
            self._set(name, tuple(_fields.texts(one, where) for one in sets))
        self._records("tables", TableRule)
        self._record("reserves", Reserves)
        self._records("fixed_shards", Shard)
        self._set("fixed_shards", named(self.fixed_shards))


def constraints_of_plain(plain: dict[str, Any]) -> Constraints:
    """Constraints from the entry "constraints" of a workload file."""
    return Constraints(
        pins=tuple(Place(**place) for place in plain.get("pins", ())),
        forbids=tuple(Place(**place) for place in plain.get("forbids", ())),
        co_locate=tuple(map(tuple, plain.get("co_locate", ()))),
        separate=tuple(map(tuple, plain.get("separate", ()))),
        tables=tuple(TableRule(**rule) for rule in plain.get("tables", ())),
        reserves=Reserves(**plain.get("reserves", {})),
        fixed_shards=tuple(shard_of_plain(shard) for shard in plain.get("fixed_shards", ())))
