"""Checks of what callers give."""

from __future__ import annotations

from collections.abc import Collection

from neuroshard.export.errors import ExportError

_MOST_DEVICES = 65536


def require_batch(batch: object) -> None:
    _require_count("batch", "samples", batch, 2**63 - 1)


def require_devices(devices: object) -> None:
    _require_count("devices", "devices", devices, _MOST_DEVICES)


def _require_count(name: str, what: str, value: object, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ExportError(f"{name}: expected a number of {what} from 1 to {most}, found {value!r}")


def require_plan(plan: object) -> None:
    from neuroshard.plans import Plan

    if plan is not None and not isinstance(plan, Plan):
        raise ExportError("plan: expected a neuroshard.Plan, such as neuroshard.Plan.load(path), "
                          f"found {plan!r}")


def require_names(name: str, names: object) -> None:
    if isinstance(names, str) or not isinstance(names, Collection) or not all(
            isinstance(one, str) for one in names):
        raise ExportError(f"{name}: expected a list of names, found {names!r}")


def require_symbol(what: str, name: str) -> None:
    """A name that the IR and the runtime can have."""
    try:
        name.encode()
    except UnicodeEncodeError:
        pass
    else:
        if "\0" not in name:
            return
    raise ExportError(f"{what} {name!r}: expected a name of Unicode characters other than \\0")
