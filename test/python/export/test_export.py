"""Exported models give the results of eager mode: in plain torch and in TorchRec, at several batch
sizes, with empty bags and shared tables, on devices over which every table is cut."""

import neuroshard
import pytest
import torch
from export_cases import case
from export_models import PLAIN
from export_runs import compare, embeddings_left, hand_made_plan, lookups_in
from support import matrix

NAMES = [prefix + name for prefix in ("", "torchrec_") for name in PLAIN]
# How often the model looks rows up, and the tables it has.
LOOKUPS = {"dlrm": (3, 3), "dcn": (3, 2), "deepfm": (4, 4), "two_tower": (3, 2),
           "sequence": (2, 2), "torchrec_dlrm": (4, 3), "torchrec_dcn": (2, 2),
           "torchrec_deepfm": (4, 4), "torchrec_two_tower": (3, 3), "torchrec_sequence": (2, 2)}
# Its rows are padded by lengths, which is no linalg.
LINALG = [name for name in NAMES if name != "torchrec_sequence"]
EXAMPLE = 4


def check(name, dense, generator, devices, sizes):
    model, batch = case(name)
    exported = neuroshard.export(model, batch(EXAMPLE, generator), dense=dense,
                                 optimizer="rowwise_adagrad")
    lookups, tables = LOOKUPS[name]
    assert len(lookups_in(exported)) == lookups
    assert exported.counts == {"neuroshard.table": tables, "neuroshard.lookup": lookups,
                               "embeddings left to torch": 0}
    assert not embeddings_left(exported)
    plan = hand_made_plan(exported, devices, f"{name} {matrix.seed()}")
    compare(model, exported, [batch(size, generator) for size in sizes], plan=plan)


@pytest.mark.parametrize("name", NAMES)
def test_equals_eager(name, generator):
    check(name, "external", generator, 3, (8, 5, 1))


@pytest.mark.parametrize("name", matrix.sample(LINALG, 1, "export linalg"))
def test_linalg_equals_eager(name, generator):
    check(name, "torch-mlir", generator, 2, (8, 5, 1))


@pytest.mark.parametrize("devices", matrix.sample((1, 2, 4), 1, "export devices"))
@pytest.mark.parametrize("name", matrix.sample(NAMES, 2, "export planned"))
def test_planned_by_the_planner(name, devices, generator):
    model, batch = case(name)
    exported = neuroshard.export(model, batch(EXAMPLE, generator), batch=64 * devices)
    problem = exported.problem(f"{devices}xCPU")
    assert problem.batch.global_size == 64 * devices
    assert [table.name for table in problem.tables] == [table.name for table in exported.tables]
    plan = neuroshard.plan(problem, evaluation_budget=200).plan
    compare(model, exported, [batch(size, generator) for size in (3, 12)], plan=plan)


def test_static_batch(generator):
    model, batch = case("dcn")
    exported = neuroshard.export(model, batch(EXAMPLE, generator), dynamic_batch=False)
    assert "tensor<4x13xf32>" in exported.mlir
    compare(model, exported, [batch(EXAMPLE, generator)])


def test_weights_are_those_of_the_moment(generator):
    model, batch = case("dlrm")
    exported = neuroshard.export(model, batch(EXAMPLE, generator))
    arguments = batch(6, generator)
    with torch.no_grad(), exported.open() as program:
        before = program(*arguments)
        for parameter in model.parameters():
            parameter.mul_(0.5)
        program.load(model.state_dict())
        torch.testing.assert_close(program(*arguments), model(*arguments), rtol=1e-5, atol=1e-5)
        assert not torch.allclose(before, program(*arguments))
