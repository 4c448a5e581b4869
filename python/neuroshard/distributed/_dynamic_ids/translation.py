"""Ids to rows before a step: each id goes to the rank that owns its part of the map, and comes back as
a row of the table. Rows that get another id begin anew on all ranks that hold a part of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from neuroshard._jagged import Jagged
from neuroshard.distributed._dynamic_ids.exchange import Exchange
from neuroshard.distributed._dynamic_ids.id_table import IdTable
from neuroshard.distributed._out_of_range import counts_of
from neuroshard.errors import TensorError

FAILED, LOOKUP, TRAINING = range(3)  # StepState (lib/RuntimeTorch/Ids/IdTranslation.h)
STATES = ("nothing", "a lookup without training", "training")


@dataclass(eq=False)
class Ahead:
    """Ids that become rows ahead of their step. ids: None where they cannot be sent. anew: by table, rows
    that begin anew with the step, and their ids."""

    ids: Jagged | None
    state: int
    lookup: int
    anew: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)


class Translation:
    """Of the dynamic tables of a module. All ranks call fail() or translate() for each step; or, for
    steps to come, begin(), and then in the order of the steps finish() and keep()."""

    def __init__(self, tables: Sequence[IdTable], readers: Sequence[Sequence[int]], features: int,
                 held_rows: Sequence[Sequence[Sequence[tuple[int, int]]]], exchange: Exchange,
                 model: str) -> None:
        """readers: of each table, the features that read it, of `features`. held_rows: of each table, by
        rank, the ranges of its rows that the rank has shards of. model: the name of the open model."""
        self.tables = tuple(tables)
        self._features, self._model = features, model
        self._ops = torch.ops.neuroshard
        held = [[[bound for span in ranges for bound in span] for ranges in of_table] for of_table in held_rows]
        self._native = torch.classes.neuroshard.IdTranslation(
            exchange.native, [table.owner for table in tables], readers, held)
        self._ranks = exchange.size
        self._lookup = 0
        self._ahead: deque[int] = deque()  # lookups that are begun and not kept
        self._open: list[tuple[int, int]] = []  # lookups that use rows still, and their steps

    def fail(self) -> None:
        """Instead of translate(), on a rank whose ids cannot be sent."""
        self.recall()
        self._lookup += 1
        self._exchange(torch.empty(0, dtype=torch.int64), [], FAILED)

    @torch.compiler.disable
    def translate(self, ids: Jagged, learns: bool) -> Jagged:
        """ids: as operators take them. Raises a TensorError on all ranks if a table is full and refuses ids,
        and if some ranks train and others do not. Where the step fails on some rank, ids become those of
        the shared rows."""
        counts = self._counts(ids)
        if counts is None:  # the step tells what is wrong with them
            self.fail()
            return ids
        self.recall()
        self._lookup += 1
        rows, states, anew, refusal = self._exchange(ids.ids.cpu().contiguous(), counts,
                                                     TRAINING if learns else LOOKUP)
        self._assign(anew)
        self._require_rows(states, refusal)
        return ids._replace(ids=rows.to(ids.ids.device, non_blocking=True))

    def begin(self, ids: Jagged | None, learns: bool) -> Ahead:
        """Ids of a step to come, in another thread. Steps before it are expected to be over when it begins.
        None: of a rank whose ids cannot be sent."""
        counts = None if ids is None else self._counts(ids)
        state = FAILED if counts is None else TRAINING if learns else LOOKUP
        self._lookup += 1
        values = torch.empty(0, dtype=torch.int64) if counts is None else ids.ids.cpu().contiguous()
        self._ahead.append(self._lookup)
        self._native.begin(values, counts or [], state, self._lookup)
        return Ahead(ids, state, self._lookup)

    def finish(self, ahead: Ahead) -> Jagged | None:
        """The same with rows in place of ids. Raises what translate() does, and a DistBackendError."""
        rows, states, ahead.anew, refusal = self._parts(self._native.finish())
        if ahead.state == FAILED:
            return ahead.ids
        self._require_rows(states, refusal)
        return ahead.ids._replace(ids=rows.to(ahead.ids.ids.device, non_blocking=True))

    def holds(self, ahead: Ahead, learns: bool) -> bool:
        """Whether a step that begins now is as it was expected: lookups before it are over, and its mode."""
        return (ahead.state == FAILED or ahead.state == (TRAINING if learns else LOOKUP)) \
            and self._first_held(ahead.lookup) == ahead.lookup

    def keep(self, ahead: Ahead) -> None:
        """Lets the maps be as finish() has left them. To be called when the step begins: rows begin anew."""
        self._native.keep(self._ahead.popleft())
        self._assign(ahead.anew)

    def recall(self, tells: bool = True) -> None:
        """Lets the maps be as they were before all that was begun and not kept. All ranks call it; ranks that
        keep() the first of that instead end the group, if this one tells them."""
        if self._ahead:
            self._native.recall(self._ahead[0], tells)
        self._ahead.clear()

    def _assign(self, anew: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
        for table, (rows, ids) in zip(self.tables, anew):
            if rows.numel():
                self._ops.assign_rows(self._model, table.index, rows, ids, table.seed)

    def _require_rows(self, states: Sequence[int], refusal: Sequence[int]) -> None:
        if FAILED not in states:
            require_same_states(states)
        if refusal:
            self._raise_full(*refusal)

    def _exchange(self, ids: torch.Tensor, counts: Sequence[int], state: int) -> tuple[
            torch.Tensor, list[int], list[tuple[torch.Tensor, torch.Tensor]], list[int]]:
        return self._parts(self._native.translate(ids, counts, state, self._lookup, self._first_held(self._lookup)))

    def _parts(self, result: Sequence[torch.Tensor]) -> tuple[
            torch.Tensor, list[int], list[tuple[torch.Tensor, torch.Tensor]], list[int]]:
        """Rows, the states of all ranks, by table rows that begin anew and their ids, and rank, table and id of a
        refusal if there is one: of a result of IdTranslation (lib/RuntimeTorch/Ids/IdOperators.cpp)."""
        rows, report, *anew = result
        numbers = report.tolist()
        return rows, numbers[:self._ranks], list(zip(anew[::2], anew[1::2])), numbers[self._ranks:]

    def _counts(self, ids: Jagged) -> list[int] | None:
        """The ids of each feature; None if ids or offsets are wrong."""
        if ids.ids.dtype != torch.int64 or ids.offsets.dtype != torch.int64 or ids.offsets.dim() != 1:
            return None
        if ids.offsets.shape[0] == 1 and ids.ids.numel() == 0:  # no samples
            return [0] * self._features
        return counts_of(ids, self._features)

    @torch.compiler.disable
    def note_step(self, ticket: torch.Tensor, ahead: Ahead | None = None) -> None:
        """The step that the last translated ids have begun, or `ahead`: it uses their rows until it is
        over."""
        self._open.append((ahead.lookup if ahead else self._lookup, int(ticket)))

    def _first_held(self, lookup: int) -> int:
        """The first lookup, up to this one, that uses rows still: its results are not there, or its update is
        not done."""
        if not self._ops.keeps_gradients(self._model):  # an error if the tables are closed
            open_steps = set(self._ops.open_steps(self._model))
            self._open = [one for one in self._open if one[1] in open_steps]
        return min([lookup, *(one for one, _ in self._open)])

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
