"""The memory that ranks have, where it is less than their topology says: the defaults of a class know
nothing of the machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from neuroshard._group.agreement import gather
from neuroshard._group.host import boot_id
from neuroshard.topology import Topology

CONTROL_GROUP = "/sys/fs/cgroup/memory.max"
MIB = 2**20


@dataclass(frozen=True)
class Place:
    """Of a rank: its machine (hosts may be emulated on one), and the bytes that this has."""

    machine: str
    total: int


def this_place() -> Place:
    return Place(boot_id(), min(physical_bytes(), control_group_bytes(CONTROL_GROUP)))


def physical_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def control_group_bytes(path: str) -> int:
    """What the container allows; 2^62 if nothing is said."""
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):  # "max"
        return 2**62


def within_machines(topology: Topology) -> Topology:
    """Called on all ranks."""
    return limited(topology, gather(this_place(), None))


def limited(topology: Topology, places: Sequence[Place]) -> Topology:
    """The topology, with no more for any device than the least share of a rank in its machine's memory,
    so that devices stay alike, and no more for a host than its ranks' shares."""
    ranks = Counter(place.machine for place in places)
    shares = [place.total // ranks[place.machine] // MIB * MIB for place in places]
    of_hosts: Counter[int] = Counter()
    for device, share in zip(topology.devices, shares, strict=True):
        of_hosts[device.host] += share
    return topology.replace(
        devices=[device.replace(memory_bytes=min(device.memory_bytes, min(shares)))
                 for device in topology.devices],
        hosts=[host.replace(memory_bytes=min(host.memory_bytes, of_hosts[number]))
               for number, host in enumerate(topology.hosts)])
