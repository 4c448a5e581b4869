"""Measures the links between the ranks of a process group, level by level.

Inside hosts all ranks exchange with all of their host at once. Between hosts ranks send to one of the next
host, first one alone, then all: where each then reaches far less, the ranks of a host share its link."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence

import torch
import torch.distributed as dist

from neuroshard._group.agreement import gather, rank_of, size_of
from neuroshard._group.messages import exchange
from neuroshard.topology import Level, Topology

SMALL_BYTES = 1 << 10
LEAST_BYTES, MOST_BYTES = 256 << 10, 64 << 20
# Long enough for a rate: caches of network cards and of rate limits are then full.
LONG_MS = 150.0
REPEATS = 5
# Ranks that reach less than this share of what one reaches alone share their link.
SHARED = 0.7


def hosts_of_ranks() -> list[int]:
    """The host of each rank, as torchrun numbers them."""
    return gather(int(os.environ.get("GROUP_RANK", "0")), None)


def exchange_ms(sends: Sequence[int], receives: Sequence[int]) -> float:
    """An all-to-all in which this rank sends and receives so many bytes to and from each rank: of the
    slowest rank, the median of some."""
    sent = torch.zeros(sum(sends), dtype=torch.uint8)
    received = torch.empty(sum(receives), dtype=torch.uint8)
    times = []
    for _ in range(REPEATS):
        dist.barrier()
        begin = time.perf_counter()
        exchange(received, sent, receives, sends)
        times.append(max(gather((time.perf_counter() - begin) * 1e3, None)))
    return statistics.median(times)


def rate(to: Sequence[int], of: Sequence[int]) -> tuple[float, float]:
    """(latency in ms, GB/s of a rank) where this rank sends to some ranks and receives of some."""
    def run(size: int) -> float:
        return exchange_ms(*([size if one in peers else 0 for one in range(size_of(None))]
                             for peers in (to, of)))

    latency, size = run(SMALL_BYTES), LEAST_BYTES
    while (took := run(size)) < LONG_MS and size < MOST_BYTES:
        size *= 2
    return latency, size * max(gather(len(to), None)) / max(took - latency, 1e-3) / 1e6


def inside(hosts: Sequence[int]) -> tuple[float, float]:
    rank = rank_of(None)
    peers = [one for one in range(len(hosts)) if hosts[one] == hosts[rank] and one != rank]
    return rate(peers, peers)


def between(hosts: Sequence[int], alone: bool) -> tuple[float, float]:
    """Between hosts 0 and 1, 2 and 3, and so on: the first ranks alone, or all."""
    rank = rank_of(None)
    own, other = ([one for one, host in enumerate(hosts) if host == wanted]
                  for wanted in (hosts[rank], hosts[rank] ^ 1))
    index = own.index(rank)
    peers = [other[index]] if index < len(other) and (index == 0 or not alone) else []
    return rate(peers, peers)


def with_measured_links(topology: Topology, hosts: Sequence[int]) -> Topology:
    """The topology, of one or two levels, with the figures of this group's links. Its nodes are the
    ranks' hosts. Called on all ranks."""
    *outer, node = topology.levels
    levels = []
    if outer:
        _, solo = between(hosts, True)
        latency, each = between(hosts, False)
        count = min(hosts.count(host) for host in set(hosts))
        is_shared = count > 1 and each < SHARED * solo
        levels.append(with_figures(outer[0], latency, solo if is_shared else each,
                                   each * count if is_shared else 0.0))
    levels.append(with_figures(node, *inside(hosts), 0.0) if max(node.groups) > 1 else node)
    return topology.replace(levels=levels)


def with_figures(level: Level, latency_ms: float, gb_per_s: float, of_group: float) -> Level:
    return level.replace(latency_us=round(latency_ms * 1e3, 1), bandwidth_gb_per_s=rounded(gb_per_s),
                         group_bandwidth_gb_per_s=rounded(of_group))


def rounded(value: float) -> float:
    return float(f"{value:.4g}")
