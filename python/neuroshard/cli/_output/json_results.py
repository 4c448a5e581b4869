"""Results as JSON, for programs. Keys end in units, as the fields of the API do."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import neuroshard as ns


def whole(record: Any) -> Any:
    """A record with every field, defaults included."""
    if isinstance(record, tuple):
        return [whole(one) for one in record]
    if dataclasses.is_dataclass(record):
        return {one.name: whole(getattr(record, one.name)) for one in dataclasses.fields(record)}
    return record


def result(found: ns.PlanResult) -> dict[str, Any]:
    return {**summary(found), "breakdown": whole(found.breakdown), "memory": whole(found.memory),
            "buffers": {kind: list(devices) for kind, devices in found.buffers.items()},
            "explanation": list(found.explanation), "tried": list(found.tried),
            "remarks": list(found.remarks), "assumptions": whole(found.assumptions), "stop_reason": found.stop_reason,
            "evaluations": found.evaluations,
            "migration": whole(found.migration) if found.migration else None,
            "plan": json.loads(found.plan.to_json())}


def summary(found: ns.PlanResult) -> dict[str, Any]:
    return {"cost_ms": found.cost_ms, "lower_bound_ms": found.lower_bound_ms,
            "peak_bytes": found.memory.peak_bytes, "shards": len(found.plan.shards),
            "devices": found.plan.device_count, "seconds": found.seconds}


def error(problem: ns.PlanningError) -> dict[str, Any]:
    return {"limit": problem.limit, "message": problem.message,
            "details": list(problem.details), "advice": problem.advice}
