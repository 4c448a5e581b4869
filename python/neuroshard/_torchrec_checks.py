"""Checks of the arguments of conversions between plans of NeuroShard and TorchRec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from neuroshard import _fields


def expect(value: Any, where: str, kind: type, expected: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{where}: expected {expected}, got: {_fields.shown(value)}")


def count(value: Any, where: str) -> int:
    found = _fields.whole(value, where)
    if found < 1:
        raise ValueError(f"{where}: expected at least 1, got: {found}")
    return found


def check_modules(modules: Any) -> None:
    expect(modules, "modules", Mapping, "the names of each module's tables by its path")
    for path, names in modules.items():
        _fields.text(path, "modules", "paths of modules")
        _fields.texts(names, f"modules[{path!r}]")


def check_unpooled(unpooled: Any, paths: Sequence[str]) -> None:
    for path in _fields.texts(unpooled, "unpooled"):
        if path not in paths:
            raise ValueError(f"unpooled: expected paths of the modules "
                             f"({', '.join(map(repr, paths))}), got: {path!r}")


def check_device(device: Any) -> None:
    _fields.text(device, "device", "a type of devices, \"cuda\" for instance")
    try:
        known = torch.device(device).index is None
    except RuntimeError:
        known = False
    if not known:
        raise ValueError(f"device: expected a type of devices without a number, \"cuda\" or "
                         f"\"cpu\", got: {device!r}")


def check_local_ranks(local_ranks: Any, ranks: int) -> int:
    """Ranks per host; None: all ranks."""
    if local_ranks is None:
        return ranks
    local = _fields.whole(local_ranks, "local_ranks")
    if local < 1 or ranks % local:
        raise ValueError(f"local_ranks: expected a divisor of the plan's {ranks} ranks, as all "
                         f"hosts have as many; got: {local}")
    return local


def check_rank(rank: Any, where: str, ranks: int) -> None:
    if not 0 <= _fields.whole(rank, f"{where}: its rank") < ranks:
        raise ValueError(f"{where} is on rank {rank}; expected ranks from 0 to {ranks - 1}, as "
                         f"device_count is {ranks}")


def pair(value: Any, where: str) -> tuple[int, int]:
    """A pair of rows and columns, both at least 0."""
    found = tuple(_fields.whole(one, where) for one in _fields.items(value, where, "two numbers"))
    if len(found) != 2 or min(found) < 0:
        raise ValueError(f"{where}: expected two numbers, of rows and columns, got: "
                         f"{_fields.shown(value)}")
    return found
