"""A change in a kernel that packs ids, moves rows or adds up makes a step on emulated GPUs go wrong, or
the emulator say so."""

import shutil
from dataclasses import replace

import pytest
import torch

import gpu_mutations as mutations
from gpu_memory import unusable
from support import artifact, matrix, sealing
from support.batch import random_batch
from support.host import RuntimeFailure
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.mutants import is_noticed
from support.session import Session

pytestmark = pytest.mark.skipif(bool(unusable()), reason=unusable())

# Ends that are compared with, one further; and sums that become differences.
go_one_further = mutations.replacing(r"arith\.cmpi ult, ", "arith.cmpi ule, ")
subtract = mutations.replacing(r"arith\.addi ", "arith.subi ")
subtract_values = mutations.replacing(r"arith\.addf ", "arith.subf ")
multiply = mutations.replacing(r"arith\.divf ", "arith.mulf ")
KERNELS = ("nsg_count_bags", "nsg_pack_ids", "nsg_add_values", "nsg_move_rows", "nsg_add_up")
CHANGES = {"go_one_further": go_one_further, "subtract": subtract,
           "subtract_values": subtract_values, "multiply": multiply}


def make_model():
    """Sums and means of tables that are cut in each way, with sample weights and rows of ids."""
    tables = [Table("whole", 24, 8, optimizer=Optimizer("adagrad")),
              Table("rows", 24, 6, optimizer=Optimizer("adagrad")),
              Table("copied", 12, 4, optimizer=Optimizer("sgd"))]
    return Model(tables, [
        Input("plain", ("a", "b", "c"), (Lookup("a", "whole", "mean", padding_idx=2),
                                         Lookup("b", "rows", "mean"), Lookup("c", "copied"))),
        Input("weighted", ("d", "e"), (Lookup("d", "rows", "sum", weighted=True),
                                       Lookup("e", "whole", "sum", weighted=True)),
              weighted=True),
        Input("unpooled", ("f", "g"), (Lookup("f", "whole", "unpooled", padding_idx=3),
                                       Lookup("g", "rows", "unpooled")))])


def make_plan():
    return Plan(2, [Shard("whole", (0, 24), (0, 8), (1,)), Shard("rows", (0, 10), (0, 6), (0,)),
                    Shard("rows", (10, 24), (0, 6), (1,)),
                    Shard("copied", (0, 12), (0, 4), (0, 1))])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("route-mutations")
    path = artifact.compile_text(make_model().text(make_plan()), folder / "model", "--training",
                                 "--reference", "--emit-ir", *artifact.EMULATED)
    return mutations.Mutants(path, folder)


# Samples of two devices, and the most ids of a bag: bags are shared by more lanes the longer they are.
BATCHES = ((20, 6), (600, 2), (10, 90), (6, 3))


def check(path):
    generator = torch.Generator().manual_seed(matrix.seed())
    with Session(path, make_model(), make_plan(), emulated=True) as session:
        session.fill(generator, True)
        for number, (size, longest) in enumerate(BATCHES, start=1):
            jagged = [random_batch(session.model, one, size, generator, True, longest)
                      for one in session.model.inputs]
            check_step(session, jagged, number)
            check_refused(session, jagged)


def check_step(session, jagged, number):
    before = session.tables()
    session.sync_reference()
    results, contexts = session.wait_results(jagged)
    session.check_forward(jagged, results, number == 1)  # then no integers
    gradients = [result.new_ones(result.shape) for result in results]
    got = session.update(jagged, contexts, gradients, 0.125, number)
    session.check_update(before, jagged, gradients, 0.125, number)
    session.check_weight_gradients(before, jagged, gradients, got)


def check_refused(session, jagged):
    """The last id is out of range."""
    last = jagged[-1]
    ids = last.ids.clone()
    ids[-1] = 24
    try:
        session.wait_results([*jagged[:-1], replace(last, ids=ids)])
    except RuntimeFailure as error:
        assert "id 24 is out of range" in str(error), error
    else:
        raise AssertionError("not refused")


def sealed(path):
    sealing.seal(path)
    return path


def test_the_kernels_without_changes_pass(compiled, monkeypatch):
    monkeypatch.setenv("NEUROSHARD_CUDA_UNCHECKED", "1")
    check(sealed(compiled.make("-none", [])))


def mutants_of(mutants):
    """(kernel, name of the change, site) of all."""
    return [(kernel, name, site) for kernel in KERNELS for name, change in CHANGES.items()
            for site in mutants.sites(kernel, change)]


def test_mutants_are_noticed(compiled, monkeypatch):
    monkeypatch.setenv("NEUROSHARD_CUDA_UNCHECKED", "1")
    chosen = matrix.sample(range(len(mutants_of(compiled))), 6, "route mutations")
    unnoticed = []
    for number, (kernel, name, site) in enumerate(mutants_of(compiled)):
        if number not in chosen:
            continue
        path = sealed(compiled.make(f"-{number}", [site]))
        if not is_noticed(check, path, (AssertionError, RuntimeFailure, RuntimeError)):
            unnoticed.append((kernel, name, compiled.text.count("\n", 0, site[0]) + 1))
        shutil.rmtree(path)
    assert not unnoticed
