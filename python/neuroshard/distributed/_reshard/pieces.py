"""Which boxes of a tensor move from which rank to which, so that as few bytes as possible do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from neuroshard.distributed._reshard.boxes import Box, common, count, take

# By rank, the boxes of one tensor that it has.
Boxes = Sequence[Sequence[Box]]


class Piece(NamedTuple):
    """A box that goes into box `target` of the receiver, out of box `source` of the sender; of the
    receiver's own box `source`, which was filled before, if `again`."""

    box: Box
    sender: int
    source: int
    receiver: int
    target: int
    again: bool = False

    @property
    def travels(self) -> bool:
        return self.sender != self.receiver


def plan_pieces(held: Boxes, wanted: Boxes, element_bytes: int,
                distance: Callable[[int, int], int], sent: list[int]) -> list[Piece]:
    """Pieces that fill all wanted boxes, each element once. A rank copies what it holds and what has
    come to it for another box; the rest comes from the nearest rank that holds it, of equally near
    ones from that which has sent least.

    sent: by rank, the bytes that it sends; those of these pieces are added."""
    pieces = []
    for receiver, boxes in enumerate(wanted):
        for target, box in enumerate(boxes):
            rest = [box]
            for source in _sources(held, boxes[:target], box, receiver, distance, sent):
                found, rest = take(rest, source.box)
                pieces += [Piece(one, source.rank, source.number, receiver, target, source.again)
                           for one in found]
                if source.rank != receiver:
                    sent[source.rank] += count(found) * element_bytes
                if not rest:
                    break
            if rest:
                raise ValueError(f"no rank holds {list(rest[0])} of a table")
    return pieces


class _Source(NamedTuple):
    """A box that a rank holds; of those that it wants, if `again`."""

    box: Box
    rank: int
    number: int
    again: bool = False


def _sources(held: Boxes, filled: Sequence[Box], box: Box, receiver: int,
             distance: Callable[[int, int], int], sent: Sequence[int]) -> Iterator[_Source]:
    """What may have elements of a box, in the order in which to take them. filled: boxes that the
    receiver has by then."""
    yield from (_Source(one, receiver, number) for number, one in enumerate(held[receiver]))
    yield from (_Source(one, receiver, number, True) for number, one in enumerate(filled))
    others = [_Source(one, rank, number) for rank, places in enumerate(held) if rank != receiver
              for number, one in enumerate(places) if common(one, box)]
    yield from sorted(others, key=lambda one: (distance(one.rank, receiver), sent[one.rank]))


def must_move(held: Boxes, wanted: Boxes) -> list[int]:
    """By rank, the elements that it wants and does not hold; what it wants twice counts once."""
    missing = [0] * len(wanted)
    for rank, (mine, boxes) in enumerate(zip(held, wanted, strict=True)):
        known = list(mine)
        for box in boxes:
            rest = [box]
            for place in known:
                rest = take(rest, place)[1]
            missing[rank] += count(rest)
            known.append(box)
    return missing
