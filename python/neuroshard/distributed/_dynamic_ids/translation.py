"""Ids to rows before a step: each id goes to the rank that owns its part of the map, and comes back as
a row of the table. Rows that get another id begin anew on all ranks that hold a part of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from neuroshard._jagged import Jagged
from neuroshard.distributed._dynamic_ids.exchange import Exchange
from neuroshard.distributed._dynamic_ids.id_table import IdTable
from neuroshard.distributed._out_of_range import counts_of
from neuroshard.errors import TensorError

FAILED, LOOKUP, TRAINING = range(3)
STATES = ("nothing", "a lookup without training", "training")


class Translation:
    """Of the dynamic tables of a module. All ranks call fail() or translate() for each step."""

    def __init__(self, tables: Sequence[IdTable], readers: Sequence[Sequence[int]], features: int,
                 held_rows: Sequence[Sequence[Sequence[tuple[int, int]]]], exchange: Exchange,
                 model: str) -> None:
        """readers: of each table, the features that read it, of `features`. held_rows: of each table, by
        rank, the ranges of its rows that the rank has shards of. model: the name of the open model."""
        self.tables = tuple(tables)
        self._readers, self._features = readers, features
        self._held_rows, self._exchange, self._model = held_rows, exchange, model
        self._ops = torch.ops.neuroshard
        self._lookup = 0
        self._open: list[tuple[int, int]] = []  # lookups that use rows still, and their steps

    def fail(self) -> None:
        """Instead of translate(), on a rank whose ids cannot be sent."""
        self._meet(FAILED, [[0] * len(self.tables)] * self._exchange.size)

    @torch.compiler.disable
    def translate(self, ids: Jagged, learns: bool) -> Jagged:
        """ids: as operators take them. Raises a TensorError on all ranks if a table is full and refuses ids,
        and if some ranks train and others do not. Where the step fails on some rank, ids become those of
        the shared rows."""
        counts = counts_of(ids, self._features)
        if counts is None:  # the step tells what is wrong with them
            self.fail()
            return ids
        values = ids.ids.cpu()
        places = [self._places(counts, readers) for readers in self._readers]
        size = self._exchange.size
        asked = [self._ops.distinct_ids(values[one].contiguous(), size) for one in places]
        states, wanted = self._meet(TRAINING if learns else LOOKUP,
                                    [[one[2][rank] for one in asked] for rank in range(size)])
        if FAILED in states:
            rows = [torch.full_like(values[one], table.shared_row)
                    for one, table in zip(places, self.tables)]
        else:
            require_same_states(states)
            found = self._ask([one[0] for one in asked], [one[2] for one in asked], wanted, learns)
            rows = [of_table[one[1]] for of_table, one in zip(found, asked)]
        translated = values.clone()
        for one, of_table in zip(places, rows):
            translated[one] = of_table
        return ids._replace(ids=translated.to(ids.ids.device, non_blocking=True))

    @torch.compiler.disable
    def note_step(self, ticket: torch.Tensor) -> None:
        """The step that the last translated ids have begun: it uses their rows until it is over."""
        self._open.append((self._lookup, int(ticket)))

    def _places(self, counts: Sequence[int], readers: Sequence[int]) -> slice | torch.Tensor:
        """Where the ids of these features are."""
        begins = [0, *accumulate(counts)]
        if readers[-1] - readers[0] + 1 == len(readers):
            return slice(begins[readers[0]], begins[readers[-1] + 1])
        return torch.cat([torch.arange(begins[one], begins[one + 1]) for one in readers])

    def _meet(self, state: int, counts: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
        """counts: by rank, how many ids of each table it is asked for. Gives, by rank, its state, and how
        many ids it asks this one for."""
        told = self._exchange.equal(torch.tensor([[state, *one] for one in counts])).tolist()
        return [one[0] for one in told], [one[1:] for one in told]

    def _ask(self, asked: Sequence[torch.Tensor], counts: Sequence[Sequence[int]],
             wanted: Sequence[Sequence[int]], learns: bool) -> list[torch.Tensor]:
        """The rows of distinct ids of each table, by owner. counts: by table and rank. wanted: by rank
        and table, how many ids others ask for."""
        size, tables = self._exchange.size, range(len(self.tables))
        by_table = [one.split(list(count)) for one, count in zip(asked, counts)]
        questions = self._exchange.split(
            torch.cat([by_table[table][rank] for rank in range(size) for table in tables]),
            [sum(counts[table][rank] for table in tables) for rank in range(size)],
            [sum(one) for one in wanted])
        parts = questions.split([count for one in wanted for count in one])
        answers, admitted, refused = self._answer(
            [torch.cat(parts[table::len(self.tables)]) for table in tables], learns)
        rows = [one.split([of_rank[table] for of_rank in wanted])
                for table, one in enumerate(answers)]
        for_ranks = [[self._held_by(table, rank, *admitted[table]) for table in tables]
                     for rank in range(size)]
        heads = [torch.tensor([sum(one[0].shape[0] for one in admitted), *refused,
                               *(one.shape[0] for one in for_ranks[rank])]) for rank in range(size)]
        head = heads[0].shape[0]
        replies = self._exchange.split(
            torch.cat([part for rank in range(size)
                       for part in (heads[rank], *(rows[table][rank] for table in tables))]),
            [head + sum(one) for one in wanted],
            [head + sum(counts[table][rank] for table in tables) for rank in range(size)])
        pieces = replies.split([length for rank in range(size)
                                for length in (head, *(counts[table][rank] for table in tables))])
        told = [one.tolist() for one in pieces[::len(self.tables) + 1]]
        if any(one[0] for one in told):
            self._begin_anew(for_ranks, [one[3:] for one in told])
        for owner, (_, table, refused_id, *_) in enumerate(told):
            if table >= 0:
                self._raise_full(owner, table, refused_id)
        return [torch.cat([pieces[rank * (len(self.tables) + 1) + 1 + table] for rank in range(size)])
                for table in tables]

    def _answer(self, ids: Sequence[torch.Tensor], learns: bool) -> tuple[
            list[torch.Tensor], list[tuple[torch.Tensor, torch.Tensor]], tuple[int, int]]:
        """By table: the rows of ids that this rank owns; rows that have another id now, and these. Then the
        first table that refuses an id, or -1, and the id."""
        self._lookup += 1
        first_held = self._first_held()
        rows, admitted, refusal = [], [], (-1, 0)
        for number, (table, own) in enumerate(zip(self.tables, ids)):
            if not learns:
                rows.append(table.owner.find(own, self._lookup))
                admitted.append((own[:0], own[:0]))
                continue
            found, new_rows, new_ids, refused = table.owner.train(own, self._lookup, first_held)
            rows.append(found)
            admitted.append((new_rows, new_ids))
            if refused.numel() and refusal[0] < 0:
                refusal = number, int(refused)
        return rows, admitted, refusal

    def _first_held(self) -> int:
        """The first lookup that uses rows still: its results are not there, or its update is not done."""
        if self._open and not self._ops.keeps_gradients(self._model):
            open_steps = set(self._ops.open_steps(self._model))
            self._open = [one for one in self._open if one[1] in open_steps]
        return self._open[0][0] if self._open else self._lookup

    def _held_by(self, table: int, rank: int, rows: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """(row, id) of those rows that the rank has shards of, [n, 2]."""
        ranges = self._held_rows[table][rank]
        pairs = torch.stack([rows, ids], dim=1)
        if not rows.numel() or ranges == [(0, self.tables[table].shared_row + 1)]:
            return pairs
        held = torch.zeros_like(rows, dtype=torch.bool)
        for begin, end in ranges:
            held |= (rows >= begin) & (rows < end)
        return pairs[held]

    def _begin_anew(self, for_ranks: Sequence[Sequence[torch.Tensor]],
                    counts: Sequence[Sequence[int]]) -> None:
        """Gives rows with new ids the weights and states that these begin with. counts: by owner and
        table."""
        received = self._exchange.split(
            torch.cat([pairs for one in for_ranks for pairs in one]),
            [sum(pairs.shape[0] for pairs in one) for one in for_ranks], [sum(one) for one in counts])
        parts = received.split([count for one in counts for count in one])
        for number, table in enumerate(self.tables):
            pairs = torch.cat(parts[number::len(self.tables)])
            if pairs.numel():
                self._ops.assign_rows(self._model, table.index, pairs[:, 0].contiguous(),
                                      pairs[:, 1].contiguous(), table.seed)

    def _raise_full(self, owner: int, table: int, refused_id: int) -> None:
        name = self.tables[table].name
        raise TensorError(
            f"table \"{name}\" has no row for id {refused_id}: all rows that rank {owner} gives to ids are "
            "taken; give the table more rows, or DynamicIds(when_full=\"evict\")")


def require_same_states(states: Sequence[int]) -> None:
    """Raises a TensorError on all ranks if some train and others do not."""
    for rank, state in enumerate(states):
        if state != states[0]:
            raise TensorError(f"rank {rank} starts {STATES[state]}, rank 0 {STATES[states[0]]}; with dynamic "
                              "ids all ranks must train, or none")
