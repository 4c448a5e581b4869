"""neuroshard.torch_cuda refuses what it cannot run, each time by one clear error."""

import os
import re
import subprocess
import sys

import pytest
import torch

import neuroshard.torch_cuda as torch_cuda
import torch_cuda_models as models
from neuroshard import cuda
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table

pytestmark = models.usable()

BATCH = 4


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch_cuda_errors")
    return {"bags": models.compiled(models.bags_model("sgd"), folder / "bags"),
            "types": models.compiled(models.types_model(), folder / "types")}


@pytest.fixture
def tables(artifacts):
    opened = torch_cuda.EmbeddingTables(artifacts["bags"])
    yield opened
    opened.close()


def good():
    """Bags of one id: x, w as lists that tests spoil."""
    return ([torch.arange(2 * BATCH), torch.arange(2 * BATCH + 1)],
            [torch.arange(BATCH), torch.arange(BATCH + 1), torch.ones(BATCH)])


def spoil_x(number, value):
    def spoil(x, _):
        x[number] = value
    return spoil


def spoil_w(number, value):
    def spoil(_, w):
        w[number] = value
    return spoil


SPOILT = {
    "ids of a wrong type": (spoil_x(0, torch.zeros(8)), "ids: expected torch.int64, found "
                                                        "torch.float32"),
    "narrow ids": (spoil_x(0, torch.zeros(8).int()), "expected torch.int64, found torch.int32"),
    "ids elsewhere": (spoil_x(0, torch.zeros(8, dtype=torch.int64, device="meta")),
                      "expected a tensor on cpu, where the tables are, found meta"),
    "ids by two dimensions": (spoil_x(0, torch.zeros((2, 4), dtype=torch.int64)),
                              r"ids: expected one dimension, found shape \(2, 4\)"),
    "offsets of a wrong type": (spoil_x(1, torch.zeros(9)), "offsets: expected torch.int64"),
    "a missing offset": (spoil_x(1, torch.arange(8)),
                         r"expected 2 features x batch \+ 1 offsets, found 8"),
    "no offsets": (spoil_x(1, torch.zeros(0, dtype=torch.int64)), "offsets, found 0"),
    "offsets from 1": (spoil_x(1, torch.arange(1, 10)), "expected offsets from 0 to 8, the number "
                                                         "of ids, found 1 to 9"),
    "offsets too far": (spoil_x(1, 2 * torch.arange(9)), "found 0 to 16"),
    "offsets that fall": (spoil_x(1, torch.tensor([0, 1, 5, 3, 4, 5, 6, 7, 8])),
                          "expected ascending offsets, found 5 at 2 before 3"),
    "another batch": (spoil_w(1, torch.tensor([0, 4])), None),
    "too few weights": (spoil_w(2, torch.ones(3)), "expected a weight for each of 4 ids, found 3"),
    "weights of a wrong type": (spoil_w(2, torch.ones(4).double()),
                                "weights: expected torch.float32, found torch.float64"),
    "no weights": (lambda _, w: w.pop(), "expected weights, as the model was written, found none"),
    "weights that nobody reads": (lambda x, w: x.append(torch.ones(8)), "expected no weights"),
}


@pytest.mark.parametrize("case", SPOILT)
@pytest.mark.parametrize("training", [False, True])
def test_tensors_that_do_not_fit(case, training, tables):
    spoil, message = SPOILT[case]
    x, w = good()
    spoil(x, w)
    before = models.all_arrays(tables)
    with torch.set_grad_enabled(training):
        if message is None:  # results have tensors of their own
            assert tables(x, w)["c"].shape == (1, 20)
            return
        with pytest.raises(torch_cuda.TensorError, match=message) as error:
            tables(x, w)
    assert re.match('input "(a, b|c)": ', str(error.value))
    models.assert_same(models.all_arrays(tables), before)
    tables(*good())


