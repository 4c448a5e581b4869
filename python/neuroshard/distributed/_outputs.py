"""Results as TorchRec's KeyedTensor and JaggedTensor; imports torchrec on the first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from neuroshard._jagged import Jagged
from neuroshard.distributed._operators import Result


def make_keyed(names: Sequence[str], dims: Sequence[int],
               results: Sequence[torch.Tensor]) -> object:
    """A KeyedTensor: all results side by side. results: one tensor for each name, or one that has
    the columns of all."""
    from torchrec.sparse.jagged_tensor import KeyedTensor

    values = results[0] if len(results) == 1 else torch.cat(list(results), dim=1)
    return KeyedTensor(keys=list(names), length_per_key=list(dims), values=values)


def make_jagged_tensors(rows: Mapping[str, tuple[torch.Tensor, torch.Tensor]]) -> object:
    from torchrec.sparse.jagged_tensor import JaggedTensor

    return {name: JaggedTensor(values=values, offsets=offsets, lengths=offsets.diff())
            for name, (values, offsets) in rows.items()}


def of_batches(results: Sequence[torch.Tensor], lookups: Sequence[Result],
               ids: Jagged) -> list[torch.Tensor]:
    """Pooled results of the bags of their features or, with inverse indices, of samples."""
    return [own_bags(one, lookup.feature, ids) if lookup.pooled else one
            for one, lookup in zip(results, lookups)]


def own_bags(result: torch.Tensor, feature: int, ids: Jagged) -> torch.Tensor:
    if ids.batches is not None:
        result = result[:ids.batches[feature]]
    return result if ids.inverse is None else result.index_select(0, ids.inverse[feature])


def split_rows(ids: Jagged, features: int) -> list[torch.Tensor]:
    """The offsets of each feature, [its bags + 1], from 0."""
    batch = (ids.offsets.shape[0] - 1) // features
    batches = ids.batches or [batch] * features
    parts = [ids.offsets[one * batch:one * batch + own + 1] for one, own in enumerate(batches)]
    return [part - part[0] for part in parts]
