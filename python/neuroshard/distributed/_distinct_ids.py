"""Ids of unpooled features without repetitions, and the rows of all ids from the rows of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

from neuroshard import _fields
from neuroshard._jagged import Jagged
from neuroshard.distributed._operators import Result
from neuroshard.distributed._out_of_range import counts_of


class Sent(NamedTuple):
    """The ids of a step: those that were given, those that were sent, and by feature, for each id given, the
    number of its row among those of the ids sent, i64 [ids]; places: None where both are the same."""

    given: Jagged
    ids: Jagged
    places: Sequence[torch.Tensor] | None = None

    def all_rows(self, results: Sequence[torch.Tensor], lookups: Sequence[Result]) -> Sequence[torch.Tensor]:
        """The rows of the ids given, from those of the ids sent, [ids, dim] of each lookup."""
        if self.places is None:
            return results
        return [RowsOfIds.apply(rows, self.places[one.feature]) for rows, one in zip(results, lookups)]


class RowsOfIds(torch.autograd.Function):
    """Rows by their numbers, [ids, dim]. The gradient of a row is the sum of those of its ids, in their
    order, in f32, rounded once to the type of the rows."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(places)
        ctx.count = len(rows)
        return rows.index_select(0, places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        (places,), terms = ctx.saved_tensors, gradients.float()
        if terms.is_cuda:  # index_add_ adds in any order there
            sums = torch.ops.aten.embedding_dense_backward(terms, places, ctx.count, -1, False)
        else:
            sums = terms.new_zeros(ctx.count, terms.shape[1]).index_add_(0, places, terms)
        return sums.to(gradients.dtype), None


def check_asked(asked: object, unpooled: bool) -> bool:
    """Raises a TypeError or ValueError for what is no answer to whether distinct ids are sent."""
    if not isinstance(asked, bool):
        raise TypeError(f"distinct_ids: expected a bool, found {_fields.shown(asked)}")
    if asked and not unpooled:
        raise ValueError("distinct_ids: expected False for pooled features, whose results travel once for each "
                         "sample, found True")
    return asked


class DistinctIds:
    """Takes repeated ids out of what is sent, if that is asked for."""

    def __init__(self, asked: bool) -> None:
        """use() comes before all else."""
        self.asked = asked

    def use(self, rows: Sequence[int]) -> None:
        """rows: of the table of each feature of the input."""
        self._rows = rows

    def apply(self, ids: Jagged) -> Sent:
        """ids: as operators take them. A compiled program sends all, as the number of others is not known."""
        if not self.asked or torch.compiler.is_compiling():
            return Sent(ids, ids)
        return distinct(ids, self._rows)


def distinct(ids: Jagged, rows: Sequence[int]) -> Sent:
    """Each id of a feature once, ascending, all in the feature's first bag, or the ids as they are where none
    is repeated.

    rows: of the table of each feature. Ids that no table has, and wrong offsets, are left as they are: the
    step, which refuses them, names their places."""
    counts = counts_of(ids, len(rows))
    if counts is None or not len(ids.ids):
        return Sent(ids, ids)
    device = ids.ids.device
    of_table = torch.tensor(rows, device=device)
    first = of_table.cumsum(0) - of_table  # of rows numbered over the tables of all features
    feature = torch.repeat_interleave(torch.tensor(counts, device=device))
    if bool(((ids.ids < 0) | (ids.ids >= of_table[feature])).any()):
        return Sent(ids, ids)
    kept, places = torch.unique(ids.ids + first[feature], return_inverse=True)
    if len(kept) == len(ids.ids):
        return Sent(ids, ids)
    begins = torch.searchsorted(kept, torch.cat([first, first[-1:] + of_table[-1:]]))
    own = torch.repeat_interleave(begins.diff())
    bags = (ids.offsets.shape[0] - 1) // len(rows)
    ends = begins[1:, None].expand(len(rows), bags - 1)
    offsets = torch.cat([torch.cat([begins[:-1, None], ends], dim=1).reshape(-1), begins[-1:]])
    sent = ids._replace(ids=(kept - first[own]).to(ids.ids.dtype), offsets=offsets,
                        feature_begin=None)
    return Sent(ids, sent, [part - begin for part, begin in zip(places.split(counts), begins)])