def test_inputs_of_other_kinds(tables):
    x, w = good()
    with pytest.raises(torch_cuda.TensorError, match="expected 2 inputs, .*found 1"):
        tables(x)
    with pytest.raises(torch_cuda.TensorError, match="expected a Jagged.*found Tensor"):
        tables(x[0], w)
    with pytest.raises(torch_cuda.TensorError, match=r"features \['a', 'b'\], found \['a'\]"):
        tables({"a": tuple(x)}, w)
    with pytest.raises(torch_cuda.TensorError, match=r"one batch, found batches of \[2, 3\]"):
        tables({"a": torch.zeros((2, 2)).long(), "b": torch.zeros((3, 2)).long()}, w)
    with pytest.raises(torch_cuda.TensorError, match=r"\"a\": expected ids \[batch, pooling\]"):
        tables({"a": torch.zeros(2).long(), "b": torch.zeros((3, 2)).long()}, w)
    with pytest.raises(torch_cuda.TensorError, match="either offsets or pooling"):
        tables(torch_cuda.Jagged(*x, pooling=2), w)
    with pytest.raises(torch_cuda.TensorError, match="found neither"):
        tables(torch_cuda.Jagged(x[0]), w)
    with pytest.raises(torch_cuda.TensorError, match="2 features x batch x 3 ids.*found 8"):
        tables(torch_cuda.Jagged(x[0], pooling=3), w)


def test_one_batch_where_results_share_a_tensor(artifacts):
    together = torch_cuda.EmbeddingTables(artifacts["bags"], concatenate=True)
    x, w = good()
    w[1] = torch.tensor([0, 4])
    with pytest.raises(torch_cuda.TensorError, match=r"one batch for all inputs.*\[4, 1\]"):
        together(x, w)
    together.close()


def test_operators_check_what_they_get(tables):
    def call(name=tables.name, ids=None, offsets=None, weights=None, poolings=(0, 0), begin=()):
        x, w = good()
        return torch.ops.neuroshard.embedding_forward(
            name, None, tables._token, ids or [x[0], w[0]], offsets or [x[1], w[1]],
            weights if weights is not None else [w[2]], list(poolings), list(begin), False)

    assert len(call()) == 4
    x, w = good()
    spread = torch.stack([x[0], x[0]], 1)[:, 0]
    for message, options in {
            "no embedding tables named \"other\"": {"name": "other"},
            "expected 2 ids, found 1": {"ids": [x[0]]},
            "expected 2 offsets, found 1": {"offsets": [x[1]]},
            "expected 1 sample_weights, found 0": {"weights": []},
            "expected 2 poolings, found 1": {"poolings": [0]},
            "expected 0 feature_begin, found 2": {"begin": [0, 1]},
            "found pooling -3": {"poolings": [0, -3], "offsets": [x[1]]},
            "expected a contiguous tensor": {"ids": [spread, w[0]]}}.items():
        with pytest.raises(torch_cuda.TensorError, match=message):
            call(**options)


def test_gradients_that_do_not_fit(tables):
    x, w = good()
    results = [result.detach() for result in tables(x, w).values()]
    before = models.all_arrays(tables)

    def backward(gradients, weight_gradients=()):
        torch.ops.neuroshard.embedding_backward(
            tables.name, tables._token, gradients, [x[0], w[0]], [x[1], w[1]], [w[2]], [0, 0], [],
            list(weight_gradients))

    with pytest.raises(torch_cuda.TensorError, match="expected 4 gradients, found 3"):
        backward(results[:3])
    with pytest.raises(torch_cuda.TensorError, match='gradient of "a": expected 4 x 8.*4 x 7'):
        backward([results[0][:, :7], *results[1:]])
    with pytest.raises(torch_cuda.TensorError, match=r"of the weights: expected \(4,\).*\(5,\)"):
        backward(results, [torch.zeros(5)])
    with pytest.raises(torch_cuda.TensorError, match="expected 1 weight_gradients, found 2"):
        backward(results, [torch.zeros(4), torch.zeros(4)])
    models.assert_same(models.all_arrays(tables), before)


def test_feature_begin_that_lies(artifacts):
    tables = torch_cuda.EmbeddingTables(artifacts["types"])
    ids, offsets = torch.zeros(6, dtype=torch.int32), torch.tensor([0, 1, 2, 4, 6])
    with pytest.raises(torch_cuda.TensorError, match=r"feature_begin \[0, 2, 6\].*\[0, 3, 6\]"):
        tables(torch_cuda.Jagged(ids, offsets, feature_begin=[0, 3, 6]))
    assert tables((ids, offsets))["q"].shape == (4, 8)
    tables.close()


# Artifacts and devices


