"""What counts as equal to PyTorch without sharding, and one update from identical state."""

from __future__ import annotations

import copy
import typing
from typing import NamedTuple

import torch
import torch.distributed as dist

import neuroshard as ns
from neuroshard.tables import WireType

from movielens.data import MovieLens
from movielens.model import Dlrm, Trainer
from movielens.neuroshard_tables import NeuroShardTables
from movielens.problem import sharding_problem
from movielens.unsharded import UnshardedTables

LEARNING_RATES = {"sgd": 1.0, "adagrad": 0.02, "rowwise_adagrad": 0.02, "adam": 1e-3}
STEPS_BEFORE = 5
# Largest difference of a weight after one update, and of the loss of any step.
ALLOWED = 1e-6
ALLOWED_LOSS = 1e-3
# Of the test AUC, with a smaller type on the wire.
ALLOWED_AUC = 2e-3
# Of the test AUC, with tables served as int8.
ALLOWED_SERVED_AUC = 1e-3
SMALLER_WIRE_TYPES = tuple(name for name in typing.get_args(WireType) if name != "f32")


class Update(NamedTuple):
    """difference: the largest difference of any weight after the update, in tables and dense part.
    moved: the largest change of any weight by the update."""

    optimizer: str
    difference: float
    moved: float


def one_update(data: MovieLens, kind: ns.OptimizerKind, *, dim: int, batch: int) -> Update:
    """Trains a few steps, so that the optimizer has a state, and then one step more: with the
    shards and with one process. The figures are on the first rank."""
    rank, size = dist.get_rank(), dist.get_world_size()
    problem = sharding_problem(data, dim=dim, batch=batch, devices=size,
                               optimizer=ns.Optimizer(kind), target="native")
    tables = NeuroShardTables(ns.distributed.plan(problem), problem, LEARNING_RATES[kind])
    sharded = Trainer(tables, Dlrm(list(data.features), dim, data.dense_width), distributed=True)
    *before, last = data.global_batches(batch, STEPS_BEFORE + 1)
    for samples in before:
        sharded.step(data.batch(data.share(samples, rank, size)))
    old_weights, states = tables.whole()
    unsharded = Trainer(
        UnshardedTables(data, old_weights, ns.Optimizer(kind), LEARNING_RATES[kind], states,
                        steps=len(before)),
        copy.deepcopy(sharded.dense), distributed=False)
    unsharded.optimizer.load_state_dict(copy.deepcopy(sharded.optimizer.state_dict()))
    sharded.step(data.batch(data.share(last, rank, size)))
    weights, _ = tables.whole()
    tables.tables.close()
    if rank != 0:
        return Update(kind, 0, 0)
    unsharded.step(data.batch(last))
    expected = unsharded.embeddings.weights()
    difference = max(_distance(weights, expected),
                     _distance(dict(sharded.dense.named_parameters()),
                               dict(unsharded.dense.named_parameters())))
    return Update(kind, difference, _distance(old_weights, expected))


def _distance(these: dict[str, torch.Tensor], those: dict[str, torch.Tensor]) -> float:
    return max((these[name] - those[name]).abs().max().item() for name in those)
