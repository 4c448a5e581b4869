"""Where the weights of frozen tables come from."""

from __future__ import annotations

import os
import pathlib
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence

import torch

from neuroshard._table_keys import key_of_ids, key_of_order, keys_of_tables
from neuroshard.distributed import full_state_dict, read_tables
from neuroshard.errors import TensorError
from neuroshard.tables import Table

# In the text of torch.load(weights_only=True).
_NOT_ALLOWED = re.compile(r"Unsupported (?:global: GLOBAL|class) ([\w.]+)")

Source = "str | os.PathLike | Mapping[str, torch.Tensor] | torch.nn.Module"


def weights_of(source: Source, tables: Sequence[Table]) -> Iterator[tuple[Table, torch.Tensor]]:
    """Each table with its weights [rows, dim], one after the other. Raises a TensorError if the source has none
    of a table or of another shape, a CheckpointError if it cannot be read."""
    by_name = {table.name: table for table in tables}
    for name, value in _values(source, list(by_name)):
        table = by_name[name]
        if (tuple(value.shape) != (table.rows, table.dim) or not value.dtype.is_floating_point
                or value.is_meta or value.layout != torch.strided):
            raise TensorError(f"table \"{name}\": expected floating-point weights [{table.rows}, {table.dim}] as the "
                              f"problem says, in memory and dense, found {value.dtype} {list(value.shape)} of "
                              f"device {value.device.type}, {value.layout}")
        yield table, value.detach().to("cpu")


def _values(source: Source, names: list[str]) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(source, (str, os.PathLike)):
        path = pathlib.Path(source)
        if path.is_dir() or not path.suffix:
            yield from read_tables(path, names)
            return
        source = _file(path)
    elif isinstance(source, torch.nn.Module):
        source = full_state_dict(source)
    if not isinstance(source, Mapping):
        raise TypeError("freeze: expected a checkpoint's folder, a file of a state dict, a state dict or a module, "
                        f"found {type(source).__name__}")
    found = keys_of_tables(names, map(str, source))
    for name in names:
        yield name, _one(source, name, found[name])


def _file(path: pathlib.Path) -> Mapping[str, torch.Tensor]:
    if path.suffix == ".safetensors":
        try:
            from safetensors.torch import load_file
        except ModuleNotFoundError:
            raise TensorError(f"{path}: reading it needs the package safetensors: pip install safetensors") from None
        read = load_file
    else:
        def read(name: str) -> Mapping[str, torch.Tensor]:
            return torch.load(name, map_location="cpu", weights_only=True)
    try:
        found = read(os.fspath(path))
    except pickle.UnpicklingError as error:
        # torch's text says how to load it all the same, which runs code of whoever wrote it.
        named = _NOT_ALLOWED.search(str(error))
        what = f"it has objects of {named[1]}" if named else "it is damaged, or has other objects than tensors"
        raise TensorError(f"{path} cannot be read as a state dict: {what}, and only tensors, numbers, "
                          "texts and containers of these are read; write it by torch.save(model.state_dict(), "
                          "path)") from error
    except Exception as error:  # of several libraries, for whatever is in the file
        raise TensorError(f"{path} cannot be read as a state dict: {error}") from error
    if not isinstance(found, Mapping):
        raise TensorError(f"{path}: expected a state dict, found {type(found).__name__}")
    return _flat(found)


def _flat(found: Mapping) -> dict[str, torch.Tensor]:
    """Of dicts in dicts, as whole training states are."""
    flat = {}
    for key, value in found.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{inner}": one for inner, one in _flat(value).items()}
        else:
            flat[str(key)] = value
    return flat


def _one(state: Mapping[str, torch.Tensor], name: str, found: Sequence[str]) -> torch.Tensor:
    """The weights of a table. found: the keys that may have them."""
    if len(found) == 1 and not isinstance(state[found[0]], torch.Tensor):
        raise TensorError(f"{found[0]}: expected a tensor, found {type(state[found[0]]).__name__}")
    if len(found) != 1:
        seen = ", ".join(sorted(found)) if found else f"none; there are {', '.join(sorted(state)[:10]) or 'no keys'}"
        raise TensorError(f"table \"{name}\": expected one tensor by its name or by a key that ends in "
                          f"{name}.weight, found {seen}")
    if key_of_ids(found[0]) in state:
        raise TensorError(f"table \"{name}\" has dynamic ids: its rows belong to no id without their map, which is not "
                          "frozen")
    values, order = state[found[0]], state.get(key_of_order(found[0]))
    if order is None:
        return values
    if not is_order(order, values):
        raise TensorError(f"{key_of_order(found[0])}: expected a tensor of int64 [{len(values)}] with the row of each id, "
                          f"each row once, found another; freeze a checkpoint of ns.distributed.save() or what "
                          "ns.distributed.full_state_dict() gives")
    return values[order]


def is_order(order: object, values: torch.Tensor) -> bool:
    return (isinstance(order, torch.Tensor) and order.dtype == torch.int64 and order.dim() == 1 and order.shape == values.shape[:1]
            and torch.equal(order.sort().values, torch.arange(len(values))))
