"""Measures the disks of the ranks' hosts, as the engine reads rows of tier "ssd" from them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import torch

from neuroshard._group.agreement import gather, rank_of, together
from neuroshard._native.torch_library import load_library
from neuroshard.calibration._links import rounded
from neuroshard.topology import Disk, Topology

# Larger than what disks keep in memory of their own; at most a part of what is free.
BYTES = 2 << 30
PART_OF_FREE = 0.5


def with_measured_disks(topology: Topology, hosts: Sequence[int], directory: str) -> Topology:
    """The topology, whose hosts have the disks of the directory, measured by the first rank of each
    host. Called on all ranks; raises a GroupError where a directory cannot be written."""
    rank = rank_of(None)
    is_first = hosts.index(hosts[rank]) == rank
    found = together(lambda: measured(directory) if is_first else None, None, "measuring disks")
    disks = {host: disk for host, disk in gather((hosts[rank], found), None) if disk is not None}
    return topology.replace(hosts=[host.replace(disk=disks[number])
                                   for number, host in zip(sorted(disks), topology.hosts, strict=True)])


def measured(directory: str) -> Disk:
    try:
        free = shutil.disk_usage(directory).free
    except OSError as error:
        raise ValueError(f"tier_directory: {directory}: {error.strerror}") from error
    load_library()
    reads, bytes_per_second = torch.ops.neuroshard.measure_disk(
        directory, min(BYTES, int(free * PART_OF_FREE)))
    return Disk(bytes=free, reads_per_second=rounded(reads),
                bandwidth_gb_per_s=rounded(bytes_per_second / 1e9))
