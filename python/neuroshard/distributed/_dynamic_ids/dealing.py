"""Which rows of a table the ranks give to ids. They share all but the last one, the shared row."""

from __future__ import annotations

from collections.abc import Sequence


def first_share(count: int, rank: int, ranks: int) -> tuple[int, int]:
    """The part of a rank of `count` rows, or of candidates, at the beginning: a range."""
    return count * rank // ranks, count * (rank + 1) // ranks


def deal(used: Sequence[int], free: int) -> list[int]:
    """How many of `free` rows each rank gets, so that ranks have as equally many rows as may be: those
    with the fewest used ones get them."""
    order = sorted(range(len(used)), key=lambda rank: used[rank])
    for count in range(1, len(order) + 1):
        level, more = divmod(sum(used[rank] for rank in order[:count]) + free, count)
        if count == len(order) or level <= used[order[count]]:
            break
    shares = [0] * len(used)
    for place, rank in enumerate(order[:count]):
        shares[rank] = level + (place < more) - used[rank]
    return shares
