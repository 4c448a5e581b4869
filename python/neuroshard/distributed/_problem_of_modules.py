"""Problems from modules of PyTorch and TorchRec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import torch

from neuroshard._artifact.dtypes import ELEMENT_TYPES
from neuroshard.problem import ShardingProblem
from neuroshard.tables import Batch, Feature, Optimizer, Table
from neuroshard.topology import Topology

TORCHREC_TYPES = {"FP32": "f32", "FP16": "f16", "BF16": "bf16"}


def problem_of(module: object, *, batch: Batch | int, topology: Topology | str,
               optimizer: Optimizer | str = "sgd",
               mean_pooling: float | Mapping[str, float] = 1, **rest: object) -> ShardingProblem:
    """The ShardingProblem of a torchrec EmbeddingBagCollection or EmbeddingCollection, or of
    nn.EmbeddingBag and nn.Embedding modules by feature name.

    batch: over all ranks. mean_pooling: ids per sample, for all features or by name. rest:
    other fields of ShardingProblem. A feature that several tables read is in the problem for each
    of them, as feature@table."""
    tables, features = (_of_modules(module) if isinstance(module, (Mapping, torch.nn.ModuleDict))
                        else _of_torchrec(module))
    keys = {one["name"]: key_of(one["name"], one["table"]) for one in features}
    pooling = (dict(mean_pooling) if isinstance(mean_pooling, Mapping)
               else dict.fromkeys(keys.values(), mean_pooling))
    unknown = set(pooling) - set(keys) - set(keys.values())
    if unknown:
        raise ValueError(f"mean_pooling: there is no feature {sorted(unknown)}")
    return ShardingProblem(
        tables=[Table(optimizer=optimizer, **one) for one in tables],
        features=[Feature(mean_pooling=pooling.get(name, pooling.get(keys[name], 1)), **one)
                  for one in features for name in (one["name"],)],
        batch=batch, topology=topology, **rest)


def key_of(feature: str, table: str) -> str:
    """The key in a batch of a problem's feature. A feature that several tables read appears in the
    problem once for each of them as feature@table, TorchRec's name for their results."""
    return feature.removesuffix(f"@{table}")


def _of_modules(modules: Mapping) -> tuple[list[dict], list[dict]]:
    """The tables and features of modules. A module under several names is one table, named after
    its first feature."""
    tables: dict[int, dict] = {}
    features = []
    for name, module in modules.items():
        if not isinstance(module, (torch.nn.EmbeddingBag, torch.nn.Embedding)):
            raise TypeError(f"{name}: expected an nn.EmbeddingBag or nn.Embedding, got: "
                            f"{type(module).__name__}")
        pooling = getattr(module, "mode", "none")
        _refuse(name, pooling == "max", "mode 'max'", "'sum' or 'mean'")
        _refuse(name, module.max_norm is not None, "max_norm", "none")
        _refuse(name, module.scale_grad_by_freq, "scale_grad_by_freq", "False")
        _refuse(name, module.padding_idx is not None, "padding_idx", "none: leave such ids out")
        _refuse(name, module.weight.dtype not in ELEMENT_TYPES, str(module.weight.dtype),
                "f32, f16, bf16")
        table = tables.setdefault(id(module), {
            "name": name, "rows": module.num_embeddings, "dim": module.embedding_dim,
            "type": ELEMENT_TYPES.get(module.weight.dtype)})
        features.append({"name": name, "table": table["name"], "pooling": pooling})
    return list(tables.values()), features


def _of_torchrec(module: object) -> tuple[list[dict], list[dict]]:
    pooled = hasattr(module, "embedding_bag_configs")
    if not pooled and not hasattr(module, "embedding_configs"):
        raise TypeError("expected a torchrec EmbeddingBagCollection or EmbeddingCollection, or a "
                        "dict of nn.EmbeddingBag or nn.Embedding, got: "
                        f"{type(module).__name__}")
    configs = module.embedding_bag_configs() if pooled else module.embedding_configs()
    weighted = bool(pooled and module.is_weighted())
    readers = Counter(name for config in configs for name in config.feature_names)
    tables, features = [], []
    for config in configs:
        kind = getattr(config.data_type, "name", str(config.data_type))
        _refuse(config.name, kind not in TORCHREC_TYPES, f"data_type {kind}", "FP32, FP16, BF16")
        tables.append({"name": config.name, "rows": config.num_embeddings,
                       "dim": config.embedding_dim, "type": TORCHREC_TYPES[kind]})
        pooling = config.pooling.name.lower() if pooled else "none"
        features += [{"name": f"{name}@{config.name}" if readers[name] > 1 else name,
                      "table": config.name, "pooling": pooling, "weighted": weighted}
                     for name in config.feature_names]
    return tables, features


def _refuse(name: str, wrong: bool, found: str, expected: str) -> None:
    if wrong:
        raise ValueError(f"{name}: {found} cannot be sharded; expected {expected}")
