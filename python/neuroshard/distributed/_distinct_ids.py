"""Ids of unpooled features without repetitions, and the rows of all ids from the rows of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

from neuroshard import _fields
from neuroshard._jagged import Jagged
from neuroshard.distributed._operators import Result
from neuroshard.distributed._out_of_range import are_offsets, counts_of


class Sent(NamedTuple):
    """The ids of a step: those that were given, those that were sent, and by feature, for each id given, the
    number of its row among those of the ids sent, i64 [ids], or None for pooled features; places: None where
    ids given and sent are the same."""

    given: Jagged
    ids: Jagged
    places: Sequence[torch.Tensor | None] | None = None

    def all_rows(self, results: Sequence[torch.Tensor], lookups: Sequence[Result]) -> Sequence[torch.Tensor]:
        """The results for the ids given, from those for the ids sent, of each lookup."""
        if self.places is None:
            return results
        places = [self.places[one.feature] for one in lookups]
        return [rows if own is None else RowsOfIds.apply(rows, own) for rows, own in zip(results, places)]


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
    """Takes repeated ids out of what is sent for unpooled features, if that is asked for."""

    def __init__(self, asked: bool) -> None:
        """use() comes before all else."""
        self.asked = asked

    def use(self, rows: Sequence[int], unpooled: Sequence[bool]) -> None:
        """rows: of the table of each feature of the input. unpooled: whether it is."""
        self._rows, self._unpooled = rows, unpooled

    def apply(self, ids: Jagged) -> Sent:
        """ids: as operators take them. A compiled program sends all, as the number of others is not known."""
        if not self.asked or torch.compiler.is_compiling():
            return Sent(ids, ids)
        return distinct(ids, self._rows, self._unpooled)


def distinct(ids: Jagged, rows: Sequence[int], unpooled: Sequence[bool]) -> Sent:
    """Each id of an unpooled feature once, ascending, all in the feature's first bag, and pooled features as
    they are; the ids as they are where none is repeated.

    rows: of the table of each feature. Ids that no table has, and wrong offsets, are left as they are: the
    step, which refuses them, names their places."""
    counts = counts_of(ids, len(rows))
    if counts is None or not len(ids.ids) or not are_offsets(ids):
        return Sent(ids, ids)
    device = ids.ids.device
    given = begins_of(torch.tensor(counts, device=device))
    feature = torch.repeat_interleave(given.diff())
    is_distinct, of_table = (torch.tensor(one, device=device) for one in (unpooled, rows))
    if bool((is_distinct[feature] & ((ids.ids < 0) | (ids.ids >= of_table[feature]))).any()):
        return Sent(ids, ids)
    # What is kept is numbered over all features: rows of the tables of unpooled ones, ids of the others.
    first = begins_of(torch.where(is_distinct, of_table, given.diff()))
    places = torch.arange(len(ids.ids), device=device)
    own = torch.where(is_distinct[feature], ids.ids, places - given[feature])
    kept, numbers = torch.unique(own + first[feature], return_inverse=True)
    if len(kept) == len(ids.ids):
        return Sent(ids, ids)
    one_of = torch.empty_like(kept).scatter_(0, numbers, places)
    begins = torch.searchsorted(kept, first)
    sent = ids._replace(ids=ids.ids[one_of], offsets=offsets_of(ids.offsets, given, begins, is_distinct),
                        weights=None if ids.weights is None else ids.weights[one_of], feature_begin=None)
    return Sent(ids, sent, [part - begin if one else None for part, begin, one
                            in zip(numbers.split(counts), begins, unpooled)])


def begins_of(counts: torch.Tensor) -> torch.Tensor:
    """Where each part begins, and the end of the last."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def offsets_of(given: torch.Tensor, begins_given: torch.Tensor, begins: torch.Tensor,
               is_distinct: torch.Tensor) -> torch.Tensor:
    """The offsets of what is sent. given: the offsets of all ids, [features * batch + 1]; begins_given, begins:
    where each feature's ids begin in both, and the last one's end, [features + 1]."""
    as_given = given[:-1].reshape(len(is_distinct), -1) + (begins - begins_given)[:-1, None]
    in_first_bag = torch.cat([begins[:-1, None], begins[1:, None].expand(-1, as_given.shape[1] - 1)], dim=1)
    return torch.cat([torch.where(is_distinct[:, None], in_first_bag, as_given).reshape(-1), begins[-1:]])
