"""Sharded tables as a state dict that torch.distributed.checkpoint saves and loads.

Keys are those of TorchRec: embedding_bags.<table>.weight, embedding_bags.<table>.<state> for the
optimizer's states, step and learning_rate. Every value has the shape of the whole table and holds
this rank's chunks of it without a copy: saving copies one block at a time, loading writes in place.

A row-wise state that each column shard keeps for itself (semantics per_shard) has a key per range
of columns, embedding_bags.<table>.<state>.columns_<begin>_<end>. docs/checkpoints.md says how such
states are merged when columns are cut elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn

from neuroshard import _fields
from neuroshard._artifact.dtypes import DTYPES
from neuroshard._artifact.optimizer_states import ROW_STATES, STATE_NAMES
from neuroshard.distributed._checkpoint.id_maps import all_wrong, id_state, numbers_of, take_maps
from neuroshard.distributed._checkpoint.row_orders import (SUFFIX, ids_of_rows, is_order, order_state, orders_of,
                                                           require_same_order, unknown_orders)
from neuroshard.distributed._checkpoint.sharded import Chunk, RowState, RowWise, Sharded

Contents = Literal["weights", "optimizer"]

_IS_TO_LOAD_INTO = ContextVar("is_to_load_into", default=False)


def state_of(module: Any, only: Contents | None = None) -> dict[str, Tensor]:
    """The state of sharded tables, on every rank with the same keys.

    module: has plan, problem, local_shards(), step, learning_rates, if some tables have them dynamic_ids
    and, if it is not "embedding_bags", tables_key. only: the weights with the maps of ids, or all but
    these.
    """
    held: dict[str, list[Any]] = {table.name: [] for table in module.problem.tables}
    for shard in module.local_shards():
        held[shard.table].append(shard)
    result: dict[str, Tensor] = {}
    for table in module.problem.tables:
        result |= state_of_table(f"{key_of_tables(module)}.{table.name}", module.plan, table,
                                 held[table.name], only)
    if only != "optimizer":
        result |= id_state(_id_tables(module), key_of_tables(module))
        result |= order_state(orders_of(module), key_of_tables(module))
    if only != "weights":
        result["step"] = torch.tensor(module.step, dtype=torch.int64)
        rates = module.learning_rates  # those of one group as a number
        result["learning_rate"] = torch.tensor(rates if len(rates) > 1 else rates[0],
                                               dtype=torch.float64)
    return result


def saved_state_of(module: Any) -> dict[str, Tensor]:
    """The state of sharded tables to be saved. Raises a TensorError if copies have drifted apart, of
    which one would be saved for all, unless state_to_load_into() asks."""
    if not _IS_TO_LOAD_INTO.get() and (session := session_of(module)):
        session.require_alike()
    return state_of(module)


def state_to_load_into(module: nn.Module) -> dict[str, Any]:
    """state_dict() of a module whose tables may have copies that have drifted apart: loading writes all of them."""
    token = _IS_TO_LOAD_INTO.set(True)
    try:
        return module.state_dict()
    finally:
        _IS_TO_LOAD_INTO.reset(token)


def note_all_loaded(modules: Iterable[Any]) -> None:
    """Says that the copies of tables are alike. modules: sharded tables, or views, of which everything was loaded;
    tables that some views show a part of count only if all of their views are there."""
    loaded: dict[Any, set[str]] = {}
    for module in modules:
        tables = tables_of(module)
        paths = _paths_of_views(tables) if tables is module else {module.path}
        loaded.setdefault(tables, set()).update(paths)
    for tables, paths in loaded.items():
        if paths == _paths_of_views(tables) and (session := session_of(tables)):
            session.engine.note_alike()


def _paths_of_views(tables: Any) -> set[str]:
    """None of tables that no view shows a part of."""
    return set(getattr(tables, "member_of", ()))


def session_of(module: Any) -> Any:
    """The session of sharded tables, or of those that a view shows a part of; None of tables without one."""
    return getattr(tables_of(module), "_session", None)


def tables_of(module: Any) -> Any:
    """The sharded tables themselves, or those that a view shows a part of."""
    return getattr(module, "tables", module)


def state_of_table(key: str, plan: Any, table: Any, held: Sequence[Any],
                   only: Contents | None = None) -> dict[str, Sharded]:
    """The values of one table, by keys that begin with `key`; none of a quantized one, which is frozen. held: a
    rank's shards of it."""
    result: dict[str, Sharded] = {}
    if table.type not in DTYPES:
        return result
    if only != "optimizer":
        result[f"{key}.weight"] = _elements(table, DTYPES[table.type],
                                            [(one, one.weights) for one in held])
    if only != "weights":
        result |= _optimizer_state(plan, table, key, held)
    return result


