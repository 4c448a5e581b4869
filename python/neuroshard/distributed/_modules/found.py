"""Tables and features of the modules that a model of PyTorch or TorchRec has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from neuroshard import _fields
from neuroshard._artifact.dtypes import ELEMENT_TYPES
from neuroshard._model_names import collection_of, feature_name, key_of, table_name

# Of TorchRec: they have configs of tables, and are none.
MANAGED = {"ManagedCollisionCollection", "BaseManagedCollisionEmbeddingCollection"}
TORCHREC_TYPES = {"FP32": "f32", "FP16": "f16", "BF16": "bf16"}


@dataclass(frozen=True)
class Part:
    """What one module of a model brings to its problem.

    module: one of TorchRec's collections, or all nn.EmbeddingBag and nn.Embedding by name. path: of a
    collection in the model, "" for single modules. tables, features: arguments of Table and Feature, under
    the module's own names. prefixed: whether a problem has them under the path, as other modules may have
    the same names."""

    module: object
    path: str
    tables: list[dict]
    features: list[dict]
    prefixed: bool

    def table_name(self, name: str) -> str:
        """A table's name in the problem: as NeuroShardPlanner has it."""
        return table_name(self.path, name) if self.prefixed else name

    def feature_name(self, feature: Mapping) -> str:
        """A feature's name in the problem."""
        if not self.prefixed:
            return feature["name"]
        key = key_of(feature["name"], feature["table"])
        return feature_name(self.path, key, "" if key == feature["name"] else self.table_name(feature["table"]))


def parts_of(model: object) -> list[Part]:
    """A collection, {name: nn.EmbeddingBag or nn.Embedding}, or a model with any number of them. Raises a
    TypeError for what has no tables."""
    if isinstance(model, torch.nn.Module):
        _refuse_managed(model)
    if isinstance(model, (Mapping, torch.nn.ModuleDict)):
        return [Part(model, "", *_of_modules(model), prefixed=False)]
    if collection := collection_of(model):
        return [Part(model, "", *_of_torchrec(model, *collection), prefixed=False)]
    if not isinstance(model, torch.nn.Module):
        raise TypeError("expected a torch module, or a dict of nn.EmbeddingBag or nn.Embedding, got: "
                        f"{type(model).__name__}")
    collections = {path: (one, found) for path, one in model.named_modules() if (found := collection_of(one))}
    inside = {id(part) for one, _ in collections.values() for part in one.modules()}
    single = {path.replace(".", "_") or "table": one for path, one in model.named_modules()
              if id(one) not in inside and isinstance(one, (torch.nn.EmbeddingBag, torch.nn.Embedding))}
    if not collections and not single:
        if any(hasattr(one, "local_shards") for one in model.modules()):
            raise TypeError(f"a {type(model).__name__} whose tables are sharded already")
        raise TypeError(f"a {type(model).__name__} without tables; expected a module with an "
                        "EmbeddingBagCollection, an EmbeddingCollection, nn.EmbeddingBag or nn.Embedding")
    prefixed = len(collections) + bool(single) > 1
    parts = [Part(one, path, *_of_torchrec(one, *found), prefixed) for path, (one, found) in collections.items()]
    return parts + ([Part(single, "", *_of_modules(single), prefixed=False)] if single else [])


def _refuse_managed(model: torch.nn.Module) -> None:
    for path, one in model.named_modules():
        if any(base.__name__ in MANAGED for base in type(one).__mro__):
            raise ValueError(f"{path or type(one).__name__}: managed collisions cannot be sharded; expected the collection "
                             "inside, whose tables take any ids with dynamic_ids= (docs/dynamic-ids.md)")


def _of_modules(modules: Mapping) -> tuple[list[dict], list[dict]]:
    """The tables and features of modules. A module under several names is one table, named after
    its first feature."""
    tables: dict[int, dict] = {}
    features = []
    for name, module in modules.items():
        _fields.text(name, "a name among the modules", "a text, the name of a feature")
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


def _of_torchrec(module: object, configs: Sequence, pooled: bool) -> tuple[list[dict], list[dict]]:
    weighted = bool(pooled and module.is_weighted())
    readers = Counter(name for config in configs for name in config.feature_names)
    tables, features = [], []
    for config in configs:
        kind = getattr(config.data_type, "name", str(config.data_type))
        _refuse(config.name, kind not in TORCHREC_TYPES, f"data_type {kind}", "FP32, FP16, BF16")
        _refuse(config.name, getattr(config, "use_virtual_table", False), "use_virtual_table",
                "False; with dynamic_ids= a table takes any ids")
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


def require_known_optimizer(parts: Sequence[Part]) -> None:
    """Raises a ValueError if an optimizer was applied in the backward of a table, which a problem would not have."""
    for path, parameter in _parameters(parts):
        if classes := getattr(parameter, "_optimizer_classes", None):
            raise ValueError(f"{path}: an optimizer was applied in its backward ({classes[0].__name__}), which the model's "
                             "sharded tables do not take from it: expected optimizer=, such as "
                             "neuroshard.Optimizer(\"adagrad\")")


def frozen_tables(parts: Sequence[Part]) -> list[str]:
    """The parameters of tables that ask for no gradient."""
    return [path for path, parameter in _parameters(parts) if not parameter.requires_grad]


def _parameters(parts: Sequence[Part]) -> list[tuple[str, torch.nn.Parameter]]:
    """Those of all tables, by their paths in the model."""
    modules = [(part.path, one) for part in parts for one in (
        part.module.values() if isinstance(part.module, (Mapping, torch.nn.ModuleDict)) else [part.module])]
    return [(f"{path}.{name}" if path else name, parameter) for path, one in modules
            for name, parameter in one.named_parameters()]
