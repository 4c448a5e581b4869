"""Checkpoints of whole training states: sharded tables, dense models, optimizers, values.

The files are those of torch.distributed.checkpoint. In addition a checkpoint appears complete or
not at all, damage is detected, states are converted between plans with different cuts, and an
error on any rank raises the same CheckpointError on all. docs/checkpoints.md has examples.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata

from neuroshard import _fields
from neuroshard.distributed._checkpoint import files
from neuroshard.distributed._checkpoint.plain_data import PlainPlanner
from neuroshard.distributed._checkpoint.rank_agreement import Run
from neuroshard.distributed._checkpoint.row_state_merge import Merge, plan_merges
from neuroshard.distributed._checkpoint.row_orders import SUFFIX, orders_of, require_same_order, unknown_orders
from neuroshard.distributed._checkpoint.sharded import Sharded
from neuroshard.distributed._checkpoint.state import (Contents, is_sharded, key_of_tables, note_all_loaded, state_of,
                                                      state_to_load_into)
from neuroshard.distributed._checkpoint.values import is_spread, loaded, require_plain, to_save
from neuroshard.errors import CheckpointError

State = MutableMapping[str, Any] | nn.Module
Group = dist.ProcessGroup | None


def save(path: str | os.PathLike[str], state: State, process_group: Group = None,
         keep: int | None = None) -> None:
    """Saves to the folder `path`, which all ranks share; called on all ranks of process_group (None: the default one).

    state: by name nn.Modules, optimizers, other objects with state_dict() and load_state_dict(),
    and values (numbers, texts, tensors, nested in dicts and lists; others, which load() would not read, are a
    CheckpointError); or one nn.Module. Optimizers
    and values must be equal on all ranks, as those of one rank are saved. keep: how many
    checkpoints stay whose names differ only in the number at the end (step-100, step-200).

    Everything is written to PATH.partial, which is renamed once it is complete. Only then is an
    existing checkpoint replaced; a folder that is no checkpoint is refused. After a
    CheckpointError nothing has changed.
    """
    path = _path(path, "save")
    if keep is not None and _fields.whole(keep, "save: keep") < 1:
        raise ValueError(f"save: keep: expected at least 1, got: {keep}")
    run = Run(process_group, f"saving {path}")
    run.on_each(lambda: _check_state(state, Mapping))
    run.compare(_named(state), f"keep={keep}")
    partial = files.beside(path, files.PARTIAL)
    run.on_first(lambda: files.prepare(path))
    try:
        values = run.on_each(lambda: _values_to_save(state))
        run.checkpoint(lambda **options: dcp.save(
            values, storage_writer=files.Writer(partial), **options))
        run.on_first(lambda: files.complete_save(partial, path, run.ranks))
    except CheckpointError:
        if not run.lost:
            run.on_first(lambda: files.remove(partial) if partial.exists() else None)
        raise
    if keep is not None:
        run.on_first(lambda: files.remove_older(path, keep))


def load(path: str | os.PathLike[str], state: State, process_group: Group = None,
         only: Contents | None = None) -> None:
    """Loads what is in `state` from the folder `path`; called on all ranks of process_group (None: the default one).

    Modules, optimizers and tensors, also those in dicts and lists, are loaded in place; other values replace state[name]. The
    checkpoint may have been written by any number of ranks under any plan, by save() or by
    torch.distributed.checkpoint. It may hold more than `state` asks for, but no other tables.
    only: loads "weights" or "optimizer" states alone.

    Keys, shapes and types are compared before anything is written. After a later error, such as a
    damaged file, the contents of `state` are undefined.
    """
    path = _path(path, "load")
    if only not in (None, "weights", "optimizer"):
        raise ValueError(f"load: only: expected 'weights' or 'optimizer', got: {only!r}")
    run = Run(process_group, f"loading {path}")
    run.on_each(lambda: _check_state(state, MutableMapping))
    run.compare(_named(state), f"only={only!r}")
    folder = run.on_first(lambda: files.locate(path))
    metadata = run.on_each(lambda: files.Reader(folder).read_metadata())
    target = run.on_each(lambda: _target(state, only, metadata))
    merges = run.on_each(lambda: plan_merges(target, metadata.state_dict_metadata))
    run.on_each(lambda: _check(state, target, metadata))
    saved = {key: torch.empty_like(target[key]) for key in _order_keys(state)}
    if saved:
        run.checkpoint(lambda **options: dcp.load(
            saved, storage_reader=files.Reader(folder), planner=PlainPlanner(), **options))
        run.on_each(lambda: _check_orders(target, saved))
    run.checkpoint(lambda **options: dcp.load(
        target, storage_reader=files.Reader(folder), planner=PlainPlanner(), **options))
    run.on_each(lambda: _take(state, target, merges))
    if only is None:
        note_all_loaded(tables for _, tables in _tables(state))


def latest(folder: str | os.PathLike[str], name: str = "step-") -> Path | None:
    """The complete checkpoint of the highest number among <name><number> in a folder; None if there is none. Raises a
    TypeError for what is no path."""
    folder = _path(folder, "latest")
    _fields.text(name, "latest: name")
    if not folder.is_dir():
        return None
    paths = {*files.numbered(folder, name),
             *(one.with_name(one.name.removesuffix(files.REPLACED))
               for one in files.numbered(folder, name, files.REPLACED))}
    complete = [path for path in paths if files.complete(path)]
    return max(complete, key=files.number, default=None)


def _path(path: Any, caller: str) -> Path:
    return Path(os.path.realpath(_fields.path(path, f"{caller}: path")))


def _check_state(state: Any, kind: type) -> None:
    if not isinstance(state, (kind, nn.Module)):
        raise CheckpointError("state: expected a dict of modules, optimizers and values by name, "
                              f"or one nn.Module, got: {_fields.shown(state)}")
    for name in _named(state):
        if not isinstance(name, str):
            raise CheckpointError("state: expected texts as the names of its modules, optimizers "
                                  f"and values, got: {_fields.shown(name)}")


def _named(state: State) -> Mapping[str, Any]:
    return {"": state} if isinstance(state, nn.Module) else state


def _is_stateful(value: Any) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def _values_to_save(state: State) -> dict[str, Any]:
    """The values for torch.distributed.checkpoint: modules by key, all else as one value each,
    since optimizers have no state to load into before their first step, and keys that are not
    texts."""
    values = {}
    for name, value in _named(state).items():
        if isinstance(value, nn.Module):
            entries = {key: one if isinstance(one, torch.Tensor) else to_save(_key(name, key), one)  # extra state
                       for key, one in value.state_dict().items()}
            values |= {name: entries} if name else entries
        elif _is_stateful(value):
            values[name] = (_whole(name, value.state_dict()),)
        else:
            values[name] = to_save(name, value)
    return values


def _whole(name: str, state: Any) -> Any:
    if is_spread(state):
        raise CheckpointError(f"'{name}' has tensors that are spread over ranks; pass what "
                              "torch.distributed.checkpoint.state_dict.get_optimizer_state_dict "
                              "gives instead")
    require_plain(name, state)
    return state


def _key(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def _tables(state: State) -> Iterator[tuple[str, nn.Module]]:
    """(prefix of its keys, module) of all sharded tables in the modules."""
    for name, value in _named(state).items():
        for inner, module in value.named_modules() if isinstance(value, nn.Module) else ():
            if is_sharded(module):
                yield "".join(f"{part}." for part in (name, inner) if part), module


def _target(state: State, only: Contents | None, metadata: Metadata) -> dict[str, Any]:
    """The values to load into, by the keys of the checkpoint."""
    target: dict[str, Any] = {}
    for name, value in _named(state).items():
        if isinstance(value, nn.Module):
            target |= {_key(name, key): one for key, one in state_to_load_into(value).items()}
        else:
            target[name] = None if _is_stateful(value) else value
    for key, one in target.items():
        if isinstance(one, (Mapping, list)) and key in metadata.state_dict_metadata:
            target[key] = None  # one value, whatever is there
    if only is None:
        return target
    optimizer, orders = _optimizer_keys(state), _order_keys(state)
    return {key: value for key, value in target.items()
            if (key in optimizer) == (only == "optimizer") or key in orders}


def _optimizer_keys(state: State) -> set[str]:
    """Keys of values that only training needs."""
    keys = {name for name, value in _named(state).items()
            if isinstance(value, torch.optim.Optimizer)}
    return keys.union(*({prefix + key for key in state_of(tables, only="optimizer")}
                        for prefix, tables in _tables(state)))


def _order_keys(state: State) -> set[str]:
    """Keys of orders of rows, which belong to all other values of their tables."""
    return {f"{prefix}{key_of_tables(tables)}.{name}{SUFFIX}"
            for prefix, tables in _tables(state) for name in orders_of(tables)}


def _check(state: State, target: dict[str, Any], metadata: Metadata) -> None:
    saved = metadata.state_dict_metadata
    optimizer = _optimizer_keys(state)
    wrong = [message for key, value in flatten_state_dict(target)[0].items()
             if (message := _mismatch(key, value, saved, key in optimizer))]
    for prefix, tables in _tables(state):
        wrong += _other_tables(prefix, tables, saved)
        wrong += unknown_orders(prefix + key_of_tables(tables), (table.name for table in tables.problem.tables),
                                target, saved)
    wrong += _other_entries(state, target, metadata)
    if not wrong:
        return
    more = f"; and {len(wrong) - files.MAX_LISTED} more" if len(wrong) > files.MAX_LISTED else ""
    raise CheckpointError("; ".join(wrong[:files.MAX_LISTED]) + more)


def _check_orders(target: Mapping[str, Any], saved: Mapping[str, torch.Tensor]) -> None:
    """Raises a CheckpointError for orders of rows that are not those of the modules, before any row is loaded."""
    for key, order in saved.items():
        try:
            require_same_order(order, target[key])
        except ValueError as error:
            raise CheckpointError(f"{key}: {error}") from None


def _mismatch(key: str, value: Any, saved: Mapping[str, Any], optimizer: bool) -> str:
    if key not in saved:
        hint = "; only='weights' loads what does not belong to optimizers" if optimizer else ""
        return f"{key} is not in the checkpoint{hint}"
    found = saved[key]
    if not isinstance(value, torch.Tensor):
        return "" if not isinstance(found, TensorStorageMetadata) else (
            f"{key}: expected a tensor of {list(found.size)} to be filled, as the checkpoint has one, got: "
            f"{_fields.shown(value)}")
    if not isinstance(found, TensorStorageMetadata):
        return f"{key}: expected a tensor of {list(value.shape)}, the checkpoint has a value"
    mine, other = (value.shape, value.dtype), (found.size, found.properties.dtype)
    if mine[0] != other[0] or (isinstance(value, Sharded) and mine[1] != other[1]):
        return (f"{key}: expected {list(mine[0])} of {mine[1]}, the checkpoint has "
                f"{list(other[0])} of {other[1]}")
    return ""


def _other_entries(state: State, target: dict[str, Any], metadata: Metadata) -> list[str]:
    """Of dicts and lists whose entries are values of their own, those that would be lost."""
    known = flatten_state_dict(target)[0]
    paths = metadata.planner_data if isinstance(metadata.planner_data, Mapping) else {}
    names = {name for name, value in _named(state).items()
             if name in target and not isinstance(value, nn.Module) and not _is_stateful(value)}
    return [f"the checkpoint has {key}, but state[{path[0]!r}] does not; give a dict or a list with all entries that "
            "were saved, whose tensors are filled" for key, path in paths.items()
            if isinstance(path, tuple) and len(path) > 1 and path[0] in names and key not in known]


def _other_tables(prefix: str, tables: Any, saved: Mapping[str, Any]) -> list[str]:
    begin = f"{prefix}{key_of_tables(tables)}."
    found = {key.removeprefix(begin).removesuffix(".weight") for key in saved
             if key.startswith(begin) and key.endswith(".weight")}
    others = sorted(found - {table.name for table in tables.problem.tables})
    return [f"the checkpoint has a table '{name}', but the module does not" for name in others]


def _take(state: State, target: dict[str, Any], merges: list[Merge]) -> None:
    """Passes on the loaded values that were not loaded in place."""
    for merge in merges:
        merge.finish()
        for key in merge.keys:
            del target[key]
    for name, value in _named(state).items():
        if isinstance(value, nn.Module):
            keys = [key for key in state_to_load_into(value) if _key(name, key) in target]
            _load_module(value, {key: loaded(target[_key(name, key)]) for key in keys})
        elif name in target and _is_stateful(value):
            value.load_state_dict(target[name][0])
        elif name in target:
            state[name] = loaded(target[name])


def _load_module(module: nn.Module, values: dict[str, Any]) -> None:
    try:
        module.load_state_dict(values, strict=False)
    except RuntimeError as error:  # Its text has a line per value that does not fit.
        raise CheckpointError(" ".join(str(error).split())) from error
