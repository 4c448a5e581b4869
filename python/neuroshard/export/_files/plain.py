"""Converts dataclasses, tensors and numbers to JSON values and back, with checks."""

from __future__ import annotations

import base64
import ctypes
import math
import types
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

import torch


def record_of_plain(kind: Any, value: object, where: str) -> Any:
    """A value of type `kind` from a JSON value. Raises a ValueError that names the place of a wrong
    type."""
    if is_dataclass(kind):
        hints, known = get_type_hints(kind), [one.name for one in fields(kind)]
        given = _require(dict, value, where)
        if sorted(given) != sorted(known):
            raise ValueError(f"{where}: expected {sorted(known)}, found {sorted(given)}")
        return kind(**{name: record_of_plain(hints[name], given[name], f"{where}.{name}")
                       for name in known})
    origin = get_origin(kind)
    if origin in (tuple, list):
        return origin(record_of_plain(get_args(kind)[0], one, f"{where}[{number}]")
                      for number, one in enumerate(_require(list, value, where)))
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        kind = next(one for one in get_args(kind) if one is not type(None))
        return record_of_plain(kind, value, where)
    if kind is float:
        return float(_require((int, float), value, where))
    return _require(kind, value, where)


def _require(kind: Any, value: object, where: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
        raise ValueError(f"{where}: found {str(value)[:80]!r}, of another type than expected")
    return value


def number_to_plain(value: object) -> object:
    """A number, a text or None; infinities and NaN, which JSON lacks, by name."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"{value!r} is neither a number nor a text")


def number_of_plain(value: object) -> object:
    return float(value["float"]) if isinstance(value, dict) else value


def tensor_to_plain(value: torch.Tensor) -> dict:
    """A tensor by its bytes, so that it keeps every bit."""
    value = value.detach().contiguous()
    raw = ctypes.string_at(value.data_ptr(), value.nbytes) if value.numel() else b""
    return {"type": str(value.dtype).removeprefix("torch."), "shape": list(value.shape),
            "bytes": base64.b64encode(raw).decode()}


def tensor_of_plain(value: dict) -> torch.Tensor:
    dtype = getattr(torch, value["type"])
    raw = bytearray(base64.b64decode(value["bytes"], validate=True))
    flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return flat.reshape(value["shape"])
