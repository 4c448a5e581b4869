"""Sharded tables as a state dict that torch.distributed.checkpoint saves and loads.

Keys are those of TorchRec: embedding_bags.<table>.weight, and beside it the optimizer's
embedding_bags.<table>.<state>, then step and learning_rate. Every value has the shape of the
whole table and stands for the rectangles of it that this rank holds, in their own memory:
saving copies nothing but a block at a time, loading writes in place.

A row-wise state that each column shard keeps for itself (semantics per_shard) has a key per
range of columns, embedding_bags.<table>.<state>.columns_<begin>_<end>. docs/checkpoints.md
has the rule by which such states are merged when columns are cut elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn

from neuroshard._tensors import DTYPES, ROW_WISE, STATE_NAMES
from neuroshard.distributed._checkpoint.sharded import Piece, RowState, RowWise, Sharded

Part = Literal["weights", "optimizer"]



def state_of(module: Any, only: Part | None = None) -> dict[str, Tensor]:
    """The state of sharded tables, on every rank with the same keys.

    module: has plan, problem, local_shards(), step, learning_rate and, if it is not
    "embedding_bags", tables_key. only: the weights, or all but the weights.
    """
    held: dict[str, list[Any]] = {table.name: [] for table in module.problem.tables}
    for shard in module.local_shards():
        held[shard.table].append(shard)
    result: dict[str, Tensor] = {}
    for table in module.problem.tables:
        key = f"{key_of_tables(module)}.{table.name}"
        if only != "optimizer":
            result[f"{key}.weight"] = _elements(
                table, DTYPES[table.type], [(one, one.weights) for one in held[table.name]])
        if only != "weights":
            result |= _optimizer_state(module.plan, table, key, held[table.name])
    if only != "weights":
        result["step"] = torch.tensor(module.step, dtype=torch.int64)
        result["learning_rate"] = torch.tensor(module.learning_rate, dtype=torch.float64)
    return result


def _elements(table: Any, dtype: torch.dtype, held: list[tuple[Any, Tensor]]) -> Sharded:
    """Values per element of the table; replicas are equal, and the saver keeps one of equals."""
    return Sharded((table.rows, table.dim), dtype,
                   [Piece((shard.rows[0], shard.cols[0]), tensor) for shard, tensor in held])


def _optimizer_state(plan: Any, table: Any, key: str, held: list[Any]) -> dict[str, Tensor]:
    result: dict[str, Tensor] = {}
    for name in STATE_NAMES[table.optimizer.kind]:
        mine = [(shard, shard.states[name]) for shard in held]
        if table.optimizer.kind in ROW_WISE:
            result |= _row_wise_state(plan, table, f"{key}.{name}", mine)
        else:
            result[f"{key}.{name}"] = _elements(table, torch.float32, mine)
    return result


def _row_wise_state(plan: Any, table: Any, key: str,
                    held: list[tuple[Any, Tensor]]) -> dict[str, Tensor]:
    """One value per row for each range of columns that is nowhere cut; of the whole row when the
    semantics are exact, then written by the shards of column 0, which have each row once."""
    exact = plan.optimizer_semantics == "exact"
    whole = (0, table.dim)
    spans = {whole} if exact else {shard.cols for shard in plan.shards_of(table.name)}
    ranges = list(pairwise(sorted({cut for span in spans for cut in span})))
    states = tuple(RowState(shard.rows[0], whole if exact else shard.cols, tensor)
                   for shard, tensor in held)
    result: dict[str, Tensor] = {}
    for columns in ranges:
        pieces = [Piece((shard.rows[0],), tensor, not exact or shard.cols[0] == 0)
                  for shard, tensor in held
                  if exact or shard.cols[0] <= columns[0] < shard.cols[1]]
        suffix = "" if columns == whole else f".columns_{columns[0]}_{columns[1]}"
        result[key + suffix] = Sharded((table.rows,), torch.float32, pieces,
                                       RowWise(table.dim, states, suffix, spans != set(ranges)))
    return result


def is_sharded(module: nn.Module) -> bool:
    """Whether a module holds sharded tables, as state_of() wants them."""
    return callable(getattr(module, "local_shards", None)) and hasattr(module, "plan")


def key_of_tables(module: Any) -> str:
    """What TorchRec calls the tables of such a collection."""
    return getattr(module, "tables_key", "embedding_bags")


def load_state(module: Any, values: Mapping[str, Any]) -> None:
    """Takes values for keys of state_of(module), all or some; other keys are left alone.

    Values that are this module's own memory were loaded in place. Other Sharded values must have
    the same pieces; ordinary tensors are whole tables, of which each rank takes what it holds.
    ValueError says what is wrong with which; nothing but weights and states that were right has
    changed then.
    """
    own = state_of(module)
    wrong = [f"{key}: {message}" for key, value in own.items()
             if key in values and isinstance(value, Sharded)
             and (message := _copy_into(value, values[key]))]
    if wrong:
        raise ValueError("; ".join(wrong))
    if "step" in values:
        module.step = int(values["step"])
    if "learning_rate" in values:
        module.set_learning_rate(float(values["learning_rate"]))


def load_from_state_dict(module: Any, state_dict: Mapping[str, Any], prefix: str, strict: bool,
                         missing_keys: list[str], unexpected_keys: list[str],
                         error_msgs: list[str]) -> None:
    """nn.Module._load_from_state_dict() of sharded tables."""
    own = state_of(module)
    given = {key: state_dict[prefix + key] for key in own if prefix + key in state_dict}
    missing_keys += [prefix + key for key in own if key not in given]
    if strict:
        unexpected_keys += [key for key in state_dict if key.startswith(prefix)
                            and key[len(prefix):] not in own]
    try:
        load_state(module, given)
    except ValueError as error:
        error_msgs.append(f"{prefix}{error}" if prefix else str(error))


def _copy_into(own: Sharded, value: Any) -> str:
    """Copies a value into the memory of `own`; says why it cannot."""
    if not isinstance(value, Tensor):
        return f"expected a tensor of {list(own.size())}, got: {type(value).__name__}"
    if value.size() != own.size():
        return f"expected {list(own.size())}, got: {list(value.size())}"
    if isinstance(value, Sharded):
        sources = [piece.tensor for piece in value.pieces]
        if [piece.chunk for piece in value.pieces] != [piece.chunk for piece in own.pieces]:
            return ("made under another plan; torch.distributed.checkpoint cuts it anew while it "
                    "loads into the state dict of this module")
    elif type(value) in (Tensor, nn.Parameter):
        sources = [value.detach()[tuple(slice(begin, begin + size) for begin, size in
                                        zip(piece.offsets, piece.tensor.shape, strict=True))]
                   for piece in own.pieces]
    else:
        return (f"expected a whole tensor or the state dict of this module, "
                f"got: {type(value).__name__}")
    for piece, source in zip(own.pieces, sources, strict=True):
        if piece.tensor.data_ptr() != source.data_ptr():
            piece.tensor.copy_(source)
    return ""
