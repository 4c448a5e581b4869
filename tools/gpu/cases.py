"""The correctness cases of GPU kernels, for a GPU and for the emulator.

A case is a model with a plan, and the kinds of batches to run it on. Together the cases have
every element type, id type, pooling, optimizer, kind of shard, odd and even dims, and the
edges: no tables to speak of and very many, empty bags, one huge bag, equal ids, one sample.

Models and plans are those of test/python/support, which this imports (and so torch)."""

import random
from dataclasses import dataclass, replace

import torch

import paths  # noqa: F401, for support
from support import batch as batches, matrix, plans
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table

WIDE_DIMS = (4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
EDGES = ("ragged", "one", "empty", "huge", "equal", "fixed1", "fixed3", "fixed20", "none")
USUAL = ("ragged", "one", "huge")


@dataclass(frozen=True)
class Case:
    """`kinds` are the batches to run: keys of KINDS."""

    name: str
    model: Model
    plan: Plan
    kinds: tuple = USUAL


def whole(model, devices=1):
    """Whole tables, in turn on each device."""
    return Plan(devices, [Shard(table.name, (0, table.rows), (0, table.dim), (number % devices,))
                          for number, table in enumerate(model.tables)])


def plain(tables, poolings=("sum",), id_type="i64", weighted=False, results=("f32",)):
    """Every table read by one lookup, all of one input."""
    lookups = tuple(
        Lookup(f"{table.name}_id", table.name, poolings[number % len(poolings)], weighted,
               result=results[number % len(results)])
        for number, table in enumerate(tables))
    features = tuple(lookup.feature for lookup in lookups)
    return Model(list(tables), [Input("ids", features, lookups, id_type, weighted)])


def wide(optimizer, dtype, id_type, weighted):
    """Dims 4 to 512 in one launch, pooled by sum and mean, with and without a cast of results."""
    tables = [Table(f"t{dim}", 3 + 7 * number, dim, dtype, optimizer)
              for number, dim in enumerate(WIDE_DIMS)]
    poolings = ("sum",) if weighted else ("sum", "mean")
    return plain(tables, poolings, id_type, weighted, ("f32", "f16", "bf16"))


def many_tables(count):
    """More tables than a kernel could have parameters for."""
    optimizers = (Optimizer("sgd"), Optimizer("rowwise_adagrad"))
    return plain([Table(f"t{number}", 2 + number % 9, (4, 8, 64, 100)[number % 4], "f32",
                        optimizers[number % 2]) for number in range(count)])


def matrix_cases(devices, numbers):
    """All pairs of element type, dim, pooling, weights and optimizer; on several devices with
    tables cut by rows, columns and both, and replicated."""
    for number in numbers:
        model = without_unpooled_padding(matrix.model(number))
        semantics = "per_shard" if number % 2 else "exact"
        plan = (whole(model) if devices == 1 else
                plans.random_plan(model, devices, f"gpu {number}", semantics))
        yield Case(f"matrix{number}_{devices}", model, plan, EDGES if devices == 1 else USUAL)


def without_unpooled_padding(model):
    """GPUs do not train lookups that look padding up but give it no gradient."""
    inputs = [replace(input_, lookups=tuple(
        replace(lookup, padding_idx=None) if lookup.pooling == "unpooled" else lookup
        for lookup in input_.lookups)) for input_ in model.inputs]
    return replace(model, inputs=inputs)


def edge_cases():
    kinds = [Optimizer("sgd"), Optimizer("adagrad", initial_accumulator=0.1),
             Optimizer("rowwise_adagrad", eps=1e-3), Optimizer("adam", eps=1e-4)]
    for number, optimizer in enumerate(kinds):
        dtype, id_type = ("f32", "f16", "bf16", "f32")[number], ("i64", "i32")[number % 2]
        model = wide(optimizer, dtype, id_type, weighted=number >= 2)
        yield Case(f"wide_{optimizer.kind}_{dtype}", model, whole(model), EDGES)
    one = plain([Table("only", 1, 64, "f32", Optimizer("sgd"))])
    yield Case("one_table_of_one_row", one, whole(one), EDGES)
    many = many_tables(500)
    yield Case("tables500", many, whole(many), ("ragged", "one"))


def all_cases():
    """Every case; about a hundred device programs."""
    return [*edge_cases(), *matrix_cases(1, range(matrix.COUNT)),
            *matrix_cases(2, range(0, matrix.COUNT, 3)), *matrix_cases(4, range(1, matrix.COUNT, 3))]


def least_cases():
    """Three cases that run in seconds in the emulator."""
    return [*edge_cases()][4:5] + [*matrix_cases(1, (0,)), *matrix_cases(2, (3,))]


def few_cases():
    """A handful that still has every optimizer, element type and kind of shard."""
    return [*edge_cases()][:5] + [*matrix_cases(1, (0,)), *matrix_cases(2, (3, 6))]


# A table of more than 2^31 elements, for GPUs alone: 10.2 GB.
LARGE_ROWS, LARGE_DIM = 20_000_000, 128


def large_model():
    return plain([Table("large", LARGE_ROWS, LARGE_DIM, "f32", Optimizer("sgd"))])


# Batches


def lengths_of(kind, size, generator):
    if kind == "huge":
        lengths = torch.randint(0, 4, (size,), generator=generator)
        lengths[size // 2] = 1500
        return lengths
    if kind == "empty":
        return torch.zeros(size, dtype=torch.int64)
    if kind.startswith("fixed"):
        return torch.full((size,), int(kind.removeprefix("fixed")))
    lengths = torch.randint(0, 7, (size,), generator=generator)
    lengths[torch.rand(size, generator=generator) < 0.2] = 0
    return lengths


SIZES = {"ragged": 37, "one": 1, "empty": 5, "huge": 9, "equal": 33, "none": 0, "fixed1": 40,
         "fixed3": 13, "fixed20": 11}


def make_batch(model, input_, kind, generator):
    """The global batch of one input, a support.batch.Jagged."""
    features = []
    for name in input_.features:
        tables = [lookup.table for lookup in input_.lookups if lookup.feature == name]
        rows = min((model.table(table).rows for table in tables), default=1)
        lengths = lengths_of(kind, SIZES[kind], generator)
        count = int(lengths.sum())
        ids = torch.randint(0, rows, (count,), generator=generator)
        if kind == "equal":
            ids[:] = rows - 1
        weights = batches.random_values((count,), generator, False)
        features.append((ids, lengths, weights))
    return batches.from_features(features, input_.id_type, input_.weighted)


def generator_of(case, kind):
    """Random numbers of a batch, the same on every machine."""
    return torch.Generator().manual_seed(random.Random(f"{case.name} {kind}").randrange(2**31))