def _elements(table: Any, dtype: torch.dtype, held: list[tuple[Any, Tensor]]) -> Sharded:
    """A value per element of the table. Replicas hold equal chunks, of which one is saved."""
    return Sharded((table.rows, table.dim), dtype,
                   [Chunk((shard.rows[0], shard.cols[0]), tensor) for shard, tensor in held])


def _optimizer_state(plan: Any, table: Any, key: str,
                     held: Sequence[Any]) -> dict[str, Sharded]:
    result: dict[str, Sharded] = {}
    for name in STATE_NAMES[table.optimizer.kind]:
        mine = [(shard, shard.states[name]) for shard in held]
        if name in ROW_STATES.get(table.optimizer.kind, ()):
            result |= _row_wise_state(plan, table, f"{key}.{name}", mine)
        else:
            result[f"{key}.{name}"] = _elements(table, torch.float32, mine)
    return result


def _row_wise_state(plan: Any, table: Any, key: str,
                    held: list[tuple[Any, Tensor]]) -> dict[str, Sharded]:
    """One value per row. Under exact semantics one state of whole rows, saved by the shards that
    have column 0, since these cover each row once; else a state for each range between cuts."""
    exact = plan.optimizer_semantics == "exact"
    whole = (0, table.dim)
    spans = {whole} if exact else {shard.cols for shard in plan.shards_of(table.name)}
    ranges = list(pairwise(sorted({cut for span in spans for cut in span})))
    states = tuple(RowState(shard.rows[0], whole if exact else shard.cols, tensor)
                   for shard, tensor in held)
    result: dict[str, Sharded] = {}
    for columns in ranges:
        chunks = [Chunk((shard.rows[0],), tensor, not exact or shard.cols[0] == 0)
                  for shard, tensor in held
                  if exact or shard.cols[0] <= columns[0] < shard.cols[1]]
        suffix = "" if columns == whole else f".columns_{columns[0]}_{columns[1]}"
        result[key + suffix] = Sharded((table.rows,), torch.float32, chunks,
                                       RowWise(table.dim, states, suffix, spans != set(ranges)))
    return result


class StateNames:
    """The values of a state dict as attributes, `tables.embedding_bags.user.weight`: what
    torch.distributed.checkpoint.state_dict looks for behind the keys of a model's state."""

    def __init__(self, values: Mapping[str, Tensor]) -> None:
        below: dict[str, dict[str, Tensor]] = {}
        for key, value in values.items():
            first, _, rest = key.partition(".")
            if rest:
                below.setdefault(first, {})[rest] = value
            else:
                setattr(self, first, value)
        for first, rest in below.items():
            # A row-wise state of some columns has the name of that of whole rows and more.
            setattr(self, first, StateNames(rest))


def is_sharded(module: nn.Module) -> bool:
    """Whether a module holds sharded tables that state_of() accepts."""
    return callable(getattr(module, "local_shards", None)) and hasattr(module, "plan")


def _id_tables(module: Any) -> Mapping[str, Any]:
    return getattr(module, "dynamic_ids", {})


def key_of_tables(module: Any) -> str:
    """TorchRec's name for the tables of such a collection."""
    return getattr(module, "tables_key", "embedding_bags")


def load_state(module: Any, values: Mapping[str, Any]) -> list[str]:
    """Loads values for all or some keys of state_of(module); ignores other keys.

    Values on this module's own memory were loaded in place already. Other Sharded values must have
    the same chunks; ordinary tensors are whole tables, of which each rank copies its chunks: by row with the
    order of rows beside them, else by id.
    Returns a message for each value that does not fit, with its key; nothing is loaded then.
    """
    taken: dict[str, Any] = {}
    state, wrong = state_of(module), []
    ids = {f"{key_of_tables(module)}.{name}": ids_of_rows(order) for name, order in orders_of(module).items()
           if f"{key_of_tables(module)}.{name}{SUFFIX}" not in values}
    for key, own in state.items():
        if key not in values:
            continue
        try:
            if is_order(key, state):
                require_same_order(values[key], own)
                continue
            taken[key] = (_copies(own, values[key], _of_table(ids, key)) if isinstance(own, Sharded) else
                          _NUMBERS[key](values[key], own) if key in _NUMBERS else
                          numbers_of(values[key]))
        except (TypeError, ValueError) as error:
            wrong.append(f"{key}: {str(error).removeprefix(f'{key}: ')}")
    if _id_tables(module):
        wrong = all_wrong(module, state, taken, wrong)
    if wrong:
        return wrong
    step, rates = taken.pop("step", None), taken.pop("learning_rate", None)
    numbers = {key: taken.pop(key) for key in list(taken) if not isinstance(state[key], Sharded)}
    for target, source in (pair for pairs in taken.values() for pair in pairs):
        target.copy_(source)
    if numbers:
        take_maps(module, key_of_tables(module), state, numbers)
    if step is not None:
        module.step = step
    if rates is not None:
        module.set_learning_rate(rates)
    if "_session" in vars(module) and all(key in values or is_order(key, state) for key in state):
        note_all_loaded([module])
    return []


