"""The tables that TorchRec's sharders would shard, as tables and features of a problem."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import ModuleSharder

from neuroshard._artifact.dtypes import ELEMENT_TYPES
from neuroshard._model_names import collection_of, table_name
from neuroshard._vocabulary import COLUMN_ALIGNMENT
from neuroshard.constraints import TableRule
from neuroshard.errors import Unsupported
from neuroshard.tables import Feature, Optimizer, Table
from neuroshard.torchrec._counters import KIND, has_counters
from neuroshard.torchrec._planner_checks import check_features, check_limits
from neuroshard.torchrec._sharding_types import Cluster, allowed_kinds, can_be_cut

OPTIMIZERS = {EmbOptimType.EXACT_SGD: "sgd", EmbOptimType.EXACT_ADAGRAD: "adagrad",
              EmbOptimType.EXACT_ROWWISE_ADAGRAD: "rowwise_adagrad", EmbOptimType.ADAM: "adam",
              EmbOptimType.PARTIAL_ROWWISE_ADAM: "partial_rowwise_adam",
              EmbOptimType.LARS_SGD: "lars_sgd", EmbOptimType.LAMB: "lamb",
              EmbOptimType.PARTIAL_ROWWISE_LAMB: "partial_rowwise_lamb"}


@dataclass
class Found:
    """The tables of a model. modules: the names of the tables of each module, by its path.
    unpooled: the paths of EmbeddingCollections. constraints: the user's, by table."""

    tables: list[Table] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)
    feature_names: set[str] = field(default_factory=set)
    rules: list[TableRule] = field(default_factory=list)
    modules: dict[str, list[str]] = field(default_factory=dict)
    unpooled: list[str] = field(default_factory=list)
    constraints: dict[str, ParameterConstraints] = field(default_factory=dict)


def find_tables(module: torch.nn.Module, sharders: Sequence[ModuleSharder],
                constraints: Mapping[str, ParameterConstraints], cluster: Cluster,
                optimizer: Optimizer | None) -> Found:
    """The tables of all modules below `module` that one of the sharders takes."""
    found = Found()
    for path, one, sharder in sharded_modules(module, sharders):
        add_module(found, path, one, sharder, constraints, cluster, optimizer)
    if not found.tables:
        raise Unsupported("the model has no module that one of the sharders takes; they take "
                          + ", ".join(sorted({one.module_type.__name__ for one in sharders})))
    return found


def sharded_modules(module: torch.nn.Module, sharders: Sequence[ModuleSharder]
                    ) -> Iterator[tuple[str, torch.nn.Module, ModuleSharder]]:
    """The modules below `module` that one of the sharders takes: path in it, module, sharder."""
    by_type = {sharder.module_type: sharder for sharder in sharders}
    queue = [("", module)]
    while queue:
        path, one = queue.pop(0)
        if sharder := by_type.get(type(one)):
            yield path, one, sharder
        else:
            queue += [(table_name(path, name), child) for name, child in one.named_children()]


def add_module(found: Found, path: str, module: torch.nn.Module, sharder: ModuleSharder,
               constraints: Mapping[str, ParameterConstraints], cluster: Cluster,
               optimizer: Optimizer | None) -> None:
    collection = collection_of(module)
    if collection is None:
        raise Unsupported(f"module \"{path}\": a {type(module).__name__} does not say its tables; "
                          "expected an EmbeddingBagCollection or EmbeddingCollection")
    configs, pooled = collection
    parameters = sharder.shardable_parameters(module)
    weighted = bool(pooled and module.is_weighted())
    if not pooled:
        found.unpooled.append(path)
    found.modules[path] = [config.name for config in configs if config.name in parameters]
    for config in configs:
        if config.name not in parameters:
            continue
        name = table_name(path, config.name)
        limits = constraints.get(config.name, ParameterConstraints())
        check_limits(name, limits)
        parameter = parameters[config.name]
        if parameter.dtype not in ELEMENT_TYPES:
            raise Unsupported(f"table \"{name}\" is of type {parameter.dtype}; expected float32, "
                              "float16 or bfloat16")
        found.tables.append(Table(name, config.num_embeddings, config.embedding_dim,
                                  ELEMENT_TYPES[parameter.dtype],
                                  optimizer or optimizer_of(name, parameter, sharder)))
        pooling = config.pooling.name.lower() if pooled else "none"
        check_features(name, config.feature_names)
        add_features(found, name, config.feature_names, limits, pooling,
                     weighted or bool(limits.is_weighted), cluster.ranks)
        kinds = allowed_kinds(name, pooling, sharder, limits, cluster.device)
        width = limits.min_partition or COLUMN_ALIGNMENT
        if not can_be_cut(config, kinds, width, cluster, pooled):
            kinds = sorted({*kinds, "table_wise"})
        found.rules.append(TableRule(name, kinds, width))
        found.constraints[name] = limits


