"""Which boxes move between ranks: random cuts beside a count of single elements, the nearest copy, and
equally near ones in turn."""

import random

import pytest
import torch

from neuroshard.distributed._reshard import boxes
from neuroshard.distributed._reshard.pieces import must_move, plan_pieces
from neuroshard.distributed._reshard.reshard import distances
from neuroshard.topology import Topology
from support import matrix

RANKS = 5


def random_boxes(size, chooser):
    """Boxes that cover a tensor, each cut from the last by one place of one dimension."""
    found = [tuple((0, one) for one in size)]
    for _ in range(chooser.randrange(5)):
        box = found.pop(chooser.randrange(len(found)))
        axis = chooser.randrange(len(size))
        begin, end = box[axis]
        place = chooser.randint(begin, end)
        found += [(*box[:axis], part, *box[axis + 1:]) for part in ((begin, place), (place, end))
                  if part[0] < part[1]]
    return found


def random_side(size, chooser):
    """By rank, boxes, some on several ranks, some twice on one."""
    side = [[] for _ in range(RANKS)]
    for box in random_boxes(size, chooser):
        for rank in chooser.sample(range(RANKS), chooser.randint(1, 3)):
            side[rank] += [box] * chooser.choice((1, 1, 2))
    return side


def mask_of(size, places):
    mask = torch.zeros(size, dtype=torch.bool)
    for box in places:
        mask[tuple(slice(*span) for span in box)] = True
    return mask


@pytest.mark.parametrize("number", range(60))
def test_each_element_comes_once_from_the_nearest_rank(number):
    chooser = random.Random(f"{matrix.seed()} {number}")
    size = (chooser.randint(1, 9), chooser.randint(1, 7))[:chooser.randint(1, 2)]
    held, wanted = random_side(size, chooser), random_side(size, chooser)
    distances = [[chooser.randrange(3) for _ in range(RANKS)] for _ in range(RANKS)]
    sent = [0] * RANKS
    pieces = plan_pieces(held, wanted, 4, lambda a, b: distances[a][b], sent)
    held_masks = [mask_of(size, places) for places in held]
    times = {(rank, target): torch.zeros(size, dtype=torch.int32)
             for rank, places in enumerate(wanted) for target in range(len(places))}
    received = [torch.zeros(size, dtype=torch.bool) for _ in range(RANKS)]
    by_hand = [0] * RANKS
    for piece in pieces:
        mask = mask_of(size, [piece.box])
        times[piece.receiver, piece.target] += mask
        if piece.again:
            assert piece.sender == piece.receiver and piece.source < piece.target
            assert boxes.common(piece.box, wanted[piece.receiver][piece.source]) == piece.box
            continue
        assert boxes.common(piece.box, held[piece.sender][piece.source]) == piece.box
        if piece.travels:
            assert not (mask & held_masks[piece.receiver]).any()
            assert not (mask & received[piece.receiver]).any()
            received[piece.receiver] |= mask
            by_hand[piece.sender] += 4 * int(mask.sum())
            nearer = [rank for rank in range(RANKS)
                      if distances[rank][piece.receiver] < distances[piece.sender][piece.receiver]]
            assert not any((mask & held_masks[rank]).any() for rank in nearer)
    for (rank, target), count in times.items():
        assert torch.equal(count > 0, mask_of(size, [wanted[rank][target]])) and count.max() == 1
    missing = [int((mask_of(size, places) & ~own).sum())
               for places, own in zip(wanted, held_masks, strict=True)]
    assert must_move(held, wanted) == missing == [int(one.sum()) for one in received]
    assert sent == by_hand


def test_equally_near_copies_send_in_turn():
    box = ((0, 8),)
    held = [[box], [box], [], [], []]
    wanted = [[], [], [box], [box], []]
    sent = [0] * RANKS
    pieces = plan_pieces(held, wanted, 2, lambda a, b: 0, sent)
    assert [(one.sender, one.receiver) for one in pieces] == [(0, 2), (1, 3)]
    assert sent[:2] == [16, 16]


def test_devices_of_one_host_are_nearer():
    between = distances(Topology.parse("2x2xCPU"))
    assert between(2, 3) < between(2, 1) == between(0, 3)


def test_what_no_rank_holds_is_an_error():
    with pytest.raises(ValueError, match=r"no rank holds \[\(4, 8\)\]"):
        plan_pieces([[((0, 4),)]], [[((0, 8),)]], 1, lambda a, b: 0, [0])
