"""Tables and features as models, their problems and their batches name them. Imports no torch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any


def collection_of(module: object) -> tuple[Sequence[Any], bool] | None:
    """The configs of the tables of one of TorchRec's collections, and whether its features are pooled; None for
    other modules."""
    for method, pooled in (("embedding_bag_configs", True), ("embedding_configs", False)):
        if hasattr(module, method):
            return getattr(module, method)(), pooled
    return None


def table_name(path: str, name: str) -> str:
    """The table of a module's parameter in a problem: the module's path in the model, then its name."""
    return f"{path}.{name}" if path else name


def feature_name(path: str, key: str, reader: str = "") -> str:
    """A collection's feature in a problem with the features of several: the collection's path in the model, then the
    key. reader: the name in the problem of the table that reads it, if several do."""
    return f"{path}/{key}@{reader}" if reader else f"{path}/{key}"


def in_collection(feature: str, table: str) -> tuple[str, str, str]:
    """The path of the collection that a problem's feature and the table that reads it are of, and the names that both
    have there; the path is "" where a problem has them under their own names."""
    for end in (place for place, letter in enumerate(feature) if letter == "/"):
        path, key = feature[:end], key_of(feature[end + 1:], table)
        if table.startswith(f"{path}."):
            own = table.removeprefix(f"{path}.")
            return path, key if feature == feature_name(path, key) else f"{key}@{own}", own
    return "", feature, table


def key_of(feature: str, table: str) -> str:
    """The key in a batch of a problem's feature. A feature that several tables read appears in the
    problem once for each of them as feature@table, TorchRec's name for their results."""
    return feature.removesuffix(f"@{table}")


def key_in(batch: Collection[str], feature: str, table: str) -> str | None:
    """The key that a batch has for a feature: its name, else that without @table, else the part of it
    behind a collection's or a table's path ("ebc/clicked", "ebc.t0/clicked"); None if it has none of them."""
    key = key_of(feature, table)
    return next((one for one in (feature, key, key.rpartition("/")[2]) if one in batch), None)
