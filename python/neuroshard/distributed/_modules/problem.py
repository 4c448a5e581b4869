"""The problem of the tables that a model of PyTorch or TorchRec has."""

from __future__ import annotations

from collections.abc import Mapping

from neuroshard._feature_keys import key_of
from neuroshard.distributed._modules.found import parts_of
from neuroshard.problem import ShardingProblem
from neuroshard.tables import Batch, Feature, Optimizer, Table
from neuroshard.topology import Topology


def problem_of(module: object, *, batch: Batch | int, topology: Topology | str,
               optimizer: Optimizer | str = "sgd",
               mean_pooling: float | Mapping[str, float] = 1, **rest: object) -> ShardingProblem:
    """The ShardingProblem of all tables of a model: of its torchrec EmbeddingBagCollections and
    EmbeddingCollections, and of its nn.EmbeddingBag and nn.Embedding modules; or of one collection, or of
    such modules by feature name.

    batch: over all ranks. mean_pooling: ids per sample, for all features, or by name or key. rest:
    other fields of ShardingProblem. A feature that several tables of a collection read is in the problem for
    each of them, as feature@table. Where a model has several collections, tables are named path.table and
    features path/feature, by the paths of the collections in the model; one plan for the problem is for all
    of them (shard_model). Single modules have the name of their path, with _ in place of dots."""
    parts = parts_of(module)
    named = [(part.feature_name(one), key_of(one["name"], one["table"]), part, one)
             for part in parts for one in part.features]
    pooling = dict(mean_pooling) if isinstance(mean_pooling, Mapping) else None
    known = {text for name, key, _, _ in named for text in (name, key)}
    unknown = sorted(set(pooling or ()) - known)
    if unknown:
        raise ValueError(f"mean_pooling: there is no feature {unknown}")

    def ids_of(name: str, key: str) -> float:
        return mean_pooling if pooling is None else pooling.get(name, pooling.get(key, 1))

    return ShardingProblem(
        tables=[Table(optimizer=optimizer, **{**one, "name": part.table_name(one["name"])})
                for part in parts for one in part.tables],
        features=[Feature(mean_pooling=ids_of(name, key),
                          **{**one, "name": name, "table": part.table_name(one["table"])})
                  for name, key, part, one in named],
        batch=batch, topology=topology, **rest)
