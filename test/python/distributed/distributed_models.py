"""Problems and plans that together cover types, poolings, optimizers and kinds of sharding.

A problem has one table per dim; its number turns all other properties against the dims."""

import random

import neuroshard as ns
from support import batch as batches
from support import plans
from support.batch import from_features
from support.model import Input, Lookup

COUNT = 24
TYPES = ("f32", "f16", "bf16")
DIMS = (1, 4, 12, 20, 64, 10, 36, 8)
ROWS = (17, 5, 40, 1, 23, 64, 9, 31)
# A kind of sharding meets few of these: their places decide which (kinds_of).
OPTIMIZERS = (ns.Optimizer("sgd"), ns.Optimizer("adagrad", eps=1e-6, initial_accumulator=0.5),
              ns.Optimizer("rowwise_adagrad"), ns.Optimizer("adam"),
              ns.Optimizer("sgd", weight_decay=0.25),
              ns.Optimizer("rowwise_adagrad", weight_decay=0.25, weight_decay_mode="decoupled"),
              ns.Optimizer("partial_rowwise_adam", eps=1e-3, weight_decay=0.25, weight_decay_mode="l2"),
              ns.Optimizer("momentum", beta1=0.8, weight_decay=0.25),
              ns.Optimizer("adamw", eps=1e-4, weight_decay=0.25),
              ns.Optimizer("partial_rowwise_adam", eps=1e-3, weight_decay=0.25),
              ns.Optimizer("adam", beta1=0.8, beta2=0.99, eps=1e-4),
              ns.Optimizer("rowwise_adagrad", eps=1e-3, initial_accumulator=0.25, weight_decay=0.25),
              ns.Optimizer("ftrl", eps=0.5, initial_accumulator=0.25, l1_penalty=0.125,
                           l2_penalty=0.5),
              ns.Optimizer("rowwise_rmsprop", beta2=0.9, eps=1e-3, weight_decay=0.25),
              ns.Optimizer("rowwise_adagrad", eps=1e-3, max_gradient=0.25),
              ns.Optimizer("adam", eps=1e-4, weight_decay=0.25, max_gradient=0.25),
              ns.Optimizer("lars_sgd", beta1=0.8, eta=0.5, weight_decay=0.25),
              ns.Optimizer("lamb", eps=1e-4, weight_decay=0.25),
              ns.Optimizer("partial_rowwise_lamb", eps=1e-4, weight_decay=0.25),
              ns.Optimizer("lars_sgd", eta=0.25, max_gradient=0.25),
              ns.Optimizer("lamb", beta1=0.8, beta2=0.99, eps=1e-4),
              ns.Optimizer("partial_rowwise_lamb", beta1=0.8, beta2=0.99, eps=1e-4),
              ns.Optimizer("rowwise_adagrad_with_counter", eps=1e-3, weight_decay=0.25,
                           counter_halflife=2),
              ns.Optimizer("rowwise_adagrad_with_counter", eps=1e-3, weight_decay=0.25,
                           weight_decay_mode="adagradw", adjustment_iter=1))
KINDS = (*plans.KINDS, "even_rows", "even_columns", "one_rank")
# Poolings of the features of a table. Weights are for sums, and for all features or none.
READERS = (("sum",), ("mean",), ("sum", "mean"), ("mean", "sum", "mean"))
WEIGHTED_READERS = (("sum",), ("sum", "sum"))
UNPOOLED_READERS = (("none",), ("none", "none"))


def wire_type(number):
    """One for results and gradients, or one of each."""
    if number % 4 == 0:
        return "f32"
    results = number // 4 % 3
    gradients = (results + number) % 3 if number % 4 != 3 else results
    return TYPES[results] if results == gradients else f"{TYPES[results]}/{TYPES[gradients]}"


