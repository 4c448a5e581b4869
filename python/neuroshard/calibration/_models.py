"""Random models small enough that many of their plans run on one machine."""

from __future__ import annotations

import math
import random

import torch

from neuroshard._jagged import Jagged
from neuroshard._vocabulary import PRICED_OPTIMIZERS
from neuroshard.problem import ShardingProblem
from neuroshard.tables import Feature, Table
from neuroshard.topology import Topology

MEGABYTE = 1_000_000


def make_task(seed: int, topology: Topology | str, batch: int, megabytes: float,
              fewest_rows: int = 1000) -> ShardingProblem:
    """10 to 30 tables of 8 to 128 columns and at most so many MB, one optimizer, fixed poolings
    from 1 to 40 and some table that is looked up far more than the rest. fewest_rows: of a table; the
    logarithms of rows are spread evenly."""
    dice = random.Random(seed)
    optimizer = dice.choice(PRICED_OPTIMIZERS)
    tables, features, left = [], [], megabytes * MEGABYTE
    for index in range(dice.randint(10, 30)):
        dim = dice.choice((8, 16, 32, 64, 128))
        most = max(1000, min(1_000_000, int(left / 3 / (dim * 4))))
        rows = int(math.exp(dice.uniform(math.log(fewest_rows), math.log(most))))
        left -= rows * dim * 4
        pooling = round(math.exp(dice.uniform(0, math.log(40))))
        tables.append(Table(f"table{index}", rows, dim, optimizer=optimizer))
        features.append(Feature(f"feature{index}", f"table{index}", mean_pooling=pooling,
                                p99_pooling=pooling))
    hot = dice.randrange(len(features))
    features[hot] = features[hot].replace(mean_pooling=100, p99_pooling=100)
    return ShardingProblem(tables=tables, features=features, batch=batch,
                           topology=topology)


def draw_ids(problem: ShardingProblem, batch: int, seed: int) -> Jagged:
    """Uniform ids for `batch` samples of every feature."""
    generator = torch.Generator().manual_seed(seed)
    ids, lengths = [], []
    for feature in problem.features:
        pooling = int(feature.mean_pooling)
        rows = problem.table(feature.table).rows
        ids.append(torch.randint(0, rows, (batch * pooling,), generator=generator))
        lengths.append(torch.full((batch,), pooling))
    offsets = torch.zeros(batch * len(ids) + 1, dtype=torch.int64)
    torch.cumsum(torch.cat(lengths), 0, out=offsets[1:])
    return Jagged(torch.cat(ids), offsets)