def one_table(dim=8, padding_idx=None, dtype="f32"):
    return Model([Table("t", 10, dim, dtype, Optimizer("sgd"))],
                 [Input("x", ("a",), (Lookup("a", "t", padding_idx=padding_idx),))])


@pytest.mark.parametrize("message, model, plan", [
    ("expected an artifact for 1 device, found 2", one_table(), models.whole(one_table(), 2)),
    ("\"t\" is split by rows", one_table(), Plan(1, [Shard("t", (0, 4), (0, 8), (0,)),
                                                     Shard("t", (4, 10), (0, 8), (0,))])),
    ("padding_idx; leave such ids out", one_table(padding_idx=3), None)])
def test_artifacts_that_need_an_exchange(message, model, plan, tmp_path):
    artifact = models.compiled(model, tmp_path / "model", plan)
    with pytest.raises(torch_cuda.TensorError, match=message):
        torch_cuda.EmbeddingTables(artifact)


def test_results_that_do_not_fit_into_one_tensor(artifacts, tmp_path):
    with pytest.raises(torch_cuda.TensorError, match="concatenate: \"q\" is not pooled"):
        torch_cuda.EmbeddingTables(artifacts["types"], concatenate=True)
    model = Model([Table("odd", 10, 6), Table("even", 10, 8)],
                  [Input("x", ("a", "b"), (Lookup("a", "odd"), Lookup("b", "even")))])
    artifact = models.compiled(model, tmp_path / "odd", training=False)
    with pytest.raises(torch_cuda.TensorError, match="\"b\" with 8 columns would begin at col"):
        torch_cuda.EmbeddingTables(artifact, concatenate=True)


def test_no_artifact(tmp_path):
    with pytest.raises(torch_cuda.TensorError, match="manifest.json cannot be read"):
        torch_cuda.EmbeddingTables(tmp_path / "none")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(torch_cuda.TensorError, match="manifest.json cannot be read"):
        torch_cuda.EmbeddingTables(tmp_path)


def test_devices_that_are_none(artifacts):
    with pytest.raises(torch_cuda.TensorError, match="expected a CUDA device, found meta"):
        torch_cuda.EmbeddingTables(artifacts["bags"], device="meta")


def test_closed_tables(artifacts):
    tables = torch_cuda.EmbeddingTables(artifacts["bags"])
    results = tables(*good())
    tables.close()
    tables.close()
    for use in (lambda: tables(*good()), lambda: results["a"].sum().backward()):
        with pytest.raises(torch_cuda.TensorError, match="no embedding tables named"):
            use()


def python(code, **changes):
    """(output, errors) of a fresh interpreter."""
    environment = {**os.environ, "PYTHONPATH": str(models.BUILD / "python")}
    for name, value in changes.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True,
                          text=True, check=False, timeout=600)
    return done.stdout.strip(), done.stderr


def test_without_a_driver(artifacts):
    code = (f"import neuroshard.torch_cuda as t\nt.EmbeddingTables({str(artifacts['bags'])!r}, "
            "device='cpu')")
    out, errors = python(code, NEUROSHARD_CUDA_DRIVER="libno-such-driver.so")
    assert not out and "neuroshard.cuda.NoDriver: " in errors


def test_torch_is_imported_by_name_only():
    assert python("import sys, neuroshard, neuroshard.cuda; print('torch' in sys.modules)") == (
        "False", "")


class NoMemory:
    """A device whose first forwards find no memory."""

    def __init__(self, forward, times):
        self.forward, self.times, self.calls = forward, times, 0

    def __call__(self, *args):
        self.calls += 1
        if self.calls <= self.times:
            raise cuda.OutOfMemory("no GPU memory for keys")
        return self.forward(*args)


def test_memory_that_torch_keeps_is_given_back(tables, monkeypatch):
    x, w = good()
    expected = tables(x, w)
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    device = tables._program.device
    patched = NoMemory(device.forward, times=1)
    monkeypatch.setattr(device, "forward", patched)
    found = tables(x, w)
    assert emptied == [True] and patched.calls == 2
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_no_memory_at_all(tables, monkeypatch):
    x, w = good()
    monkeypatch.setattr(tables._program.device, "forward", NoMemory(None, times=9))
    with pytest.raises(cuda.OutOfMemory, match="no GPU memory for keys"):
        tables(x, w)