def make_problem(number, ranks, unpooled=False, **rest):
    """Problem `number` of COUNT."""
    tables, features = [], []
    weighted = not unpooled and number % 3 == 0
    readers = UNPOOLED_READERS if unpooled else WEIGHTED_READERS if weighted else READERS
    for place, dim in enumerate(DIMS):
        kind, optimizer = TYPES[(place + number // 2) % 3], OPTIMIZERS[(place + number) % len(OPTIMIZERS)]
        if kind != "f32" and (place + number // 3) % 2:
            optimizer = optimizer.replace(stochastic_rounding=True)
        table = ns.Table(f"t{dim}", ROWS[(3 * place + number) % 8], dim, kind, optimizer)
        tables.append(table)
        for own, pooling in enumerate(readers[(place + number // 3) % len(readers)]):
            features.append(ns.Feature(f"{table.name}_{own}", table.name, pooling, 3, 8,
                                       weighted=weighted, needs_weight_gradient=weighted))
    batch = ns.Batch(32, "i32" if number // 2 % 2 else "i64", TYPES[number // 2 % 3],
                     wire_type(number))
    return ns.ShardingProblem(
        tables=tables, features=features, batch=batch, topology=f"{ranks}xCPU@4GiB",
        optimizer_semantics="per_shard" if number // 2 % 2 else "exact", **rest)


def kinds_of(number):
    """How each table of a problem is sharded."""
    return [KINDS[(place + number) % len(KINDS)] for place in range(len(DIMS))]


def make_plan(problem, kinds, ranks, seed, idle=()):
    """kinds[i] is how table i is sharded, at random places, on ranks that are not in `idle`."""
    chooser = random.Random(str(seed))
    owners = [rank for rank in range(ranks) if rank not in idle]
    shards = []
    for table, kind in zip(problem.tables, kinds, strict=True):
        if kind == "replicated" and (ranks == 1 or idle):
            kind = "table_wise"
        if kind == "hot_rows" and problem.optimizer_semantics == "per_shard" and table.rows > 1:
            # All rows have as many states.
            pieces = plans.cut_hot_rows(table, owners, ranks, chooser, ("table_wise", "rows"))
        else:
            pieces = cut(table, kind, owners, ranks, chooser)
        shards += [ns.Shard(table=one.table, rows=one.rows, cols=one.cols, devices=one.devices) for one in pieces]
    plan = ns.Plan(shards=shards, device_count=ranks,
                   optimizer_semantics=problem.optimizer_semantics)
    plan.verify(problem)
    return plan


def in_tiers(plan, seed, tiers):
    """The plan with half of the shards that are on one device in lower tiers, with small caches."""
    chooser = random.Random(f"{seed} in tiers")
    return plan.replace(shards=[
        one.replace(tier=chooser.choice(tiers), cache_rows=32,
                    cache_policy=chooser.choice(("lru", "lfu")))
        if len(one.devices) == 1 and chooser.random() < 0.5 else one for one in plan.shards])


def cut(table, kind, owners, ranks, chooser):
    if kind == "even_rows":
        return grid(table, evenly(table.rows, len(owners), 1), [(0, table.dim)], owners)
    if kind == "even_columns":
        return grid(table, [(0, table.rows)], evenly(table.dim, len(owners), 4), owners)
    if kind == "one_rank":
        return grid(table, evenly(table.rows, 3, 1), evenly(table.dim, 2, 4),
                    [chooser.choice(owners)])
    return plans.cut_table(table, kind, owners, ranks, chooser)


def evenly(size, pieces, unit):
    """Up to `pieces` ranges of equal size, a multiple of `unit`; the last may be smaller."""
    step = -(-size // (pieces * unit)) * unit
    return [(begin, min(begin + step, size)) for begin in range(0, size, step)]


def grid(table, rows, cols, owners):
    places = [(r, c) for r in rows for c in cols]
    return [plans.Shard(table.name, r, c, (owners[number % len(owners)],))
            for number, (r, c) in enumerate(places)]


def lone(problem):
    """The problem and a plan for one device, every table whole."""
    alone = problem.replace(topology="1xCPU@4GiB")
    return alone, make_plan(alone, ["table_wise"] * len(problem.tables), 1, 0)


def input_of(problem):
    """The problem's ids in the form of support.batch and support.oracle."""
    lookups = tuple(Lookup(one.name, one.table, "unpooled" if one.pooling == "none"
                           else one.pooling, one.weighted, None, problem.batch.output_type)
                    for one in problem.features)
    return Input("ids", tuple(one.name for one in problem.features), lookups,
                 problem.batch.id_type, any(one.weighted for one in problem.features))


def random_parts(problem, sizes, generator):
    """The local batch of each rank, of these sizes."""
    return [batches.random_batch(problem, input_of(problem), size, generator) for size in sizes]


def exportable_parts(problem, sizes, generator):
    """As random_parts, with two ids or more in each part: torch.export takes a size of 0 or 1 for a
    constant."""
    while True:
        parts = random_parts(problem, sizes, generator)
        if all(len(part.ids) > 1 for part in parts):
            return parts


def joined(problem, parts):
    """The global batch: the ranks' samples one after the other."""
    features = []
    for number in range(len(problem.features)):
        pieces = [part.feature(number) for part in parts]
        weights = None if pieces[0][2] is None else batches.torch.cat([one[2] for one in pieces])
        features.append((batches.torch.cat([one[0] for one in pieces]),
                         batches.torch.cat([one[1].diff() for one in pieces]), weights))
    return from_features(features, problem.batch.id_type, parts[0].weights is not None)
