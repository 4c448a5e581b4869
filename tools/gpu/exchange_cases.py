"""Models and plans of the check of sharded modules on several GPUs."""

import random

import cases
from support import plans
from support.model import Optimizer, Plan, Shard, Table

RANKS = (1, 2, 4)
SEED = 2026
OPTIMIZERS = ("rowwise_adagrad", "adam", "sgd", "adagrad", "rowwise_adagrad")
DIMS = (64, 20, 128, 8, 96)


def models():
    """The models by name. In each, every kind of sharding occurs with one of the optimizers."""
    def tables(dtype):
        return [Table(f"t{number}", 40 + 500 * number, dim, dtype, Optimizer(kind))
                for number, (dim, kind) in enumerate(zip(DIMS, OPTIMIZERS))]
    return {"pooled": cases.plain(tables("f32"), ("sum", "mean")),
            "weighted": cases.plain(tables("f32"), weighted=True),
            "unpooled": cases.plain(tables("bf16"), ("unpooled",), "i32")}


def plan_of(model, ranks):
    """A plan with another kind of sharding for each table; the column shards of one table are cut
    into different ranges of rows."""
    if ranks == 1:
        return cases.whole(model)
    chooser, shards = random.Random(SEED), []
    for table, kind in zip(model.tables, ("columns", "rows", "rows_and_columns", "replicated")):
        shards += plans.cut_table(table, kind, range(ranks), ranks, chooser)
    last = model.tables[len(DIMS) - 1]
    half = last.rows // 2
    shards += [Shard(last.name, (0, last.rows), (0, 32), (0,)),
               Shard(last.name, (0, half), (32, last.dim), (1,)),
               Shard(last.name, (half, last.rows), (32, last.dim), (0,))]
    return Plan(ranks, shards)


def place(name, ranks):
    """The artifact's folder below the others."""
    return f"exchange/{name}-{ranks}"
