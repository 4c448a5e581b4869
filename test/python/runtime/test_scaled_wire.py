"""int8 and fp8 on the wire: rows are rounded with a scale for each shard's columns, by a reference in
torch; emulated GPUs send the same bits as CPUs, also by relay; errors stay within the bounds of
docs/runtime.md."""

import pytest
import torch

from support import artifact, matrix, oracle, plans
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.session import Session

WIRES = ["int8", "fp8"]
LARGEST = {"int8": 127.0, "fp8": 448.0}


def compile_for(wire, model, plan, folder, *options):
    name = f"{wire.replace('/', '-')}-{plan.groups}{''.join(options)}"
    return artifact.compile_text(model.text(plan), folder / name, "--training", "--reference",
                                 "--wire-type", wire, *options)


def to_bytes(quotients, wire):
    if wire == "fp8":
        return quotients.to(torch.float8_e4m3fn).float()
    return quotients.round().clamp(-127, 127)  # ties to even


def rounded(rows, wire, columns):
    """f32 rows as they arrive: each range of columns has a scale of its own."""
    pieces = []
    for begin, end in columns:
        piece = rows[:, begin:end]
        scale = piece.abs().amax(dim=1, keepdim=True) / LARGEST[wire]
        quotients = torch.where(scale > 0, piece / scale, torch.zeros_like(piece))
        pieces.append(to_bytes(quotients, wire) * scale)
    return torch.cat(pieces, dim=1)


def columns_of(plan, table):
    return sorted({shard.cols for shard in plan.shards_of(table)})


def step(session, gradients_of, integers=False):
    """Results of one step, and the tables after it."""
    session.fill(torch.Generator().manual_seed(7), integers)
    jagged = session.random_batch(21, torch.Generator().manual_seed(9), integers)
    results, contexts = session.wait_results(jagged)
    gradients = gradients_of(session.readers(jagged), results)
    session.update(jagged, contexts, gradients, 0.125, 1)
    return session.readers(jagged), results, session.tables()


def random_gradients(_, results):
    random = torch.Generator().manual_seed(11)
    return [torch.randn(r.shape, generator=random).to(r.dtype) for r in results]


@pytest.mark.parametrize("wire", WIRES)
def test_results_have_a_scale_for_each_row_of_a_shard(wire, tmp_path):
    model = matrix.model((matrix.seed() + 2) % matrix.COUNT)
    plan = plans.random_plan(model, 3, f"scaled {matrix.seed()}")
    both = []
    for each in ("f32", f"{wire}/f32"):
        with Session(compile_for(each, model, plan, tmp_path), model, plan) as session:
            both.append(step(session, random_gradients))
    compared = 0
    for (_, _, lookup), exact, found in zip(both[0][0], both[0][1], both[1][1]):
        if plan.is_replicated(lookup.table):
            oracle.assert_same_bits(found, exact, lookup)
        elif lookup.result == "f32" and lookup.pooling != "mean" and not (
                lookup.pooling == "sum" and plan.splits_rows(lookup.table)):
            oracle.assert_same_bits(found, rounded(exact, wire, columns_of(plan, lookup.table)), lookup)
            compared += 1
    assert compared
    for name, (weights, _) in both[0][2].items():
        oracle.assert_same_bits(both[1][2][name][0], weights, name)


def summing_model():
    """Sums and rows of ids in f32, of tables that are cut in each way."""
    adagrad = Optimizer("adagrad")
    tables = [Table("whole", 24, 8, optimizer=adagrad), Table("rows", 24, 12, optimizer=adagrad),
              Table("columns", 16, 12, optimizer=adagrad), Table("copied", 12, 4, optimizer=adagrad)]
    lookups = (Lookup("a", "whole"), Lookup("b", "rows"), Lookup("c", "columns"),
               Lookup("d", "copied"), Lookup("e", "columns", "unpooled"))
    shards = [Shard("whole", (0, 24), (0, 8), (1,)), Shard("rows", (0, 10), (0, 12), (0,)),
              Shard("rows", (10, 24), (0, 12), (2,)), Shard("columns", (0, 16), (0, 4), (0,)),
              Shard("columns", (0, 16), (4, 12), (1,)), Shard("copied", (0, 12), (0, 4), (0, 1, 2))]
    return Model(tables, [Input("ids", ("a", "b", "c", "d", "e"), lookups)]), Plan(3, shards)


