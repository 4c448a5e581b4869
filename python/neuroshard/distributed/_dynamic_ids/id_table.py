"""A rank's part of the map of a table's ids."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from neuroshard._group.agreement import gather
from neuroshard.distributed._dynamic_ids.arguments import DynamicIds
from neuroshard.distributed._dynamic_ids.dealing import first_share
from neuroshard.distributed._dynamic_ids.exchange import Exchange

FIELDS = 5  # of an entry: id, row, count, last, since (lib/RuntimeTorch/Ids/IdOperators.cpp)
COUNT = 2  # where an entry has its count; 0: the row is free


@dataclass(frozen=True)
class IdFigures:
    """What has become of a table's ids, since the tables were opened or loaded.

    ids: that have a row. rows: that there are for ids. candidates: ids that are counted and have no
    row. admitted: ids that got a row; evicted: that lost it. refused: of each batch, the ids that
    were due and got no row, as all were taken. forgotten: candidates that made room for others.
    memory_bytes: of the map, in memory of the host."""

    ids: int
    rows: int
    candidates: int
    admitted: int
    evicted: int
    refused: int
    forgotten: int
    memory_bytes: int

    @property
    def load(self) -> float:
        """The part of the rows that ids have."""
        return self.ids / self.rows if self.rows else 1.0


def with_owner(entries: torch.Tensor, rank: int) -> torch.Tensor:
    """Entries of a rank, each with the rank: [n, FIELDS + 1]."""
    return torch.cat([entries, torch.full((entries.shape[0], 1), rank)], dim=1)


class IdTable:
    """The ids and rows of a table that are this rank's, by a hash of the id. Those of all ranks are all
    there are, and none is another's. Made by a collection with dynamic ids (tables.dynamic_ids)."""

    def __init__(self, name: str, index: int, rows: int, policy: DynamicIds, exchange: Exchange,
                 seed: int) -> None:
        """index: of the table in the artifact. rows: of the table. seed: of the initial weights of ids."""
        self.name, self.index, self.policy = name, index, policy
        self.exchange, self.seed = exchange, seed
        self.shared_row = rows - 1
        rank, ranks = exchange.rank, exchange.size
        self.num_candidates = policy.num_candidates(rows)
        # By rank: where its rows begin among those of all ranks, one rank's after the other's.
        self.begins = [first_share(self.shared_row, one, ranks)[0] for one in range(ranks)]
        begin, end = self.candidate_range
        self.owner = torch.classes.neuroshard.IdOwner(
            torch.arange(*first_share(self.shared_row, rank, ranks)), policy.admit_after, policy.evict_by,
            policy.when_full, self.shared_row, end - begin)

    @property
    def candidate_range(self) -> tuple[int, int]:
        """Of the candidates of all ranks, those of this one."""
        return first_share(self.num_candidates, self.exchange.rank, self.exchange.size)

    def pairs(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(ids, rows): the ids of this rank that have a row, and their rows."""
        entries = self.owner.entries()
        used = entries[entries[:, COUNT] > 0]
        return used[:, 0].clone(), used[:, 1].clone()

    def figures(self) -> IdFigures:
        """Of this rank."""
        return IdFigures(*self.owner.figures())

    def total(self) -> IdFigures:
        """Of all ranks, which call it together."""
        return IdFigures(*(sum(values) for values in zip(*gather(self.owner.figures(), self.exchange.group))))
