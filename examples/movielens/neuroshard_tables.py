"""The embedding part sharded by NeuroShard, and whole tables gathered from its shards."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

import neuroshard as ns

from movielens.data import Batch
from movielens.model import Vectors


class NeuroShardTables:
    """Tables that the backward pass updates."""

    def __init__(self, plan: ns.Plan, problem: ns.ShardingProblem, learning_rate: float) -> None:
        self.tables = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=learning_rate)

    def start(self, batch: Batch) -> Callable[[], Vectors]:
        return self.tables.start(ns.distributed.Jagged(batch.ids, batch.offsets)).wait

    def zero_grad(self) -> None:
        pass

    def step(self) -> None:
        pass

    def whole(self) -> tuple[dict[str, torch.Tensor], dict[str, dict[str, torch.Tensor]]]:
        """All weights and optimizer states by table, on every rank."""
        mine = [(shard.table, shard.rows, shard.cols, shard.weights.clone(),
                 {name: state.clone() for name, state in shard.states.items()})
                for shard in self.tables.local_shards()]
        ranks = [None] * dist.get_world_size()
        dist.all_gather_object(ranks, mine)
        specs = {table.name: table for table in self.tables.problem.tables}
        weights = {name: torch.empty(table.rows, table.dim) for name, table in specs.items()}
        states: dict[str, dict[str, torch.Tensor]] = {name: {} for name in specs}
        for table, rows, cols, values, parts in (shard for rank in ranks for shard in rank):
            weights[table][slice(*rows), slice(*cols)] = values
            for name, part in parts.items():
                # A state per row is [rows], and equal in all column shards.
                shape = (specs[table].rows, specs[table].dim)[:part.dim()]
                whole = states[table].setdefault(name, torch.empty(shape))
                whole[(slice(*rows), slice(*cols))[:part.dim()]] = part
        return weights, states