@pytest.mark.parametrize("emulated", [False, True], ids=["CPU", "GPUs"])
@pytest.mark.parametrize("wire", WIRES)
def test_gradients_have_a_scale_for_each_row_of_a_shard(wire, emulated, tmp_path):
    """Tables become those of gradients that were rounded before they travelled as f32; of copies the
    sums of rows may be what travels, as bf16."""
    model, plan = summing_model()
    options = artifact.EMULATED if emulated else ()

    def rounded_gradients(readers, results):
        return [rounded(gradient, wire, columns_of(plan, lookup.table))
                for (_, _, lookup), gradient in zip(readers, random_gradients(readers, results))]

    both = []
    for each, gradients in (("f32", rounded_gradients), (f"f32/{wire}", random_gradients)):
        with Session(compile_for(each, model, plan, tmp_path, *options), model, plan,
                     emulated=emulated) as session:
            both.append(step(session, gradients))
    for table in model.tables:
        one, other = both[1][2][table.name][0], both[0][2][table.name][0]
        if plan.is_replicated(table.name):
            torch.testing.assert_close(one.float(), other.float(), rtol=2**-6, atol=2**-6)
        else:
            oracle.assert_same_bits(one, other, table.name)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("wire", WIRES)
def test_emulated_gpus_send_the_bits_of_cpus(wire, groups, tmp_path):
    """Sums of integers are the same in any order, so that all that is rounded is the same."""
    model = matrix.narrow((matrix.seed() + 4) % matrix.COUNT)
    plan = plans.random_plan(model, 2 * groups, f"scaled {matrix.seed()}")
    plan.groups = groups

    def whole_gradients(_, results):
        random = torch.Generator().manual_seed(13)
        return [torch.randint(-60, 61, r.shape, generator=random).to(r.dtype) for r in results]

    both = []
    for emulated in (False, True):
        options = artifact.EMULATED if emulated else ()
        with Session(compile_for(wire, model, plan, tmp_path, *options), model, plan,
                     emulated=emulated) as session:
            both.append(step(session, whole_gradients, integers=True))
    for (_, _, lookup), cpu, gpu in zip(both[0][0], both[0][1], both[1][1]):
        oracle.assert_same_bits(gpu, cpu, lookup)
    for name, (weights, _) in both[0][2].items():
        torch.testing.assert_close(both[1][2][name][0].float(), weights.float(), rtol=1e-2, atol=1e-2)


def error_of(values, wire):
    """Largest error of rows with a scale each, by docs/runtime.md."""
    largest = values.abs().amax(dim=1, keepdim=True)
    bound = largest.expand_as(values) / 254
    if wire == "fp8":
        bound = torch.maximum(values.abs() / 16, largest.expand_as(values) / 458752)
    return bound + 2.0 ** -22 * largest


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("wire", WIRES)
def test_results_are_within_the_bounds(wire, groups, tmp_path):
    """Partial sums of row shards are rounded each, and their sums by relay once more."""
    model = matrix.model((matrix.seed() + 4) % matrix.COUNT)
    plan = plans.random_plan(model, 4, f"scaled {matrix.seed()}", kinds=("rows", "table_wise"))
    plan.groups = groups
    compared = 0
    with Session(compile_for(f"{wire}/f32", model, plan, tmp_path), model, plan) as session:
        session.fill(torch.Generator().manual_seed(7), False)
        tables = session.tables()
        jagged = session.random_batch(21, torch.Generator().manual_seed(9), False)
        results, contexts = session.wait_results(jagged)
        session.update(jagged, contexts, [r.new_zeros(r.shape) for r in results], 0.0, 1)
        for reader, found in zip(session.readers(jagged), results):
            if reader[2].result == "f32" and reader[2].pooling == "sum":
                check_bounds(found, tables, plan, reader, wire)
                compared += 1
    assert compared


def check_bounds(found, tables, plan, reader, wire):
    weights, lookup = tables[reader[2].table][0], reader[2]
    exact = oracle.forward(weights, *reader)
    bound = exact.error
    for shard in plan.shards_of(lookup.table):
        own = torch.zeros_like(weights)
        own[slice(*shard.rows)] = weights[slice(*shard.rows)]
        partial = oracle.forward(own, *reader).value
        error = error_of(partial, wire)
        bound = bound + error
        if plan.groups > 1:  # relays round sums of what they have got
            bound = bound + error_of(partial.abs() + error, wire)
    assert ((found.double() - exact.value).abs() <= bound).all(), lookup
