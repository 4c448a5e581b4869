"""EmbeddingTables under torch.compile and torch.export."""

import contextlib

import pytest
import torch

import neuroshard as ns
from support import table_models as models
from neuroshard._jagged import Jagged

pytestmark = models.usable()

BATCH = 8


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch_cuda_tracing")
    return {kind: models.compiled(models.bags_model(kind), folder / kind)
            for kind in ("sgd", "adam")} | {
                "types": models.compiled(models.types_model(), folder / "types")}


class Model(torch.nn.Module):
    """A dense layer behind the tables, as a user writes it."""

    def __init__(self, tables):
        super().__init__()
        self.tables = tables
        self.top = torch.nn.Linear(sum(models.DIMS.values()) + 8, 1)
        with torch.no_grad():
            self.top.weight.fill_(0.1)
            self.top.bias.fill_(0.01)

    def forward(self, ids, offsets, other_ids, other_offsets, weights):
        pooled = self.tables((ids, offsets), (other_ids, other_offsets, weights))
        return self.top(torch.cat(list(pooled.values()), 1)).sigmoid()


def flat(batch):
    """With weights that want a gradient."""
    (ids, offsets), (other_ids, other_offsets, weights) = batch
    return ids, offsets, other_ids, other_offsets, weights.clone().requires_grad_()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("device", models.DEVICES)
def test_compiled_steps_have_the_same_bits(backend, device, artifacts, generator):
    torch._dynamo.reset()
    arrays, gradients = [], []
    batches = [models.random_batch(BATCH + number, generator) for number in (0, 0, 3, 5)]
    for compiled in (False, True):
        tables = ns.EmbeddingTables(artifacts["adam"], device=device, learning_rate=0.05)
        step = Model(tables)
        if compiled:
            step = torch.compile(step, backend=backend, fullgraph=True, dynamic=True)
        for batch in batches:
            inputs = flat(batch)
            step(*inputs).square().sum().backward()
            gradients.append(inputs[-1].grad)
        assert tables.step == len(batches)
        arrays.append(models.all_arrays(tables))
        tables.close()
    models.assert_same(arrays[1], arrays[0])
    assert all(map(torch.equal, gradients[:len(batches)], gradients[len(batches):]))


def test_exported_for_any_batch(artifacts, generator, tmp_path):
    """The program finds the tables by their name, also those of a later opening."""
    batch = torch.export.Dim("batch", min=2, max=4096)
    ids, others = torch.export.Dim("ids", min=2), torch.export.Dim("others", min=2)
    shapes = {"ids": {0: ids}, "offsets": {0: 2 * batch + 1}, "other_ids": {0: others},
              "other_offsets": {0: batch + 1}, "weights": {0: others}}
    with contextlib.closing(ns.EmbeddingTables(artifacts["sgd"], name="exported")) as tables:
        model = Model(tables).eval()
        program = torch.export.export(model, flat(models.random_batch(BATCH, generator)),
                                      dynamic_shapes=shapes)
        assert "neuroshard.embeddings_wait" in str(program.graph)
        torch.export.save(program, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    inputs = flat(models.random_batch(BATCH + 5, generator))
    with pytest.raises(ValueError, match='no open model named "exported"'):
        loaded(*inputs)
    with contextlib.closing(ns.EmbeddingTables(artifacts["sgd"], name="exported", seed=9)) as tables:
        assert torch.equal(loaded(*inputs), Model(tables).eval()(*inputs))


class ByFeature(torch.nn.Module):
    def __init__(self, tables):
        super().__init__()
        self.tables = tables

    def forward(self, a, ids, offsets):
        other = torch.zeros_like(ids), offsets, torch.ones_like(ids).float()
        return self.tables({"a": a, "b": (ids, offsets)}, other)


def test_dicts_are_traced_for_any_batch(artifacts):
    batch = torch.export.Dim("batch", min=3, max=4096)
    shapes = {"a": {0: batch}, "ids": {0: batch}, "offsets": {0: batch + 1}}

    def inputs(size):
        return torch.ones(size, 2).long(), torch.arange(size), torch.arange(size + 1)

    with contextlib.closing(ns.EmbeddingTables(artifacts["sgd"])) as tables:
        model = ByFeature(tables).eval()
        program = torch.export.export(model, inputs(8), dynamic_shapes=shapes)
        checks = [text for node in program.graph.nodes for text in node.args
                  if isinstance(text, str) and "number of its ids" in text]
        assert checks and not any("\"" in text for text in checks)  # Inductor writes them into C++
        found, expected = program.module()(*inputs(20)), model(*inputs(20))
        assert all(torch.equal(found[name], expected[name]) for name in expected)
        a, ids, offsets = inputs(20)
        with pytest.raises(RuntimeError, match="from 0 to the number of its ids"):
            program.module()(a, ids, offsets + 1)


def test_exported_without_pooling(artifacts, generator):
    """Results have as many rows as the caller says the feature has ids."""
    class Unpooled(torch.nn.Module):
        def __init__(self, tables):
            super().__init__()
            self.tables = tables

        def forward(self, ids, offsets):
            return self.tables((ids, offsets))

    with contextlib.closing(ns.EmbeddingTables(artifacts["types"])) as tables:
        batches = []
        for _ in range(2):
            ids, offsets, _ = models.random_jagged([20, 25], BATCH, generator)
            batches.append((ids.int(), offsets))
        program = torch.export.export(
            Unpooled(tables).eval(), batches[0],
            dynamic_shapes=({0: torch.export.Dim.DYNAMIC}, None))
        models.assert_same(program.module()(*batches[1]), tables.eval()(batches[1]))
