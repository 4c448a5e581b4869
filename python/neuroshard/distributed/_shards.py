"""The shards of one rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from neuroshard._artifact.manifest import Manifest
from neuroshard._artifact.optimizer_states import STATE_NAMES


@dataclass(frozen=True)
class LocalShard:
    """One shard of a table on this rank; the tensors are the shard's own memory.

    rows, cols: half-open ranges of the table. devices: the ranks that hold a copy. weights: [rows, cols] of the table's type; rows may be padded. states: by
    name ("sum"; "exp_avg", "exp_avg_sq"), f32, [rows, cols], or [rows] for row-wise optimizers.
    Under exact semantics all column shards of a row have the same row-wise state; under per_shard
    each has its own."""

    name: str
    table: str
    rows: tuple[int, int]
    cols: tuple[int, int]
    devices: tuple[int, ...]
    weights: torch.Tensor
    states: dict[str, torch.Tensor] = field(default_factory=dict)


def local_shards(tensors_of: Callable[[int], Sequence[torch.Tensor]], manifest: Manifest,
                 rank: int) -> tuple[LocalShard, ...]:
    """The shards of an open model on this rank. tensors_of: weights and states of a shard."""
    shards = []
    for index, spec in enumerate(manifest.shards_of(rank)):
        weights, *states = tensors_of(index)
        table = manifest.table(spec["table"])
        names = STATE_NAMES[table["optimizer"]["kind"]] if table["optimizer"] else ()
        shards.append(LocalShard(spec["name"], table["name"], tuple(spec["rows"]),
                                 tuple(spec["cols"]), tuple(spec["devices"]), weights,
                                 dict(zip(names, states, strict=True))))
    return tuple(shards)
