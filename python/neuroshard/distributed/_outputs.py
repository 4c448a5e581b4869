"""Results as TorchRec's KeyedTensor and JaggedTensor; imports torchrec on the first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch


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


def split_rows(offsets: torch.Tensor, features: int) -> list[torch.Tensor]:
    """The offsets of each feature, [batch + 1], from 0."""
    batch = (offsets.shape[0] - 1) // features
    parts = [offsets[one * batch:(one + 1) * batch + 1] for one in range(features)]
    return [part - part[0] for part in parts]
