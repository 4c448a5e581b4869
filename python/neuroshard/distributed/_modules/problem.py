"""The problem of the tables that a model of PyTorch or TorchRec has."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from neuroshard._model_names import key_of
from neuroshard._printable import did_you_mean
from neuroshard.distributed._modules.found import frozen_tables, parts_of, require_known_optimizer
from neuroshard.problem import ShardingProblem
from neuroshard.tables import Batch, Feature, Optimizer, Table
from neuroshard.topology import Topology


def problem_of(module: object, *, batch: Batch | int, topology: Topology | str | None = None,
               optimizer: Optimizer | str | None = None,
               mean_pooling: float | Mapping[str, float] = 1, **rest: object) -> ShardingProblem:
    """The ShardingProblem of all tables of a model: of its torchrec EmbeddingBagCollections and
    EmbeddingCollections, and of its nn.EmbeddingBag and nn.Embedding modules; or of one collection, or of
    such modules by feature name.

    module: the model, collection or dict. batch: over all ranks. topology: None: to be added for planning. optimizer:
    of all tables (None: sgd). mean_pooling: ids per sample, for all features, or by name or key, which stands for
    all features with it. rest: other fields of ShardingProblem. A feature that several tables of a collection read is in the problem for
    each of them, as feature@table. Where a model has several collections, tables are named path.table and
    features path/feature, by the paths of the collections in the model; one plan for the problem is for all
    of them (shard_model). Single modules have the name of their path, with _ in place of dots.

    Raises a TypeError for what has no tables, a ValueError for what cannot be sharded, such as a padding_idx, or, without
    optimizer, if one was applied in the backward of a table, and an InvalidProblem."""
    parts = parts_of(module)
    if optimizer is None:
        require_known_optimizer(parts)
        optimizer = "sgd"
    if frozen := frozen_tables(parts):
        warnings.warn(f"problem_of: {', '.join(frozen[:5])}{', ...' if len(frozen) > 5 else ''} of the model asks for no "
                      "gradient, but sharded tables learn unless their freeze() is called", UserWarning, stacklevel=2)
    named = [(part.feature_name(one), key_of(one["name"], one["table"]), part, one)
             for part in parts for one in part.features]
    pooling = dict(mean_pooling) if isinstance(mean_pooling, Mapping) else None
    # A feature of several tables has a name for each of them, and one for all.
    aliases = {name: [name, name.partition("@")[0], key] for name, key, _, _ in named}
    unknown = sorted(set(pooling or ()) - {one for each in aliases.values() for one in each})
    if unknown:
        known = [one for each in aliases.values() for one in each]
        raise ValueError(f"mean_pooling: there is no feature '{unknown[0]}'"
                         + (did_you_mean(unknown[0], known) or f"; expected some of {', '.join(aliases)}"))

    def ids_of(name: str) -> float:
        if pooling is None:
            return mean_pooling
        return next((pooling[one] for one in aliases[name] if one in pooling), 1)

    return ShardingProblem(
        tables=[Table(optimizer=optimizer, **{**one, "name": part.table_name(one["name"])})
                for part in parts for one in part.tables],
        features=[Feature(mean_pooling=ids_of(name),
                          **{**one, "name": name, "table": part.table_name(one["table"])})
                  for name, _, part, one in named],
        batch=batch, topology=topology, **rest)
