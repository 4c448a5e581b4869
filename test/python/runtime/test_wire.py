"""f16 and bf16 on the wire: values that are sent are rounded as by torch's own conversion, results
and gradients each in their own type."""

import json

import pytest
import torch

from support import artifact, matrix, oracle, plans
from support.model import DTYPES
from support.session import Session


def model_for(number, emulated=False):
    return (matrix.narrow if emulated else matrix.model)((matrix.seed() + number) % matrix.COUNT)


def compile_for(wire, model, plan, folder, *options):
    return artifact.compile_text(model.text(plan), folder / wire.replace("/", "-"), "--training",
                                 "--reference", "--wire-type", wire, *options)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """compile_for, once for the same wire type and options."""
    folders = {}

    def compile_once(wire, model, plan, *options):
        if (wire, options) not in folders:
            folders[wire, options] = compile_for(wire, model, plan, tmp_path_factory.mktemp("wire"),
                                                 *options)
        return folders[wire, options]
    return compile_once


def check_rounded(result, exact, wire, lookup, plan, what):
    """`exact` is the result when f32 is sent."""
    if plan.is_replicated(lookup.table):
        oracle.assert_same_bits(result, exact, what)
        return
    if lookup.pooling == "mean" or lookup.result != "f32":
        return  # divided or rounded after the journey
    if lookup.pooling == "sum" and plan.splits_rows(lookup.table):
        return  # each partial sum is rounded
    oracle.assert_same_bits(result, exact.to(DTYPES[wire]).float(), what)


@pytest.mark.parametrize("wire", ["f16", "bf16", "f32/bf16", "bf16/f16"])
def test_results_travel_as_torch_rounds(wire, tmp_path, generator):
    model = model_for(2)
    plan = plans.random_plan(model, 3, f"wire {matrix.seed()}")
    folders = [compile_for(each, model, plan, tmp_path) for each in ("f32", wire)]
    assert json.loads((folders[1] / "manifest.json").read_text())["wire_type"] == wire
    with Session(folders[0], model, plan) as wide, Session(folders[1], model, plan) as narrow:
        for session in (wide, narrow):
            session.fill(torch.Generator().manual_seed(7), False)
        jagged = wide.random_batch(21, generator, False)
        # The update, with gradients of nothing, uses the contexts up.
        both = []
        for session in (wide, narrow):
            results, contexts = session.wait_results(jagged)
            session.update(jagged, contexts, [r.new_zeros(r.shape) for r in results], 0.0, 1)
            both.append(results)
        for k, (_, _, lookup) in enumerate(wide.readers(jagged)):
            check_rounded(both[1][k], both[0][k], wire.split("/")[0], lookup, plan,
                          f"result {k} {lookup}")


@pytest.mark.parametrize("emulated", [False, True], ids=["CPU", "GPUs"])
@pytest.mark.parametrize("wire", ["f32/bf16", "bf16/f16", "f16/f32"])
def test_gradients_travel_as_torch_rounds(wire, emulated, compiled):
    """Tables become those of gradients that were rounded before they travelled as f32. Those of means
    are divided in between; of replicated tables the sums of rows may be what is rounded."""
    model = model_for(7, emulated)
    # On two emulated GPUs, of a few tables, none has copies: those are not compared.
    plan = (plans.random_plan(model, 2, f"wire {matrix.seed()}", kinds=plans.KINDS[:4]) if emulated
            else plans.random_plan(model, 4, f"wire {matrix.seed()}"))
    options = artifact.EMULATED if emulated else ()
    rounded_to = DTYPES[wire.split("/")[1]]
    tables = []
    for each in ("f32", wire):
        with Session(compiled(each, model, plan, *options), model, plan,
                     emulated=emulated) as session:
            session.fill(torch.Generator().manual_seed(7), False)
            jagged = session.random_batch(21, torch.Generator().manual_seed(9), False)
            results, contexts = session.wait_results(jagged)
            random = torch.Generator().manual_seed(11)
            # From 1 to 2 all types have all their bits.
            gradients = [(1 + torch.rand(r.shape, generator=random)).to(r.dtype) for r in results]
            if each == "f32":
                gradients = [g.to(rounded_to).to(g.dtype) for g in gradients]
            session.update(jagged, contexts, gradients, 0.125, 1)
            tables.append(session.tables())
            means = {lookup.table for _, _, lookup in session.readers(jagged)
                     if lookup.pooling == "mean"}
    compared = [table.name for table in model.tables
                if table.name not in means and not plan.has_copies(table.name)]
    assert compared
    for name in compared:
        oracle.assert_same_bits(tables[1][name][0], tables[0][name][0], name)


@pytest.mark.parametrize("emulated", [False, True], ids=["CPU", "GPUs"])
@pytest.mark.parametrize(("wire", "groups"), [("f16", 1), ("f16/f32", 2), ("f32/f16", 2)])
def test_a_step_of_small_integers_is_exact(wire, groups, emulated, tmp_path, generator):
    """f16 holds them exactly, so no value that is sent may be lost or mixed up."""
    model = model_for(4, emulated)
    plan = plans.random_plan(model, 2 * groups if emulated else 4, f"wire {matrix.seed()}")
    plan.groups = groups
    options = artifact.EMULATED if emulated else ()
    with Session(compile_for(wire, model, plan, tmp_path, *options), model, plan,
                 emulated=emulated) as session:
        session.fill(generator, True)
        before = session.tables()
        session.sync_reference()
        jagged = session.random_batch(13, generator, True)
        results, contexts = session.wait_results(jagged)
        session.check_forward(jagged, results, True)
        # Means divide by up to 6 ids: 60 is a multiple of all of these.
        gradients = [torch.full(r.shape, 60.0, dtype=r.dtype) for r in results]
        session.update(jagged, contexts, gradients, 0.125, 1)
        session.check_update(before, jagged, gradients, 0.125, 1)
