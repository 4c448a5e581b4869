"""neuroshard.torch_cuda under torch.compile, torch.export and torch.library.opcheck, on the
emulator."""

import pytest
import torch

import neuroshard.torch_cuda as torch_cuda
import torch_cuda_models as models
from neuroshard._jagged import Jagged
from neuroshard.torch_cuda._step import Step, to_arguments

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
@pytest.mark.parametrize("concatenate", [False, True])
def test_compiled_steps_have_the_same_bits(backend, concatenate, artifacts, generator):
    torch._dynamo.reset()
    arrays, gradients = [], []
    batches = [models.random_batch(BATCH + number, generator) for number in (0, 0, 3, 5)]
    for compiled in (False, True):
        tables = torch_cuda.EmbeddingTables(artifacts["adam"], learning_rate=0.05)
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


def test_an_update_stays_between_lookups(artifacts, generator):
    """Within one graph tracers neither drop the update nor merge the lookups around it."""
    torch._dynamo.reset()
    batch, arrays, values = models.random_batch(BATCH, generator), [], []
    for compiled in (False, True):
        with torch_cuda_tables(artifacts["sgd"]) as tables:
            arguments = operator_arguments(tables, batch)

            def lookup_twice():
                operators = torch.ops.neuroshard
                first = operators.embedding_forward(tables.name, None, tables._token, *arguments,
                                                    False)
                operators.embedding_backward(tables.name, tables._token,
                                             [torch.ones_like(result) for result in first],
                                             *arguments, [])
                return first, operators.embedding_forward(tables.name, None, tables._token,
                                                          *arguments, False)
            function = lookup_twice
            if compiled:
                function = torch.compile(lookup_twice, backend="aot_eager", fullgraph=True)
            values.append([torch.cat(results, 1) for results in function()])
            assert tables.step == 1
            arrays.append(models.all_arrays(tables))
    models.assert_same(arrays[1], arrays[0])
    assert all(map(torch.equal, *values))
    assert not torch.equal(*values[0])


class torch_cuda_tables:
    """Tables for a with block."""

    def __init__(self, artifact, **options):
        self.tables = torch_cuda.EmbeddingTables(artifact, **options)

    def __enter__(self):
        return self.tables

    def __exit__(self, *_):
        self.tables.close()


def test_exported_for_any_batch(artifacts, generator, tmp_path):
    """The program finds the tables by their name, also those of a later opening."""
    batch = torch.export.Dim("batch", min=2, max=4096)
    ids, others = torch.export.Dim("ids", min=2), torch.export.Dim("others", min=2)
    shapes = {"ids": {0: ids}, "offsets": {0: 2 * batch + 1}, "other_ids": {0: others},
              "other_offsets": {0: batch + 1}, "weights": {0: others}}
    with torch_cuda_tables(artifacts["sgd"], name="exported") as tables:
        model = Model(tables).eval()
        program = torch.export.export(model, flat(models.random_batch(BATCH, generator)),
                                      dynamic_shapes=shapes)
        assert "neuroshard.embedding_forward" in str(program.graph)
        torch.export.save(program, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    inputs = flat(models.random_batch(BATCH + 5, generator))
    with pytest.raises(torch_cuda.TensorError, match='no embedding tables named "exported"'):
        loaded(*inputs)
    with torch_cuda_tables(artifacts["sgd"], name="exported", seed=9) as tables:
        assert torch.equal(loaded(*inputs), Model(tables).eval()(*inputs))


def test_exported_without_pooling(artifacts, generator):
    """Results have as many rows as the caller says the feature has ids."""
    class Unpooled(torch.nn.Module):
        def __init__(self, tables):
            super().__init__()
            self.tables = tables

        def forward(self, ids, offsets, begin):
            return self.tables(torch_cuda.Jagged(ids, offsets, feature_begin=begin))

    with torch_cuda_tables(artifacts["types"]) as tables:
        batches = []
        for _ in range(2):
            ids, offsets, _ = models.random_jagged([20, 25], BATCH, generator)
            batches.append((ids.int(), offsets, offsets[::BATCH].tolist()))
        program = torch.export.export(
            Unpooled(tables).eval(), batches[0],
            dynamic_shapes=({0: torch.export.Dim.DYNAMIC}, None,
                            [torch.export.Dim.DYNAMIC] * 3))
        models.assert_same(program.module()(*batches[1]), tables.eval()((*batches[1][:2],)))


def operator_arguments(tables, batch):
    inputs = [Jagged(*given) for given in batch]
    return to_arguments(Step(tables._layout, tuple(inputs)))


@pytest.mark.parametrize("training", [False, True])
def test_opcheck_of_forward(training, artifacts, generator):
    # Checks compare several runs, which no update may tell apart.
    with torch_cuda_tables(artifacts["sgd"], learning_rate=0.0) as tables:
        batch = models.random_batch(BATCH, generator)
        ids, offsets, weights, *rest = operator_arguments(tables, batch)
        if training:
            weights = [weights[0].requires_grad_()]
        torch.library.opcheck(torch.ops.neuroshard.embedding_forward, (
            tables.name, tables._anchor if training else None, tables._token, ids, offsets,
            weights, *rest, training))


@pytest.mark.parametrize("weighted", [False, True])
def test_opcheck_of_backward(weighted, artifacts, generator):
    with torch_cuda_tables(artifacts["sgd"], learning_rate=0.0) as tables:
        batch = models.random_batch(BATCH, generator)
        with torch.no_grad():
            gradients = [torch.ones_like(result) for result in tables(*batch).values()]
        arguments = operator_arguments(tables, batch)
        wanted = [torch.zeros_like(arguments[2][0])] if weighted else []
        torch.library.opcheck(torch.ops.neuroshard.embedding_backward, (
            tables.name, tables._token, gradients, *arguments, wanted))