def add_features(found: Found, table: str, names: Sequence[str], limits: ParameterConstraints,
                 pooling: str, weighted: bool, ranks: int) -> None:
    """Adds the features of a table. TorchRec's constraints have one number for each, or for all."""
    for index, name in enumerate(names):
        factor = number(limits.pooling_factors, index, len(names), 1.0, table)
        factor *= number(limits.num_poolings, index, len(names), 1.0, table)
        batch = number(limits.batch_sizes, index, len(names), 0, table)
        found.features.append(Feature(new_name(found, f"{table}/{name}"), table, pooling,
                                      mean_pooling=factor, batch=int(batch) * ranks,
                                      weighted=weighted))


def new_name(found: Found, name: str) -> str:
    """A name that is not taken yet: tables and features may have equal names with slashes."""
    tried = itertools.chain([name], (f"{name} ({count})" for count in itertools.count(2)))
    result = next(one for one in tried if one not in found.feature_names)
    found.feature_names.add(result)
    return result


def number(values: Sequence[float] | None, index: int, count: int, default: float,
           table: str) -> float:
    if not values:
        return default
    if len(values) == 1:
        return values[0]
    if len(values) != count:
        raise Unsupported(f"table \"{table}\": the constraints have {len(values)} numbers for "
                          f"{count} features; expected one for each, or one")
    return values[index]


def optimizer_of(name: str, parameter: torch.nn.Parameter, sharder: ModuleSharder) -> Optimizer:
    """The optimizer that TorchRec would run: that applied in backward, else that of the sharder's
    fused_params."""
    settings = dict(getattr(sharder, "fused_params", None) or {})
    applied = getattr(parameter, "_optimizer_classes", None)
    if applied:
        kind = {torch.optim.SGD: "sgd", torch.optim.Adagrad: "adagrad",
                torch.optim.Adam: "adam"}.get(applied[0])
        kind = kind or {"SGD": "sgd", "Adagrad": "adagrad", "Adam": "adam",
                        "RowWiseAdagrad": "rowwise_adagrad",
                        "PartialRowWiseAdam": "partial_rowwise_adam", "LarsSGD": "lars_sgd",
                        "LAMB": "lamb", "PartialRowWiseLAMB": "partial_rowwise_lamb"}.get(applied[0].__name__)
        settings = dict(getattr(parameter, "_optimizer_kwargs", [{}])[0])
        shown = applied[0].__name__
    else:
        chosen = settings.get("optimizer", EmbOptimType.EXACT_SGD)
        kind, shown = KIND if has_counters(settings) else OPTIMIZERS.get(chosen), str(chosen)
    if kind is None:
        raise Unsupported(f"table \"{name}\": its optimizer {shown} is not known; give the one "
                          "nearest to it in memory, optimizer=\"adam\" for instance")
    eps = settings.get("eps")
    # TorchRec hands it to every kernel, also of those that do not use it.
    return Optimizer(kind, eps=eps) if eps is not None and kind not in ("sgd", "lars_sgd") else Optimizer(kind)
