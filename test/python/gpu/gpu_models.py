"""The models, plans and batches of the comparisons of GPU kernels. Each model is one artifact
that many cases share."""

from dataclasses import replace

import torch

from support import artifact
from support.batch import from_features
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table

DIMS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 20, 36, 64, 96, 100, 128, 192, 256, 384, 512, 1024)
DTYPES = ("f32", "f16", "bf16")
INPUTS = {"l": ("i64", False), "i": ("i32", False), "wl": ("i64", True), "wi": ("i32", True)}
OPTIMIZERS = tuple(
    Optimizer(kind, weight_decay=decay, **settings)
    for decay in (0.0, 0.25)
    for kind, settings in (("sgd", {}), ("adagrad", {"initial_accumulator": 0.5, "eps": 1e-6}),
                           ("rowwise_adagrad", {"eps": 1e-3}),
                           ("adam", {"beta1": 0.8, "beta2": 0.99, "eps": 1e-4}))) + (
    Optimizer("momentum", beta1=0.8), Optimizer("momentum", weight_decay=0.25),
    Optimizer("adamw", weight_decay=0.25, eps=1e-4),
    Optimizer("partial_rowwise_adam", beta1=0.8, beta2=0.99, eps=1e-3),
    Optimizer("partial_rowwise_adam", weight_decay=0.25, eps=1e-3),
    Optimizer("rowwise_adagrad", weight_decay=0.25, weight_decay_mode="decoupled", eps=1e-3),
    Optimizer("rowwise_rmsprop", beta2=0.9, eps=1e-3),
    Optimizer("ftrl", initial_accumulator=0.5, eps=0.5, l1_penalty=1, l2_penalty=0.25),
    Optimizer("rowwise_adagrad", eps=1e-3, max_gradient=0.5),
    Optimizer("lars_sgd", beta1=0.8, eta=0.5, weight_decay=0.25),
    Optimizer("lamb", eps=1e-3, weight_decay=0.25),
    Optimizer("partial_rowwise_lamb", eps=1e-3, weight_decay=0.25),
    Optimizer("lamb", beta1=0.8, beta2=0.99, eps=1e-3, max_gradient=0.5),
    Optimizer("rowwise_adagrad_with_counter", eps=1e-3, weight_decay=0.25, counter_halflife=2),
    Optimizer("rowwise_adagrad_with_counter", eps=1e-3, weight_decay=0.25, weight_decay_mode="adagradw",
              adjustment_iter=1))
# What reads a table in training: (input, feature of the table, pooling, weighted).
READERS = (
    (("l", 0, "sum", False),),
    (("i", 0, "mean", False),),
    (("wl", 0, "sum", True),),
    (("l", 0, "unpooled", False), ("i", 0, "unpooled", False)),
    (("l", 0, "mean", False), ("l", 1, "sum", False), ("l", 0, "sum", False)),
    (("wi", 0, "sum", True), ("wi", 0, "mean", False)),
    (("i", 0, "sum", False), ("wl", 0, "sum", True), ("l", 0, "unpooled", False)),
)
ROWS = (17, 5, 40, 1, 23, 64, 9)


def make_model(tables, readers):
    """`readers`: (input, feature, table, pooling, weighted) of each lookup."""
    inputs = []
    for key, (id_type, weighted) in INPUTS.items():
        own = [reader for reader in readers if reader[0] == key]
        features = tuple(dict.fromkeys(reader[1] for reader in own))
        lookups = tuple(Lookup(feature, table, pooling, is_weighted)
                        for _, feature, table, pooling, is_weighted in own)
        if own:
            inputs.append(Input(key, features, lookups, id_type, weighted))
    return Model(list(tables), inputs)


