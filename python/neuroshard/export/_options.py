"""Checks of the arguments of neuroshard.export."""

from __future__ import annotations

from collections.abc import Collection

from neuroshard.export.errors import ExportError

_MOST_DEVICES = 65536


def require_batch(batch: object) -> None:
    _require_count("batch", "samples", batch, 2**63 - 1)


def _require_count(name: str, what: str, value: object, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ExportError(f"{name}: expected a number of {what} from 1 to {most}, found {value!r}")


def device_count(plan: object, devices: object) -> int:
    """The devices of the plan, or as many as are asked for."""
    from neuroshard.plans import Plan

    _require_count("devices", "devices", devices, _MOST_DEVICES)
    if plan is None:
        return devices
    if not isinstance(plan, Plan):
        raise ExportError("plan: expected a neuroshard.Plan, such as neuroshard.Plan.load(path), "
                          f"found {plan!r}")
    if devices not in (1, plan.device_count):
        raise ExportError(f"devices: expected none beside a plan, or its {plan.device_count}, "
                          f"found {devices}")
    return plan.device_count


def require_names(name: str, names: object) -> None:
    if isinstance(names, str) or not isinstance(names, Collection) or not all(
            isinstance(one, str) for one in names):
        raise ExportError(f"{name}: expected a list of names, found {names!r}")


def require_symbol(what: str, name: str) -> None:
    """Raises unless the IR and the runtime can have this name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        pass
    else:
        if "\0" not in name:
            return
    raise ExportError(f"{what} {name!r}: expected a name of Unicode characters other than \\0")
