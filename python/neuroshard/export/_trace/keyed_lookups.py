"""Makes TorchRec's collections trace as one operator for each lookup.

Their own forward splits a KeyedJaggedTensor at positions that depend on the data, which
torch.export turns into a graph without recognisable lookups. While a model is traced, their forward
is replaced by calls of neuroshard_export::lookup on the tensors of the whole KeyedJaggedTensor.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from neuroshard.export._trace.arguments import require_one_batch
from neuroshard.export.errors import ExportError

_library = torch.library.Library("neuroshard_export", "FRAGMENT")
_library.define("lookup(Tensor table, Tensor values, Tensor lengths, Tensor? weights, "
                "str[] keys, int key, str pooling) -> Tensor")


@torch.library.register_fake("neuroshard_export::lookup", lib=_library)
def _shape_of_lookup(table: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor,
                     weights: torch.Tensor | None, keys: list[str], key: int,
                     pooling: str) -> torch.Tensor:
    rows = (torch.library.get_ctx().new_dynamic_size() if pooling == "unpooled"
            else lengths.shape[0] // len(keys))
    return table.new_empty((rows, table.shape[1]))


@contextmanager
def traceable_collections(model: torch.nn.Module) -> Iterator[None]:
    """Within this context the collections of the model trace as lookups."""
    if "torchrec" not in sys.modules:
        yield
        return
    changed = []
    try:
        for path, module in model.named_modules():
            if forward := _forward_of(path, module):
                module.forward = types.MethodType(forward, module)
                changed.append(module)
        yield
    finally:
        for module in changed:
            del module.forward


def _forward_of(path: str, module: torch.nn.Module) -> object:
    from torchrec.modules.embedding_modules import (EmbeddingBagCollection,
                                                    EmbeddingBagCollectionInterface,
                                                    EmbeddingCollection,
                                                    EmbeddingCollectionInterface)
    if type(module) is EmbeddingBagCollection:
        return _pooled
    if type(module) is EmbeddingCollection:
        return _unpooled
    if isinstance(module, (EmbeddingBagCollectionInterface, EmbeddingCollectionInterface)):
        raise ExportError(f"{path}: a {type(module).__name__} cannot be exported; expected an "
                          "EmbeddingBagCollection or an EmbeddingCollection, neither sharded, "
                          "fused nor quantised")
    return None


def _lookup(features: object, weight: torch.Tensor, name: str, pooling: str,
            weighted: bool) -> torch.Tensor:
    keys = list(features.keys())
    if name not in keys:
        raise ExportError(f"there is no feature \"{name}\" in the KeyedJaggedTensor of {keys}")
    return torch.ops.neuroshard_export.lookup(
        weight, features.values(), features.lengths(), features.weights() if weighted else None,
        keys, keys.index(name), pooling).float()


def _pooled(self: torch.nn.Module, features: object) -> object:
    from torchrec.sparse.jagged_tensor import KeyedTensor

    require_one_batch(features)
    results = [_lookup(features, bag.weight, name, bag.mode, self.is_weighted())
               for bag, names in zip(self.embedding_bags.values(), self._feature_names)
               for name in names]
    return KeyedTensor(keys=self._embedding_names, values=torch.cat(results, 1),
                       length_per_key=self._lengths_per_embedding)


def _unpooled(self: torch.nn.Module, features: object) -> object:
    from torchrec.sparse.jagged_tensor import JaggedTensor

    require_one_batch(features)
    keys = list(features.keys())
    results = {}
    for table, names, outputs in zip(self.embeddings.values(), self._feature_names,
                                     self._embedding_names_by_table):
        for name, output in zip(names, outputs):
            rows = _lookup(features, table.weight, name, "unpooled", False)
            # Only need_indices asks for this key's values, which splits the tensor.
            weights = features[name].values() if self.need_indices() else None
            lengths = features.lengths().view(len(keys), -1)[keys.index(name)]
            results[output] = JaggedTensor(values=rows, lengths=lengths, weights=weights)
    return results
