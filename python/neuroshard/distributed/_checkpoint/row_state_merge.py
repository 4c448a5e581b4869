"""Row-wise optimizer states between plans that cut columns at different places.

A state of some columns is the mean over them of what the optimizer sums up. That of other
columns is therefore the mean of the states it overlaps, each weighted by how many of its columns
it covers; docs/checkpoints.md has the formula and what it leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neuroshard.distributed._checkpoint.sharded import Piece, RowState, Sharded, Span

# Rows that are merged at a time, in double precision.
MERGED_ROWS = 1 << 20

_SUFFIX = re.compile(r"(.*)\.columns_(\d+)_(\d+)")


class Merge(NamedTuple):
    """Row-wise states of a checkpoint on their way into shards with other columns.

    keys: what is read, in place of values of the module. states: those of this rank's shards.
    sources: per range of columns in the checkpoint, by position in `states`, what is read for
    it: one value per row of the shard.
    """

    keys: tuple[str, ...]
    states: tuple[RowState, ...]
    sources: dict[Span, dict[int, Tensor]]

    def finish(self) -> None:
        """Gives each shard its mean, in double precision and rounded once: equal states give
        the same bits again."""
        for number, state in enumerate(self.states):
            for begin in range(0, len(state.tensor), MERGED_ROWS):
                rows = slice(begin, begin + MERGED_ROWS)
                state.tensor[rows] = self._mean(number, rows).to(state.tensor.dtype)

    def _mean(self, number: int, rows: slice) -> Tensor:
        state = self.states[number]
        total = torch.zeros_like(state.tensor[rows], dtype=torch.float64)
        for columns, read in self.sources.items():
            if number in read:
                total += shared(columns, state.columns) * read[number][rows].double()
        return total / (state.columns[1] - state.columns[0])


def shared(a: Span, b: Span) -> int:
    """Number of columns in both."""
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def saved_columns(saved: Iterable[str]) -> dict[str, dict[str, Span]]:
    """Of all states that are saved by ranges of columns: under which keys, in order of columns."""
    found: dict[str, dict[str, Span]] = {}
    for name in saved:
        match = _SUFFIX.fullmatch(name)
        if match:
            found.setdefault(match[1], {})[name] = (int(match[2]), int(match[3]))
    return {key: dict(sorted(names.items(), key=lambda item: item[1]))
            for key, names in found.items()}


def plan_merges(target: dict[str, Any], saved: Iterable[str]) -> list[Merge]:
    """Replaces, in the target, row-wise states that are saved for other columns by what has to be
    read; finish() each merge after that. States that are not saved are left for the caller to
    miss. Depends on the plan and the keys alone, which are the same on all ranks."""
    saved = set(saved)
    by_columns = saved_columns(saved)
    ours: dict[str, dict[str, Sharded]] = {}
    for name, value in target.items():
        if isinstance(value, Sharded) and value.row_wise:
            ours.setdefault(name.removesuffix(value.row_wise.suffix), {})[name] = value
    merges = []
    for key, values in ours.items():
        value = next(iter(values.values()))
        whole = (0, value.row_wise.dim)
        found = {key: whole} if key in saved else by_columns.get(key, {})
        in_place = set(found) == set(values) and not value.row_wise.spanning
        if in_place or not _covers(whole, found.values()):
            continue
        for name in values:
            del target[name]
        merges.append(_plan_merge(target, value, found))
    return merges


def _covers(whole: Span, ranges: Iterable[Span]) -> bool:
    """Whether ranges in order follow each other from end to end."""
    reached = whole[0]
    for begin, end in ranges:
        if begin != reached:
            return False
        reached = end
    return reached == whole[1]


def _plan_merge(target: dict[str, Any], value: Sharded, found: dict[str, Span]) -> Merge:
    states = value.row_wise.states
    merge = Merge(tuple(found), states, {})
    for key, columns in found.items():
        read = {number: torch.empty_like(state.tensor) for number, state in enumerate(states)
                if shared(columns, state.columns)}
        target[key] = Sharded(value.size(), value.dtype, [
            Piece((states[number].row,), tensor) for number, tensor in read.items()])
        merge.sources[columns] = read
    return merge
