"""What `neuroshard calibrate` writes: schema neuroshard.machine.v1 (docs/calibrate.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from neuroshard import _fields, _planner
from neuroshard.constraints import Reserves
from neuroshard.problem import Target
from neuroshard.topology import Topology

SCHEMA = "neuroshard.machine.v1"
TERMS = ("input", "forward", "forward_communication", "backward_communication", "backward")


def machine_file(scales: Mapping[str, float], step_fixed: float, cost_model: str,
                 topology: Topology, target: Target, bounds: tuple[float, float] | None = None,
                 measured: Mapping[str, object] = {}) -> dict[str, object]:
    """bounds: those of step_interval; None if it is not known."""
    interval = {} if bounds is None else {"step_interval": {"low": bounds[0], "high": bounds[1]}}
    return {"schema": SCHEMA, "cost_model": cost_model, "target": target,
            "device_class": topology.devices[0].device_class, "devices": topology.device_count,
            "groups": len(topology.levels[-1].groups), "topology": _fields.to_plain(topology),
            "terms": {term: {"scale": scales.get(term, 1.0), "fixed_ms": 0.0} for term in TERMS},
            "step_fixed_ms": step_fixed, **interval, "measured": dict(measured)}


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
