"""Names of a problem's features, and the keys that batches have for them."""

from __future__ import annotations

from collections.abc import Collection


def key_of(feature: str, table: str) -> str:
    """The key in a batch of a problem's feature. A feature that several tables read appears in the
    problem once for each of them as feature@table, TorchRec's name for their results."""
    return feature.removesuffix(f"@{table}")


def key_in(batch: Collection[str], feature: str, table: str) -> str | None:
    """The key that a batch has for a feature: its name, else that without @table, else the part of it
    behind a collection's or a table's path ("ebc/clicked", "ebc.t0/clicked"); None if it has none of them."""
    key = key_of(feature, table)
    return next((one for one in (feature, key, key.rpartition("/")[2]) if one in batch), None)
