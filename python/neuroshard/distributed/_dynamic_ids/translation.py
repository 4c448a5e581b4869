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
        size = self._exchange.size
        self._exchange.with_heads("ids", [[FAILED, *(0 for _ in self.tables)]] * size,
                                  [torch.empty(0, dtype=torch.int64)] * size)

    @torch.compiler.disable
    def translate(self, ids: Jagged, learns: bool) -> Jagged:
        """ids: as operators take them. Raises a TensorError on all ranks if a table is full and refuses ids,
        and if some ranks train and others do not. Where the step fails on some rank, ids become those of
        the shared rows."""
        counts = self._counts(ids)
        if counts is None:  # the step tells what is wrong with them
            self.fail()
            return ids
        values = ids.ids.cpu()
        places = [self._places(counts, readers) for readers in self._readers]
        asked = [self._ops.distinct_ids(values[one].contiguous(), self._exchange.size) for one in places]
        sizes = [one[2] for one in asked]
        told, questions = self._send([one[0].split(one[2]) for one in asked],
                                     TRAINING if learns else LOOKUP)
        states = [one[0] for one in told]
        if FAILED in states:
            rows = [torch.full_like(values[one], table.shared_row)
                    for one, table in zip(places, self.tables)]
        else:
            require_same_states(states)
            found = self._take(self._reply([one[1:] for one in told], questions, learns), sizes)
            rows = [of_table.index_select(0, one[1]) for of_table, one in zip(found, asked)]
        translated = values.clone()
        for one, of_table in zip(places, rows):
            translated[one] = of_table
        return ids._replace(ids=translated.to(ids.ids.device, non_blocking=True))

    def _counts(self, ids: Jagged) -> list[int] | None:
        """The ids of each feature; None if ids or offsets are wrong."""
        if ids.ids.dtype != torch.int64 or ids.offsets.dtype != torch.int64 or ids.offsets.dim() != 1:
            return None
        if ids.offsets.shape[0] == 1 and ids.ids.numel() == 0:  # no samples
            return [0] * self._features
        return counts_of(ids, self._features)

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

    def _send(self, asked: Sequence[Sequence[torch.Tensor]],
              state: int) -> tuple[list[list[int]], list[torch.Tensor]]:
        """asked: by table and rank, ids. Gives by rank its state, how many ids of each table it asks this
        one for, and these."""
        by_rank = list(zip(*asked))
        return self._exchange.with_heads("ids", [[state, *(ids.shape[0] for ids in one)] for one in by_rank],
                                         [torch.cat(one) for one in by_rank])

    def _reply(self, counts: Sequence[Sequence[int]], questions: Sequence[torch.Tensor],
               learns: bool) -> tuple[list[list[int]], list[torch.Tensor]]:
        """Tells each rank the rows of its ids, and which rows that it has shards of have another id now.
        counts: by rank and table. Gives what all ranks tell this one."""
        size, tables = self._exchange.size, range(len(self.tables))
        parts = [question.split(list(count)) for question, count in zip(questions, counts)]
        answers, admitted, refused = self._answer(
            [torch.cat([one[table] for one in parts]) for table in tables], learns)
        rows = [one.split([count[table] for count in counts]) for table, one in enumerate(answers)]
        held = [[self._held_by(table, rank, *admitted[table]) for table in tables]
                for rank in range(size)]
        return self._exchange.with_heads(
            "rows", [[*refused, *(pairs.shape[0] for pairs in one)] for one in held],
            [torch.cat([*(of_table[rank] for of_table in rows), *(pairs.flatten() for pairs in held[rank])])
             for rank in range(size)])

    def _take(self, replies: tuple[list[list[int]], list[torch.Tensor]],
              sizes: Sequence[Sequence[int]]) -> list[torch.Tensor]:
        """The rows of the distinct ids of each table, by owner; lets rows that have another id begin anew.
        sizes: by table and rank, how many ids it was asked for."""
        told, values = replies
        tables = range(len(self.tables))
        pieces = [one.split([*(sizes[table][rank] for table in tables), *(2 * count for count in head[2:])])
                  for rank, (head, one) in enumerate(zip(told, values))]
        for number, table in enumerate(self.tables):
            pairs = torch.cat([one[len(self.tables) + number] for one in pieces]).reshape(-1, 2)
            if pairs.numel():
                self._ops.assign_rows(self._model, table.index, pairs[:, 0].contiguous(),
                                      pairs[:, 1].contiguous(), table.seed)
        for owner, (number, refused_id, *_) in enumerate(told):
            if number >= 0:
                self._raise_full(owner, number, refused_id)
        return [torch.cat([one[number] for one in pieces]) for number in tables]

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
