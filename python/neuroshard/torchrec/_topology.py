"""The cluster that a planner of TorchRec plans for, as NeuroShard's Topology."""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.distributed as dist
from torchrec.distributed.planner.constants import (CROSS_NODE_BANDWIDTH, HBM_CAP,
                                                    INTRA_NODE_BANDWIDTH)
from torchrec.distributed.planner.types import Topology as TorchRecTopology

from neuroshard._group.host import local_ranks
from neuroshard.errors import Unsupported
from neuroshard.torchrec._sharding_types import Cluster
from neuroshard.topology import Device, Host, Level, Topology, as_topology

DEFAULT_CLASS = "H200"


def cluster_of(given: Any, device_class: str | None) -> tuple[Cluster, Topology]:
    """given: TorchRec's Topology, ours or its text; None: the ranks of torch.distributed, in hosts of
    LOCAL_WORLD_SIZE. device_class: of the devices where TorchRec's Topology or nothing is given."""
    if given is None:
        ranks = dist.get_world_size()
        local = local_ranks() if ranks % local_ranks() == 0 else ranks
        if torch.cuda.is_available():
            given = f"{ranks // local}x{local}x{device_class or DEFAULT_CLASS}"
        else:
            given = TorchRecTopology(ranks, "cpu", local_world_size=local)
    if not isinstance(given, TorchRecTopology):
        return of_own(as_topology(given, "topology"), device_class)
    chosen = "CPU" if given.compute_device == "cpu" else device_class or DEFAULT_CLASS
    made = topology_of(given, chosen)
    warn_of_defaults(given, chosen)
    return Cluster(given.world_size, given.local_world_size, given.compute_device), made


def of_own(topology: Topology, device_class: str | None) -> tuple[Cluster, Topology]:
    classes = sorted({one.device_class for one in topology.devices})
    if len(classes) > 1:
        raise Unsupported(f"topology: it has devices of the classes {', '.join(classes)}; TorchRec runs one kind")
    if device_class is not None and device_class != classes[0]:
        raise ValueError(f"device_class: {device_class}, but the topology's devices are {classes[0]}; leave it out")
    of_hosts = [sum(one.host == host for one in topology.devices) for host in range(len(topology.hosts))]
    if len(set(of_hosts)) > 1:
        raise Unsupported(f"topology: its hosts have {', '.join(map(str, of_hosts))} devices; TorchRec needs hosts of "
                          "one size")
    return Cluster(len(topology.devices), of_hosts[0], "cpu" if topology.class_named(classes[0]).kind == "cpu" else "cuda"), topology


def topology_of(given: TorchRecTopology, device_class: str) -> Topology:
    """Hosts of local_world_size ranks, with TorchRec's memories and bandwidths. It has no
    latencies; they are those of the device class.

    TorchRec counts bytes per millisecond; a host's memory is the sum of its ranks' ddr."""
    ranks, local = given.world_size, given.local_world_size
    if local < 1 or ranks % local:
        raise Unsupported(f"the topology has {ranks} ranks in hosts of {local}; expected hosts of "
                          "one size")
    on_host = given.compute_device == "cpu"
    latencies = {level.name: level.latency_us
                 for level in Topology.parse(f"2x2x{device_class}").levels}
    inner = Level(name="node", groups=[local] * (ranks // local), latency_us=latencies["node"],
                  bandwidth_gb_per_s=given.intra_host_bw / 1e6)
    outer = Level(name="cluster", groups=[ranks], latency_us=latencies["cluster"],
                  bandwidth_gb_per_s=given.inter_host_bw / 1e6)
    devices = [Device(device_class=device_class, host=one.rank // local,
                      memory_bytes=one.storage.ddr if on_host else one.storage.hbm)
               for one in given.devices]
    hosts = [Host(memory_bytes=sum(one.storage.ddr for one in
                                   given.devices[first:first + local]) or 1)
             for first in range(0, ranks, local)]
    return Topology(levels=[inner] if ranks == local else [outer, inner], devices=devices,
                    hosts=hosts)


def warn_of_defaults(given: TorchRecTopology, device_class: str) -> None:
    """Says where a Topology for GPUs has TorchRec's defaults and the device class other values."""
    if given.compute_device == "cpu":
        return
    usual = Topology.parse(f"2x2x{device_class}")
    outer, inner = (level.bandwidth_gb_per_s for level in usual.levels)
    found = [("hbm_cap", given.devices[0].storage.hbm, HBM_CAP, usual.devices[0].memory_bytes, 2**30, "GiB"),
             ("intra_host_bw", given.intra_host_bw, INTRA_NODE_BANDWIDTH, inner * 1e6, 1e6, "GB/s")]
    if given.world_size > given.local_world_size:
        found.append(("inter_host_bw", given.inter_host_bw, CROSS_NODE_BANDWIDTH, outer * 1e6, 1e6, "GB/s"))
    odd = [f"{name} ({value / unit:.1f} {said}; usual {expected / unit:.1f})"
           for name, value, default, expected, unit, said in found
           if value == default and abs(value / expected - 1) > 0.1]
    if odd:
        hosts = given.world_size // given.local_world_size
        text = f"{hosts}x{given.local_world_size}x{device_class}" if hosts > 1 else f"{given.world_size}x{device_class}"
        warnings.warn(f"the Topology has TorchRec's defaults where {device_class}s have other values: "
                      f"{', '.join(odd)}. Give it those of your devices, or \"{text}\" in place of it", stacklevel=4)