def load_from_state_dict(module: Any, state_dict: Mapping[str, Any], prefix: str, strict: bool,
                         missing_keys: list[str], unexpected_keys: list[str],
                         error_msgs: list[str]) -> None:
    """nn.Module._load_from_state_dict() of sharded tables."""
    own = state_of(module)
    error_msgs += unknown_orders(prefix + key_of_tables(module), (table.name for table in module.problem.tables),
                                 (prefix + key for key in own), state_dict)
    given = {key: state_dict[prefix + key] for key in own if prefix + key in state_dict}
    missing_keys += [prefix + key for key in own if key not in given and not is_order(key, own)]
    if strict:
        unexpected_keys += [key for key in state_dict if key.startswith(prefix)
                            and key[len(prefix):] not in own]
    error_msgs += [prefix + message for message in load_state(module, given)]


def _of_table(by_table: Mapping[str, Tensor], key: str) -> Tensor | None:
    """What is of the table that this key is of, or None. by_table: by the beginnings of keys."""
    return next((one for name, one in by_table.items() if key.startswith(f"{name}.")), None)


def _copies(own: Sharded, value: Any, ids: Tensor | None) -> list[tuple[Tensor, Tensor]]:
    """(memory of `own`, values for it) of each chunk that is not loaded yet. ids: the id of each row, where values
    of a whole tensor are by id. Raises if the value does not fit."""
    if not isinstance(value, Tensor):
        raise TypeError(f"expected a tensor of {list(own.size())}, got: {type(value).__name__}")
    if value.size() != own.size():
        raise ValueError(f"expected {list(own.size())}, got: {list(value.size())}")
    if isinstance(value, Sharded):
        sources = [chunk.tensor for chunk in value.chunks]
        if [chunk.metadata for chunk in value.chunks] != [chunk.metadata for chunk in own.chunks]:
            raise ValueError("made under another plan; torch.distributed.checkpoint cuts it anew "
                             "while it loads into the state dict of this module")
    elif type(value) in (Tensor, nn.Parameter):
        _require_values(value)
        sources = []
        for chunk in own.chunks:
            rows, *columns = (slice(begin, begin + size) for begin, size in
                              zip(chunk.offsets, chunk.tensor.shape, strict=True))
            taken = rows if ids is None else ids[rows].to(value.device)
            sources.append(value.detach()[taken][(slice(None), *columns)])
    else:
        raise TypeError("expected a whole tensor or the state dict of this module, "
                        f"got: {type(value).__name__}")
    return [(chunk.tensor, source) for chunk, source in zip(own.chunks, sources, strict=True)
            if chunk.tensor.data_ptr() != source.data_ptr()]


def _require_values(value: Tensor) -> None:
    """Raises unless this is a dense tensor of real numbers."""
    if value.layout != torch.strided:
        raise TypeError(f"expected a dense tensor, got one of layout {value.layout}; pass its "
                        "to_dense()")
    if value.is_meta:
        raise TypeError("expected a tensor with values, got one on the device meta, which has "
                        "none; load the values first")
    if value.is_complex() or value.is_quantized:
        raise TypeError(f"expected real numbers, got a tensor of {value.dtype}; convert it first")


def _number(value: Any) -> Any:
    """The number in a tensor of one element; other values as they are."""
    if not isinstance(value, Tensor):
        return value
    if isinstance(value, Sharded) or value.numel() != 1:
        raise TypeError(f"expected one number, got: a tensor of {list(value.size())}")
    _require_values(value)
    return value.item()


def _step(value: Any, _: Tensor) -> int:
    number = _number(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)  # As torch's own optimizers count.
    return _fields.update_count(number, "step")


def _learning_rates(value: Any, own: Tensor) -> list[float]:
    """One for all groups of tables, or as many as there are."""
    if isinstance(value, torch.Tensor) and own.dim() == 1 and value.shape == own.shape:
        return [_fields.learning_rate(rate) for rate in value.tolist()]
    return [_fields.learning_rate(_number(value))]


# Of the values that are one number: what takes them from a state dict.
_NUMBERS = {"step": _step, "learning_rate": _learning_rates}
