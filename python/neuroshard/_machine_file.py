"""What `neuroshard calibrate` writes: schema neuroshard.machine.v1 (docs/calibrate.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from neuroshard import _fields, _planner
from neuroshard._planner import DeviceClass
from neuroshard.constraints import Reserves
from neuroshard.problem import Target
from neuroshard.topology import Topology

SCHEMA = "neuroshard.machine.v1"
TERMS = ("input", "forward", "forward_communication", "backward_communication", "backward")


def machine_file(scales: Mapping[str, float], step_fixed: float, cost_model: str,
                 topology: Topology, target: Target, bounds: tuple[float, float] | None = None,
                 measured: Mapping[str, object] = {}, device_class: DeviceClass | None = None) -> dict[str, object]:
    """bounds: those of step_interval; None if it is not known. device_class: of this machine, which topologies may
    name."""
    interval = {} if bounds is None else {"step_interval": {"low": bounds[0], "high": bounds[1]}}
    if device_class is not None:
        interval["device_classes"] = [device_class.definition()]
    return {"schema": SCHEMA, "cost_model": cost_model, "target": target,
            "device_class": topology.devices[0].device_class, "devices": topology.device_count,
            "groups": len(topology.levels[-1].groups), "topology": _fields.to_plain(topology),
            "terms": {term: {"scale": scales.get(term, 1.0), "fixed_ms": 0.0} for term in TERMS},
            "step_fixed_ms": step_fixed, **interval, "measured": dict(measured)}


def measured_class(name: str, topology: Topology, scales: Mapping[str, float]) -> DeviceClass:
    """A class like that of the topology's devices with what was measured: memory, reserves, links, disks, and how much
    longer kernels take. topology: with measured links and reserves. Raises InvalidProblem for a name that no class
    can have."""
    device, host, (*outer, node) = topology.devices[0], topology.hosts[0], topology.levels
    figures: dict[str, Any] = {"memory_bytes": device.memory_bytes, "host_memory_bytes": host.memory_bytes}
    figures |= {f"{kind}_reserve_bytes": count for kind in ("dense", "fragmentation", "communicator")
                if (count := getattr(device.reserves, f"{kind}_bytes")) is not None}
    if max(node.groups) > 1:
        figures |= {"node_bandwidth_gb_per_s": node.bandwidth_gb_per_s, "node_latency_us": node.latency_us,
                    "devices_per_node": max(node.groups)}
    for level in outer[:1]:
        figures |= {"network_bandwidth_gb_per_s": level.bandwidth_gb_per_s, "network_latency_us": level.latency_us,
                    "network_group_bandwidth_gb_per_s": level.group_bandwidth_gb_per_s}
    if host.disk.reads_per_second:
        figures |= {"disk_reads_per_second": host.disk.reads_per_second,
                    "disk_bandwidth_gb_per_s": host.disk.bandwidth_gb_per_s}
    return DeviceClass(name, like=device.device_class, forward_scale=scales["forward"],
                       backward_scale=scales["backward"], **figures)


def with_reserves(topology: Topology, reserves: Reserves) -> Topology:
    """The topology whose devices all have these; where they say nothing, what they had."""
    known = {name: count for name, count in vars(reserves).items() if count is not None}
    return topology.replace(devices=[
        device.replace(reserves=device.reserves.replace(**known)) for device in topology.devices])


def file_with_reserves(path: str, reserves: Reserves, devices: int) -> dict[str, Any]:
    """The machine file at a path, for as many devices, with other reserves."""
    with open(path, "rb") as file:
        text = file.read()
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        plain = None
    if not isinstance(plain, dict) or plain.get("schema") != SCHEMA:
        raise ValueError(f"{path}: expected a machine file, whose reserves are replaced, or no file")
    topology = Topology.load(path)
    if topology.device_count != devices:
        raise ValueError(f"{path}: a machine file for {topology.device_count} devices, but the "
                         f"plan is for {devices}")
    return {**plain, "topology": _fields.to_plain(with_reserves(topology, reserves))}


def write(path: str, file: Mapping[str, object]) -> None:
    _planner.write_file(path, json.dumps(file, indent=1) + "\n")
