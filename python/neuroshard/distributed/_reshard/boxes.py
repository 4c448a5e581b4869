"""Boxes of a tensor: a half-open range of indices for each of its dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterable

Span = tuple[int, int]
Box = tuple[Span, ...]


def common(a: Box, b: Box) -> Box | None:
    """The elements in both; None if there are none."""
    spans = tuple((max(one[0], other[0]), min(one[1], other[1]))
                  for one, other in zip(a, b, strict=True))
    return spans if all(begin < end for begin, end in spans) else None


def without(box: Box, inner: Box) -> list[Box]:
    """Boxes of the elements of `box` that are not in `inner`, which lies in it."""
    rest = []
    for axis, (begin, end) in enumerate(inner):
        first, last = box[axis]
        rest += [(*box[:axis], span, *box[axis + 1:])
                 for span in ((first, begin), (end, last)) if span[0] < span[1]]
        box = (*box[:axis], (begin, end), *box[axis + 1:])
    return rest


def take(rest: list[Box], held: Box) -> tuple[list[Box], list[Box]]:
    """The elements of `rest` that are in `held`, and those that are not."""
    found, left = [], []
    for box in rest:
        both = common(box, held)
        found += [both] if both else []
        left += without(box, both) if both else [box]
    return found, left


def count(boxes: Iterable[Box]) -> int:
    """Elements of boxes that do not overlap."""
    return sum(math.prod(end - begin for begin, end in box) for box in boxes)


def inside(box: Box, outer: Box) -> tuple[slice, ...]:
    """The slices that give `box` of a tensor with the elements of `outer`."""
    return tuple(slice(begin - first, end - first)
                 for (begin, end), (first, _) in zip(box, outer, strict=True))
