"""The shape of an emulated cluster: "2x4@200mbit"."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_HOSTS, MOST_GIGABITS = 200, 1000


@dataclass(frozen=True)
class Shape:
    """hosts of `ranks` ranks each, whose links carry `megabits` per second each way."""

    hosts: int
    ranks: int
    megabits: float


def parse_shape(text: str) -> Shape:
    """Raises a ValueError for what is none."""
    found = re.fullmatch(r"([0-9]{1,3})x([0-9]{1,3})@([0-9]+(?:\.[0-9]+)?)(mbit|gbit)", text)
    shape = found and Shape(int(found[1]), int(found[2]),
                            float(found[3]) * (1000 if found[4] == "gbit" else 1))
    if (not shape or not 1 <= shape.hosts <= MOST_HOSTS or shape.ranks < 1
            or not 1 <= shape.megabits <= MOST_GIGABITS * 1000):
        raise ValueError(f"expected HOSTSxRANKS@RATE, such as 2x2@200mbit or 4x1@1gbit, of at most "
                         f"{MOST_HOSTS} hosts and of 1 mbit to {MOST_GIGABITS} gbit, got: {text!r}")
    return shape