def forward_model(rotation, dims=DIMS):
    """Every dim with every pooling and both types of ids; `rotation` rotates the element types."""
    tables, readers = [], []
    for position, dim in enumerate(dims):
        tables.append(Table(f"t{dim}", ROWS[(position + rotation) % len(ROWS)], dim,
                            DTYPES[(DIMS.index(dim) + rotation) % len(DTYPES)]))
        for key, (_, weighted) in INPUTS.items():
            poolings = ("sum",) if weighted else ("sum", "mean", "unpooled")
            readers += [(key, f"f{dim}", f"t{dim}", pooling, weighted) for pooling in poolings]
    return make_model(tables, readers)


def training_model(rotation, dims=DIMS):
    """A table per dim; optimizer, element type, rows and readers turn against it and against
    each other, so that over all rotations every pair of them meets."""
    tables, readers = [], []
    for dim in dims:
        turn = DIMS.index(dim) + rotation
        dtype, optimizer = DTYPES[turn % 3], OPTIMIZERS[turn % len(OPTIMIZERS)]
        if dtype != "f32" and turn // 3 % 2:
            optimizer = replace(optimizer, stochastic_rounding=True)
        tables.append(Table(f"t{dim}", ROWS[turn % len(ROWS)], dim, dtype, optimizer))
        for key, own, pooling, weighted in READERS[(turn + rotation // 2) % len(READERS)]:
            readers.append((key, f"f{dim}_{own}", f"t{dim}", pooling, weighted))
    return make_model(tables, readers)


def many_tables(count):
    """More tables than a kernel could have parameters for."""
    tables = [Table(f"t{number}", 1 + number % 5, (1, 4, 8, 20, 64)[number % 5], DTYPES[number % 3],
                    OPTIMIZERS[number % 2]) for number in range(count)]
    return make_model(tables, [("l", f"f{number}", f"t{number}", ("sum", "mean")[number % 2], False)
                               for number in range(count)])


def short_bags():
    """Rows of a whole warp, with every pooling."""
    return make_model([Table("t", 64, 128, "f32", OPTIMIZERS[0])],
                      [(key, "f", "t", pooling, weighted) for key, pooling, weighted in (
                          ("l", "sum", False), ("l", "mean", False), ("l", "unpooled", False),
                          ("wi", "sum", True))])


def short_runs(rows):
    """Rows of a whole warp, with and without a body for short runs."""
    tables = [Table(name, rows, dim, "f32", optimizer) for name, dim, optimizer in (
        ("narrow", 128, OPTIMIZERS[2]), ("other", 100, OPTIMIZERS[1]), ("wide", 256, OPTIMIZERS[0]))]
    return make_model(tables, [("wl", "f", table.name, "sum", True) for table in tables])


def one_table():
    """A single table."""
    return make_model([Table("only", 11, 64, "f32", OPTIMIZERS[0])],
                      [("l", "f", "only", "sum", False)])


def sharded_model():
    """Tables for shards: mainly row-wise optimizers, and tables cut in both directions."""
    tables, readers = [], []
    for position, (dim, optimizer) in enumerate((
            (24, OPTIMIZERS[2]), (68, OPTIMIZERS[2]), (20, OPTIMIZERS[0]), (136, OPTIMIZERS[3]),
            (12, OPTIMIZERS[5]), (512, OPTIMIZERS[2]), (36, OPTIMIZERS[1]),
            (40, OPTIMIZERS[11]), (28, OPTIMIZERS[12]), (32, OPTIMIZERS[13]),
            (44, OPTIMIZERS[10]), (48, OPTIMIZERS[16]), (52, OPTIMIZERS[17]), (56, OPTIMIZERS[18]),
            (300, OPTIMIZERS[19]), (60, OPTIMIZERS[20]),
            (72, OPTIMIZERS[6]), (260, OPTIMIZERS[6]), (76, OPTIMIZERS[21]),
            (264, OPTIMIZERS[22]))):
        name = f"t{dim}"
        tables.append(Table(name, 12 + position, dim, DTYPES[position % 3], optimizer))
        for key, own, pooling, weighted in READERS[position % len(READERS)]:
            readers.append((key, f"{name}_{own}", name, pooling, weighted))
    return make_model(tables, readers)


def sharded_plan(model, semantics):
    """By hand, on 3 devices: columns, columns unevenly, rows, rows and columns, whole."""
    shards = []
    for number, table in enumerate(model.tables):
        middle = table.dim // 8 * 4
        columns = [(0, table.dim)] if number in (2, 6) else [(0, middle), (middle, table.dim)]
        if number == 5:
            columns = [(0, 4), (4, 384), (384, 512)]
        rows = [(0, 5), (5, table.rows)] if number in (2, 3, 17) else [(0, table.rows)]
        places = [(r, c) for r in rows for c in columns]
        shards += [Shard(table.name, r, c, ((number + place) % 3,))
                   for place, (r, c) in enumerate(places)]
    return Plan(3, shards, semantics)


def whole_plan(model):
    return Plan(1, [Shard(table.name, (0, table.rows), (0, table.dim), (0,))
                    for table in model.tables])


def compile_model(model, plan, folder, *options):
    """An artifact for the emulator."""
    return artifact.compile_text(model.text(plan), folder, *artifact.EMULATED, *options)


# Batches

SIZES = {"ragged": 37, "one": 1, "empty": 5, "equal": 21, "none": 0, "huge": 4, "hot": 4,
         "many": 260}


def lengths_of(kind, generator, integers):
    """Bag lengths; with integers those that divide without rounding."""
    if kind.startswith("fixed"):
        return torch.full((9,), int(kind.removeprefix("fixed")))
    if kind == "last":  # the rest of the last bag is one id
        return torch.tensor([2, 4, 1])
    size = SIZES[kind]
    if kind == "many":  # more than the emulator's GPU holds four times
        return torch.full((size,), 4)
    if kind == "empty":
        return torch.zeros(size, dtype=torch.int64)
    lengths = torch.randint(0, 8, (size,), generator=generator)
    if integers:
        lengths = torch.tensor([0, 1, 2, 4])[lengths % 4]
    if kind in ("huge", "hot"):
        lengths[1] = 2048
    return lengths


def once(model, input_, feature, rows):
    """(ids, lengths): of the first reader of a table each row once but row 0, five times, and of
    the others row 1. So most rows occur once, and others twice and five times."""
    table = next(one.table for one in input_.lookups if one.feature == feature)
    first = next((other.name, one.feature) for other in model.inputs for one in other.lookups
                 if one.table == table)
    ids = (torch.cat([torch.arange(rows), torch.zeros(4, dtype=torch.int64)])
           if (input_.name, feature) == first else torch.tensor([min(1, rows - 1)]))
    bags = max(one.rows for one in model.tables) + 4
    return ids, (torch.arange(bags) < len(ids)).long()


def make_batch(model, input_, kind, generator, integers=False, lengths=None):
    """Ids of few rows; "equal" and "hot": all of one; "once": see once(). `lengths` of the bags, else
    those of the kind."""
    features = []
    for name in input_.features:
        rows = min(model.table(lookup.table).rows for lookup in input_.lookups
                   if lookup.feature == name)
        if kind == "once":
            ids, lengths = once(model, input_, name, rows)
        elif lengths is None:
            lengths = lengths_of(kind, generator, integers)
        count = int(lengths.sum())
        if kind in ("equal", "hot"):
            ids = torch.full((count,), rows - 1)
        elif kind != "once":
            ids = torch.randint(0, rows, (count,), generator=generator)
        weights = (torch.randint(-1, 2, (count,), generator=generator).float() if integers
                   else torch.randn(count, generator=generator))
        features.append((ids, lengths, weights))
    return from_features(features, input_.id_type, input_.weighted)


def make_batches(model, kind, generator, integers=False):
    return [make_batch(model, input_, kind, generator, integers) for input_ in model.inputs]


def fixed_pooling(kind):
    """Ids of each bag if the kind of batch has no offsets."""
    return int(kind.removeprefix("fixed")) if kind.startswith("fixed") else None
