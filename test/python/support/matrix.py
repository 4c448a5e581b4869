"""Models that together cover the matrix of element types, dims, poolings and optimizers.

A model has one table per dim. Its number turns the other properties against the dims, so
that over all numbers every pair of properties meets.
"""

import os
import random
from dataclasses import replace

from support.model import Input, Lookup, Model, Optimizer, Table

# Whether every case runs, also those of emulated GPUs that take long; else samples do.
ALL = bool(os.environ.get("NEUROSHARD_ALL"))
DIMS = (1, 3, 4, 10, 64, 100, 128, 200)
DTYPES = ("f32", "f16", "bf16")
OPTIMIZERS = (Optimizer("sgd"), Optimizer("adagrad", eps=1e-6, initial_accumulator=0.5),
              Optimizer("rowwise_adagrad"), Optimizer("adam"),
              Optimizer("sgd", weight_decay=0.25), Optimizer("rowwise_adagrad", eps=1e-3, weight_decay=0.25),
              Optimizer("adam", beta1=0.8, beta2=0.99, eps=1e-4), None,
              Optimizer("momentum", beta1=0.8, weight_decay=0.25),
              Optimizer("adamw", eps=1e-4, weight_decay=0.25),
              Optimizer("partial_rowwise_adam", beta1=0.8, beta2=0.99, eps=1e-4),
              Optimizer("partial_rowwise_adam", eps=1e-3, weight_decay=0.25),
              Optimizer("rowwise_adagrad", weight_decay=0.25, weight_decay_mode="decoupled"),
              Optimizer("rowwise_rmsprop", beta2=0.9, eps=1e-3),
              Optimizer("ftrl", eps=0.5, initial_accumulator=0.25, l1_penalty=0.125,
                        l2_penalty=0.5),
              Optimizer("rowwise_adagrad", eps=1e-3, max_gradient=0.25),
              Optimizer("adam", eps=1e-4, weight_decay=0.25, max_gradient=0.25),
              Optimizer("lars_sgd", beta1=0.8, eta=0.5, weight_decay=0.25),
              Optimizer("lamb", eps=1e-4, weight_decay=0.25),
              Optimizer("partial_rowwise_lamb", eps=1e-4, weight_decay=0.25),
              Optimizer("lars_sgd", eta=0.25),
              Optimizer("lamb", beta1=0.8, beta2=0.99, eps=1e-4, max_gradient=0.25),
              Optimizer("partial_rowwise_lamb", beta1=0.8, beta2=0.99, eps=1e-4),
              Optimizer("rowwise_adagrad_with_counter", eps=1e-3, weight_decay=0.25,
                        counter_halflife=2.0),
              Optimizer("rowwise_adagrad_with_counter", eps=1e-3, weight_decay=0.25,
                        weight_decay_mode="adagradw", adjustment_iter=1.0),
              Optimizer("rowwise_adagrad_with_counter", eps=1e-3, weight_decay=0.25,
                        weight_decay_mode="decoupled", counter_halflife=3.0, max_gradient=0.25))
# Inputs: l and i are plain with i64 and i32 ids, wl and wi have sample weights.
INPUTS = {"l": ("i64", False), "i": ("i32", False), "wl": ("i64", True), "wi": ("i32", True)}
# What reads a table: (input, own feature number, pooling, weighted, padded) of each lookup.
READERS = (
    (("l", 0, "sum", False, False),),
    (("i", 0, "mean", False, True),),
    (("wl", 0, "sum", True, False),),
    (("l", 0, "unpooled", False, True), ("i", 0, "unpooled", False, False)),
    (("l", 0, "sum", False, False), ("l", 1, "mean", False, False), ("i", 0, "sum", False, True)),
    (("wi", 0, "sum", True, True), ("wi", 0, "mean", False, False)),
    (("i", 0, "mean", False, False), ("i", 0, "unpooled", False, False)),
    (("wl", 0, "sum", True, False), ("wl", 1, "sum", True, True), ("wi", 0, "sum", True, False)),
)
COUNT = len(DTYPES) * len(OPTIMIZERS)


def model(number):
    """Model `number` of COUNT."""
    tables, lookups, features = [], {key: [] for key in INPUTS}, {key: [] for key in INPUTS}
    for position, dim in enumerate(DIMS):
        name = f"t{dim}"
        rows = (17, 5, 40, 1, 23, 64, 9, 31)[(position + number) % 8]
        optimizer = OPTIMIZERS[(position + number) % len(OPTIMIZERS)]
        dtype = DTYPES[(position + number) % 3]
        if optimizer and dtype != "f32" and (position + number // 3) % 2:
            optimizer = replace(optimizer, stochastic_rounding=True)
        tables.append(Table(name, rows, dim, dtype, optimizer))
        readers = READERS[(position + number // 3) % len(READERS)]
        for order, (key, own, pooling, weighted, padded) in enumerate(readers):
            feature = f"{name}_{own}"
            if feature not in features[key]:
                features[key].append(feature)
            result = DTYPES[(position + order + number // len(READERS)) % 3]
            padding = min(2, rows - 1) if padded else None
            lookups[key].append(Lookup(feature, name, pooling, weighted, padding, result))
    inputs = [Input(key, tuple(features[key]), tuple(lookups[key]), *INPUTS[key])
              for key in INPUTS if lookups[key]]
    return Model(tables, inputs)


def narrow(number):
    """Model `number` with every second table, for where each takes long: on emulated GPUs, and for
    many devices."""
    whole = model(number)
    tables = [table for table in whole.tables if table.dim in (3, 10, 64, 100)]
    names = {table.name for table in tables}
    inputs = [replace(input_, lookups=tuple(k for k in input_.lookups if k.table in names))
              for input_ in whole.inputs]
    return Model(tables, [input_ for input_ in inputs if input_.lookups])


def seed():
    return int(os.environ.get("NEUROSHARD_SEED", "1"))


def sample(items, count, salt):
    """All items under NEUROSHARD_ALL, else `count` of them, drawn with the seed."""
    items = list(items)
    if ALL:
        return items
    return sorted(random.Random(f"{seed()} {salt}").sample(items, count))


def spread(count, salt):
    """`count` numbers of models, drawn with the seed, whose optimizers are as far apart as can be:
    four models have all of them."""
    chooser = random.Random(f"{seed()} {salt}")
    kinds = len(OPTIMIZERS)
    first = chooser.randrange(kinds)
    numbers = [(first + turn * kinds // count) % kinds + kinds * chooser.randrange(len(DTYPES))
               for turn in range(count)]
    chooser.shuffle(numbers)
    return numbers
