"""Converts row-wise optimizer states between plans that cut columns at different places.

The state of a range of columns is a mean over these columns. The state of another range is
therefore the mean of the states it overlaps, each weighted by the number of common columns;
docs/checkpoints.md has the formula and its limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neuroshard.distributed._checkpoint.sharded import Chunk, RowState, Sharded, Span

# Rows merged at a time in double precision, which bounds the memory it takes.
MERGED_ROWS = 1 << 20

_SUFFIX = re.compile(r"(.*)\.columns_(\d+)_(\d+)")


class Merge(NamedTuple):
    """The row-wise states of one table, read from a checkpoint whose columns are cut elsewhere.

    keys: the keys to read in place of the module's own. states: the states of this rank's shards.
    sources: for each range of columns in the checkpoint, the tensors to read it into, by position
    in `states`; one value per row of the shard.
    """

    keys: tuple[str, ...]
    states: tuple[RowState, ...]
    sources: dict[Span, dict[int, Tensor]]

    def finish(self) -> None:
        """Writes the weighted means to the shards. They are computed in double precision and
        rounded once, so equal states keep their bits."""
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
    """By state that is saved by ranges of columns: its keys and their ranges, in order."""
    found: dict[str, dict[str, Span]] = {}
    for name in saved:
        match = _SUFFIX.fullmatch(name)
        if match:
            found.setdefault(match[1], {})[name] = (int(match[2]), int(match[3]))
    return {key: dict(sorted(names.items(), key=lambda item: item[1]))
            for key, names in found.items()}


def plan_merges(target: dict[str, Any], saved: Iterable[str]) -> list[Merge]:
    """Replaces the row-wise states in `target` that are saved for other ranges of columns by the
    tensors to read; call finish() on each merge once they are read. States that are not saved stay
    in the target. The result depends on the plan and the keys alone, which all ranks share."""
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
    """Whether sorted ranges follow each other without a gap from end to end of the whole."""
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
            Chunk((states[number].row,), tensor) for number, tensor in read.items()])
        merge.sources[columns] = read
    return merge
