"""Devices, their groups, links and hosts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neuroshard import _fields, _planner
from neuroshard.constraints import Reserves


@dataclass(frozen=True, kw_only=True)
class Level(_fields.Record):
    """One level of the hierarchy: consecutive groups of devices, of possibly unequal size.

    name: such as "node"; groups: the number of devices in each.
    Two devices that share a group of this level, but none of the next inner one, talk over
    its link. bandwidth_gb_per_s: gigabytes per second that one device reaches, each way.
    latency_us: microseconds. group_bandwidth_gb_per_s: what the devices of one group of the next
    inner level reach together, where they share a link, such as the card of a host; 0: they share
    none.
    """

    name: str
    groups: tuple[int, ...]
    bandwidth_gb_per_s: float
    latency_us: float
    group_bandwidth_gb_per_s: float = 0

    if TYPE_CHECKING:
        def __init__(self, *, name: str, groups: Iterable[int], bandwidth_gb_per_s: float,
                     latency_us: float, group_bandwidth_gb_per_s: float = 0) -> None:
            ...

    def __post_init__(self) -> None:
        self._text("name")
        self._set("groups", _fields.device_list(self.groups, "Level.groups"))
        self._number("bandwidth_gb_per_s", "latency_us", "group_bandwidth_gb_per_s")
        if self.group_bandwidth_gb_per_s < 0:
            raise ValueError("Level.group_bandwidth_gb_per_s: expected 0, for links that nobody "
                             f"shares, or a number above it, got: {self.group_bandwidth_gb_per_s}")


@dataclass(frozen=True, kw_only=True)
class Device(_fields.Record):
    """One device. device_class: its kind (neuroshard.device_classes()). memory_bytes: usable device memory, bytes or a text such as "80GiB";
    host: index into the topology's hosts. reserves: what of the memory tables must leave free, as
    measured there; constraints of a problem go before them."""

    device_class: str = field(metadata={"key": "class"})
    memory_bytes: int
    host: int = field(default=0, metadata={"always": True})
    reserves: Reserves = Reserves()

    if TYPE_CHECKING:
        def __init__(self, *, device_class: str, memory_bytes: int | str,
                     host: int = 0, reserves: Reserves = Reserves()) -> None:
            ...

    def __post_init__(self) -> None:
        self._text("device_class")
        self._set("memory_bytes", _fields.byte_size(self.memory_bytes, "Device.memory_bytes"))
        self._whole("host")
        self._record("reserves", Reserves)


@dataclass(frozen=True, kw_only=True)
class Disk(_fields.Record):
    """The disks of a host together, for tables in tier "ssd". bytes: what tables may take, or a
    text such as "15000GB". reads_per_second: of 4 KiB, at random; writes count as reads. bandwidth_gb_per_s: gigabytes per second. 0: not
    known; bytes are then without limit, and rates those of the class of the host's first device."""

    bytes: int = 0
    reads_per_second: float = 0.0
    bandwidth_gb_per_s: float = 0.0

    if TYPE_CHECKING:
        def __init__(self, *, bytes: int | str = 0, reads_per_second: float = 0.0,
                     bandwidth_gb_per_s: float = 0.0) -> None:
            ...

    def __post_init__(self) -> None:
        self._set("bytes", _fields.byte_size(self.bytes, "Disk.bytes"))
        self._number("reads_per_second", "bandwidth_gb_per_s")


@dataclass(frozen=True, kw_only=True)
class Host(_fields.Record):
    """One host. memory_bytes: usable host memory, shared by its devices, as are its disks,
    which disk stands for."""

    memory_bytes: int
    disk: Disk = Disk()

    if TYPE_CHECKING:
        def __init__(self, *, memory_bytes: int | str, disk: Disk = Disk()) -> None:
            ...

    def __post_init__(self) -> None:
        self._set("memory_bytes", _fields.byte_size(self.memory_bytes, "Host.memory_bytes"))
        self._record("disk", Disk)


