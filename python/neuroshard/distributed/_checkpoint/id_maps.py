"""The maps of dynamic ids in a state dict (docs/dynamic-ids.md).

embedding_bags.<table>.ids has an entry for each row of the table but the last, [rows - 1, 6]: id, row, count,
last and since (lib/RuntimeTorch/Ids/IdOperators.cpp), and the rank that gives the row to ids. Entries lie by
rank. .ids.candidates has ids that are counted and have no row, in the same form; .ids.numbers is ranks,
batches, seed. The tensors are copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from neuroshard._group.agreement import gather
from neuroshard.distributed._checkpoint.sharded import Chunk, Sharded
from neuroshard.distributed._dynamic_ids.adoption import adopt
from neuroshard.distributed._dynamic_ids.id_table import FIELDS, IdTable, with_owner

NUMBERS = 3


def id_state(tables: Mapping[str, IdTable], prefix: str) -> dict[str, Tensor]:
    """prefix: of the keys of a module's tables."""
    result: dict[str, Tensor] = {}
    for name, table in tables.items():
        key = f"{prefix}.{name}.ids"
        result[key] = _entries(table, table.owner.entries(), table.shared_row,
                               table.begins[table.exchange.rank])
        if table.num_candidates:
            result[f"{key}.candidates"] = _entries(table, table.owner.candidates(), table.num_candidates,
                                                   table.candidate_range[0])
        result[f"{key}.numbers"] = torch.tensor([table.exchange.size, table.owner.batches(), table.seed])
    return result


def _entries(table: IdTable, entries: Tensor, size: int, begin: int) -> Sharded:
    chunks = [Chunk((begin, 0), with_owner(entries, table.exchange.rank))] if entries.shape[0] else []
    return Sharded((size, FIELDS + 1), torch.int64, chunks)


def numbers_of(value: Any) -> list[int]:
    """What .ids.numbers has. Raises a TypeError or ValueError for other values."""
    if not isinstance(value, Tensor) or value.dtype != torch.int64 or value.numel() != NUMBERS:
        raise ValueError(f"expected {NUMBERS} numbers of torch.int64, got: {value}")
    return value.flatten().tolist()


def all_wrong(module: Any, state: Mapping[str, Tensor], given: Mapping[str, Any],
              wrong: list[str]) -> list[str]:
    """What is wrong with values for a module, on all ranks if on one. given: the values that fit. A map is
    loaded whole or not at all."""
    keys = [key for key in state if ".ids" in key]
    for key in keys:
        others = key.partition(".ids")[0] + ".ids"
        if key not in given and any(one in given for one in keys if one.startswith(others)):
            wrong = [*wrong, f"{key}: expected with the other keys of {others}, got none"]
    everyone = gather(wrong, module.process_group)
    first = [f"rank {rank}: {one[0]}" for rank, one in enumerate(everyone) if one][:1]
    return wrong or first


def take_maps(module: Any, prefix: str, state: Mapping[str, Tensor], numbers: Mapping[str, list[int]]) -> None:
    """Takes the maps of a state dict of this module, whose chunks were loaded. All ranks call it
    together."""
    if module._sent_ahead:
        module._sent_ahead.recall()
    for name, table in module.dynamic_ids.items():
        key = f"{prefix}.{name}.ids"
        if f"{key}.numbers" not in numbers:
            continue
        ranks, batches, table.seed = numbers[f"{key}.numbers"]
        adopt(table, _chunk(state[key]), _chunk(state.get(f"{key}.candidates")), ranks, batches)


def _chunk(value: Tensor | None) -> Tensor:
    if value is None or not value.chunks:
        return torch.empty(0, FIELDS + 1, dtype=torch.int64)
    return value.chunks[0].tensor
