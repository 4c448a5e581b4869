"""The tables of a checkpoint, whole, in one process."""

from __future__ import annotations

import os
import warnings
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata

from neuroshard import _fields
from neuroshard._table_keys import key_of_ids, key_of_order, keys_of_tables
from neuroshard.distributed._checkpoint import files
from neuroshard.distributed._checkpoint.plain_data import PlainPlanner
from neuroshard.distributed._checkpoint.row_orders import by_id
from neuroshard.errors import CheckpointError


def read_tables(path: str | os.PathLike[str],
                names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
    """The weights of the tables `names`, one after the other, as (name, tensor [rows, dim]), from a checkpoint, `path`,
    of ns.distributed.save() or of torch.distributed.checkpoint, under whatever plan it was written. No process
    group is needed, and memory for one table. Rows are by id, also of a module with an order of rows.

    Raises a CheckpointError if the checkpoint cannot be read, has none or several of a table, or its map of
    dynamic ids, without which rows belong to no id."""
    where = Path(os.path.realpath(_fields.path(path, "read_tables: path")))
    try:
        folder = files.locate(where)
        metadata = files.Reader(folder).read_metadata()
        names = list(names)
        found = keys_of_tables(names, tensors_in(metadata))
        for name in names:
            key = one_key(metadata, name, found[name])
            values = {one: empty_of(metadata.state_dict_metadata[one])
                      for one in (key, key_of_order(key)) if one in metadata.state_dict_metadata}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that there is no process group
                dcp.load(values, storage_reader=files.Reader(folder), planner=PlainPlanner(), no_dist=True)
            value, *order = values.values()
            yield name, by_id(value, order[0]) if order else value
    except (CheckpointError, OSError, ValueError, dcp.api.CheckpointException) as error:
        raise CheckpointError(f"reading {where}: {error}") from error


def empty_of(entry: TensorStorageMetadata) -> torch.Tensor:
    return torch.empty(entry.size, dtype=entry.properties.dtype)


def tensors_in(metadata: Metadata) -> list[str]:
    return [key for key, entry in metadata.state_dict_metadata.items() if isinstance(entry, TensorStorageMetadata)]


def one_key(metadata: Metadata, name: str, found: Sequence[str]) -> str:
    """The key of a table's weights. found: the keys that may have them."""
    if len(found) == 1:
        require_static(found[0], metadata.state_dict_metadata)
        return found[0]
    if found:
        raise CheckpointError(f"expected one key that ends in {name}.weight, found several: {', '.join(sorted(found))}; "
                              "in a problem of the whole model tables have the paths of their collections, and keys are "
                              "told apart")
    there = sorted(key for key in tensors_in(metadata) if key.endswith(".weight"))
    raise CheckpointError(f"expected one key that ends in {name}.weight, found none; there are "
                          f"{', '.join(there[:10]) or 'no keys of weights'}{', ...' if len(there) > 10 else ''}")


def require_static(key: str, keys: Container[str]) -> None:
    """Raises a CheckpointError if there is a map of dynamic ids beside a table's weights."""
    if key_of_ids(key) in keys:
        raise CheckpointError(f"{key} is of a table with dynamic ids: its rows belong to no id without the map "
                              f"{key_of_ids(key)}, which only a module with dynamic_ids= loads")