@dataclass(frozen=True, kw_only=True)
class Topology(_fields.Record):
    """The levels of the network from the outermost (one group: everything) to the innermost, the devices and the
    hosts of a cluster.

    Topology.parse("2x8xH200") makes one with the defaults of a device class. device_classes: those of
    your own, which devices may name beside the built-in ones.
    """

    levels: tuple[Level, ...]
    devices: tuple[Device, ...]
    hosts: tuple[Host, ...]
    device_classes: tuple[_planner.DeviceClass, ...] = ()

    if TYPE_CHECKING:
        def __init__(self, *, levels: Iterable[Level], devices: Iterable[Device],
                     hosts: Iterable[Host], device_classes: Iterable[_planner.DeviceClass] = ()) -> None:
            ...

    def __post_init__(self) -> None:
        self._records("levels", Level)
        self._records("devices", Device)
        self._records("hosts", Host)
        self._records("device_classes", _planner.DeviceClass)

    @classmethod
    def parse(cls, text: str, device_classes: Iterable[_planner.DeviceClass] = ()) -> Topology:
        """The topology that a short text names.

        "8xH200": one node of 8. "2x8xA100-40GB": 2 nodes of 8. "8+4xA100-40GB": nodes of 8
        and of 4. "256xH200": cut into nodes of the class. "4xCPU@2GiB": 2 GiB of usable
        memory per device. "2x4xCPU@200mbit": the devices of a node share 200 Mbit/s to the other
        nodes (also gbit, MB/s, GB/s). "4xaws:p5.48xlarge" or "4xp5.48xlarge": 4 nodes as a cloud rents
        them. "8xMYCARD": a class among device_classes; "8xMYCARD@cards.json": one that this file
        defines (docs/device-classes.md). A name that ends in .json is a file, as load() reads it.
        Raises InvalidProblem for any other text.
        """
        _fields.text(text, "Topology.parse", "a text such as '8xH200'")
        own = _fields.items(device_classes, "Topology.parse: device_classes", "DeviceClass")
        for one in own:
            if not isinstance(one, _planner.DeviceClass):
                raise TypeError(f"Topology.parse: device_classes: expected DeviceClasses, got: {_fields.shown(one)}")
        return topology_of_plain(_planner.parse_topology(text, [one for one in own if one.is_user_defined]))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Topology:
        """The topology in the file `path`: a machine file of `neuroshard calibrate`, or a workload. Raises
        InvalidProblem if it has none."""
        return topology_of_plain(_planner.read_topology(_fields.path(path, "Topology.load")))

    def class_named(self, name: str) -> _planner.DeviceClass:
        """The device class of this name: one of the topology's own, or a built-in one."""
        own = {one.name: one for one in self.device_classes}
        return own.get(name) or _planner.device_classes()[name]

    @property
    def device_count(self) -> int:
        """Number of devices."""
        return len(self.devices)

    def with_devices(self, count: int) -> Topology:
        """`count` devices of the same class and memory, in nodes of the size of this
        topology's largest innermost group, or the class's where all its devices are in one
        smaller group. Levels of the same name, and the innermost, keep their links; others
        have those of the class. All devices must be alike."""
        count = _fields.whole(count, "devices")
        for name in ("levels", "devices", "hosts"):
            if not getattr(self, name):
                raise ValueError(f"devices: the topology has no {name}, so it cannot be "
                                 "scaled to a number of devices; give a topology instead")
        kinds = {(device.device_class, device.memory_bytes, device.reserves)
                 for device in self.devices}
        if len(kinds) != 1:
            raise ValueError("devices: the topology's devices differ, so it cannot be "
                             "scaled to a number of devices; give a topology instead")
        (device_class, memory, reserves), = kinds
        made = Topology.parse(f"{count}x{device_class}@{memory}B", self.device_classes)
        if count == self.device_count:
            return self
        groups = self.levels[-1].groups
        if len(groups) > 1 or groups[0] >= made.levels[-1].groups[0]:
            size = max(groups)
            nodes = [min(size, count - first) for first in range(0, count, size)]
            made = Topology.parse(f"1x{'+'.join(map(str, nodes))}x{device_class}@{memory}B",
                                  self.device_classes)
        links = {level.name: level for level in self.levels}
        links[made.levels[-1].name] = self.levels[-1]
        levels = tuple(
            level.replace(bandwidth_gb_per_s=links[level.name].bandwidth_gb_per_s,
                          latency_us=links[level.name].latency_us,
                          group_bandwidth_gb_per_s=links[level.name].group_bandwidth_gb_per_s)
            if level.name in links else level for level in made.levels)
        host_memory = min(host.memory_bytes for host in self.hosts)
        disks = {host.disk for host in self.hosts}
        disk = disks.pop() if len(disks) == 1 else Disk()
        hosts = tuple(Host(memory_bytes=host_memory, disk=disk) for _ in made.hosts)
        devices = tuple(device.replace(reserves=reserves) for device in made.devices)
        return Topology(levels=levels, devices=devices, hosts=hosts, device_classes=made.device_classes)

    def __str__(self) -> str:
        kinds: dict[tuple[str, int], int] = {}
        for device in self.devices:
            key = (device.device_class, device.memory_bytes)
            kinds[key] = kinds.get(key, 0) + 1
        return " + ".join(f"{count} {name} of {_planner.format_bytes(memory)}"
                          for (name, memory), count in kinds.items())


def as_topology(value: Any, where: str) -> Topology:
    """A Topology, or the one a text names."""
    if isinstance(value, Topology):
        return value
    if isinstance(value, str):
        return Topology.parse(value)
    raise TypeError(f"{where}: expected a Topology or a text such as '8xH200', "
                    f"got: {_fields.shown(value)}")


def topology_of_plain(plain: dict[str, Any]) -> Topology:
    return Topology(
        levels=tuple(Level(**level) for level in plain["levels"]),
        devices=tuple(Device(device_class=device["class"], memory_bytes=device["memory_bytes"],
                             host=device["host"], reserves=Reserves(**device.get("reserves", {})))
                      for device in plain["devices"]),
        hosts=tuple(Host(memory_bytes=host["memory_bytes"], disk=Disk(**host.get("disk", {})))
                    for host in plain["hosts"]),
        device_classes=[one if isinstance(one, _planner.DeviceClass) else _planner.DeviceClass(**one)
                        for one in plain.get("device_classes", ())])
