"""Random sharding tasks like the paper's: 10 to 59 tables with the rows, dims and poolings of its pool,
whose tables are not published with the statistics in workloads/."""

from __future__ import annotations

import math
import random

import neuroshard as ns

LEAST_TABLES, MOST_TABLES = 10, 59
# Powers of ten of the fewest rows, and of the most over these. Poolings are log-normal: mean 15.
LEAST_ROWS, MORE_ROWS = 2.0, 5.08
MEDIAN_POOLING, POOLING_SPREAD = 4.4, 1.55
# Weights of a device, and of all of a task's tables over those of the devices.
DEVICE_GIB, MOST_SHARE = 4, 15 / 16
BATCH = 65536


def make_task(seed: int, devices: int, largest_dim: int) -> ns.ShardingProblem:
    """Dims are 4, 8, 16, ... up to the largest. Tables that no longer fit are left out."""
    dice = random.Random(f"{seed} {devices} {largest_dim}")
    left = MOST_SHARE * devices * DEVICE_GIB * 2**30
    tables, features = [], []
    for index in range(dice.randint(LEAST_TABLES, MOST_TABLES)):
        rows = int(10 ** dice.uniform(LEAST_ROWS, LEAST_ROWS + MORE_ROWS))
        dim = 2 ** dice.randint(2, int(math.log2(largest_dim)))
        pooling = max(1.0, dice.lognormvariate(math.log(MEDIAN_POOLING), POOLING_SPREAD))
        if rows * dim * 4 > min(left, DEVICE_GIB * 2**30):
            continue
        left -= rows * dim * 4
        tables.append(ns.Table(f"t{index}", rows, dim))
        features.append(ns.Feature(f"f{index}", f"t{index}", mean_pooling=pooling))
    return ns.ShardingProblem(tables=tables, features=features, batch=BATCH,
                              topology=f"{devices}xH200@{DEVICE_GIB}GiB",
                              memory_model="weights_only")
