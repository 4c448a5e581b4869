"""Where the ids of a collection are among the arguments of a model's forward."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from neuroshard._jagged import is_keyed

# How to get from the arguments to an object: keys of dicts and lists, and names of attributes as such.
Place = tuple["Step", ...]
DEEPEST, MOST = 6, 10_000  # levels, and objects that are looked at
_PLAIN = (torch.Tensor, torch.nn.Module, str, bytes, int, float, complex, type, type(None))


class Step(str):
    """An attribute, or, if `key` is set, an item."""

    key: object = None
    is_item = False

    @classmethod
    def item(cls, key: object) -> Step:
        step = cls(f"[{key!r}]")
        step.key, step.is_item = key, True
        return step

    @classmethod
    def attribute(cls, name: str) -> Step:
        step = cls(f".{name}")
        step.key = name
        return step


def find(target: object, args: tuple, kwargs: Mapping[str, Any]) -> Place | None:
    """The place of an object itself, not of an equal one; of several the one that is least deep."""
    waiting: deque[tuple[Place, object]] = deque([((), (args, kwargs))])
    seen: set[int] = set()
    while waiting and len(seen) < MOST:
        place, value = waiting.popleft()
        if value is target:
            return place
        if id(value) in seen or len(place) > DEEPEST:
            continue
        seen.add(id(value))
        waiting.extend(((*place, step), one) for step, one in _inside(value))
    return None


def fetch(place: Place, args: tuple, kwargs: Mapping[str, Any]) -> object:
    """What is at a place; None if there is no such place."""
    value: object = (args, kwargs)
    try:
        for step in place:
            value = value[step.key] if step.is_item else getattr(value, step.key)  # type: ignore[index]
    except (AttributeError, IndexError, KeyError, TypeError):
        return None
    return value


def shown(place: Place | None) -> str:
    """For people, as Python has it."""
    if place is None:
        return "none"
    first, *rest = place
    return ("args" if first.key == 0 else "kwargs") + "".join(rest)


def _inside(value: object) -> Iterator[tuple[Step, object]]:
    if isinstance(value, _PLAIN) or is_keyed(value):
        return
    if isinstance(value, Mapping):
        yield from ((Step.item(key), one) for key, one in value.items())
    elif isinstance(value, (tuple, list)):
        yield from ((Step.item(index), one) for index, one in enumerate(value))
    else:
        names = [*vars(value)] if hasattr(value, "__dict__") else []
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            names += [slots] if isinstance(slots, str) else slots
        yield from ((Step.attribute(name), getattr(value, name)) for name in names
                    if not name.startswith("__") and hasattr(value, name))
