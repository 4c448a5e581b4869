"""The trained tables, frozen for serving: the model with them, and its AUC."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import torch

import neuroshard as ns

from movielens.data import Batch
from movielens.model import Vectors


class FrozenTables:
    """Tables that only answer lookups."""

    def __init__(self, weights: dict[str, torch.Tensor], problem: ns.ShardingProblem, dtype: str) -> None:
        native = problem.replace(target="native")
        with tempfile.TemporaryDirectory() as folder:
            self.tables = ns.serve(ns.freeze(weights, native, f"{folder}/frozen", dtype=dtype))

    def start(self, batch: Batch) -> Callable[[], Vectors]:
        return lambda: self.tables(ns.distributed.Jagged(batch.ids, batch.offsets))

    def zero_grad(self) -> None:
        raise RuntimeError("frozen tables are not trained")

    step = zero_grad
