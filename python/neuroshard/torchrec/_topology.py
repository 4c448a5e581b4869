"""Converts TorchRec's Topology to NeuroShard's."""

from __future__ import annotations

from torchrec.distributed.planner.types import Topology as TorchRecTopology

from neuroshard.topology import Device, Host, Level, Topology
from neuroshard.errors import Unsupported


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
