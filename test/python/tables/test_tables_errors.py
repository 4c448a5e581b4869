"""EmbeddingTables refuses what it cannot run, each time by one clear error that leaves the tables as they
were, and works afterwards."""

import contextlib
import os
import shutil
import subprocess
import sys

import numpy
import pytest
import torch

import neuroshard as ns
from neuroshard.distributed import Jagged
from neuroshard.errors import Error, TensorError
from support import sealing
from support import table_models as models
from support.threads import in_threads

pytestmark = models.usable()

BATCH = 4
IDS, OFFSETS = torch.arange(2 * BATCH), torch.arange(2 * BATCH + 1)
X = IDS, OFFSETS
W = torch.arange(BATCH), torch.arange(BATCH + 1), torch.ones(BATCH)
CLEAR = (Error, TypeError, ValueError)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    return models.compiled(models.bags_model("sgd"), tmp_path_factory.mktemp("tables_errors") / "bags")


@pytest.fixture(params=models.DEVICES)
def tables(artifact, request):
    with contextlib.closing(ns.EmbeddingTables(artifact, device=request.param,
                                               check_every=1)) as opened:
        yield opened


# What it is made with


@pytest.mark.parametrize("arguments, message", [
    ({"artifact": None}, "artifact: expected a path, .* got: None"),
    ({"artifact": "a\0b"}, "artifact: expected a path without NUL"),
    ({"device": "gpu"}, "device: expected \"cpu\", \"cuda\", .* found 'gpu'"),
    ({"device": 1.5}, "device: expected .* found 1.5"),
    ({"device": "cpu:3"}, "device: expected .* found 'cpu:3'"),
    ({"device": "meta"}, "device: expected .* found 'meta'"),
    ({"device": "cuda:99"}, r"there is no cuda:99: this PyTorch sees \d+ GPUs"),
    ({"learning_rate": "fast"}, "learning_rate: expected a number, got: 'fast'"),
    ({"learning_rate": -0.1}, "learning_rate: expected a number from 0"),
    ({"learning_rate": float("inf")}, "learning_rate: expected a finite number"),
    ({"seed": None}, "seed: expected a number of 64 bits with sign, found None"),
    ({"seed": 2**64}, "seed: expected a number of 64 bits"),
    ({"name": 5}, "name: expected printable text, or None, found 5"),
    ({"name": ""}, "name: expected printable text"),
    ({"check_every": -1}, "check_every: expected a number from 0"),
    ({"check_every": True}, "check_every: expected a whole number"),
    ({"threads": 5000}, "threads: expected a number from 1 to 1024"),
])
def test_constructor(arguments, message, artifact):
    with pytest.raises(CLEAR, match=message):
        ns.EmbeddingTables(**{"artifact": artifact, **arguments})


def test_a_name_that_is_taken(artifact):
    with contextlib.closing(ns.EmbeddingTables(artifact, name="twice")):
        with pytest.raises(TensorError, match="a model named \"twice\" is open already"):
            ns.EmbeddingTables(artifact, name="twice")
    ns.EmbeddingTables(artifact, name="twice").close()


def test_no_artifact(tmp_path):
    with pytest.raises(TensorError, match="none/manifest.json"):
        ns.EmbeddingTables(tmp_path / "none")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(TensorError, match="manifest.json|manifest"):
        ns.EmbeddingTables(tmp_path)


def test_an_artifact_for_more_devices(tmp_path):
    model = models.bags_model("sgd")
    artifact = models.compiled(model, tmp_path / "model", models.whole(model, 2))
    with pytest.raises(TensorError, match="is for 2 devices; expected a process group of as many ranks"):
        ns.EmbeddingTables(artifact)


def test_an_artifact_without_kernels_for_gpus(tmp_path):
    artifact = models.artifact.compile_text(
        models.bags_model("sgd").text(models.whole(models.bags_model("sgd"))), tmp_path / "model")
    with pytest.raises(TensorError, match="neuroshard-compile|--gpu|compile"):
        ns.EmbeddingTables(artifact, device="emulator")


def test_an_artifact_for_another_cpu(artifact, tmp_path):
    other = shutil.copytree(artifact, tmp_path / "other")
    manifest = sealing.read_manifest(other)
    sealing.write_manifest(other, {**manifest, "target_cpu": "toaster", "target_features": ["toast"]})
    with pytest.raises(TensorError, match="compiled for the CPU toaster and uses toast, which the CPU "
                       "of this machine lacks; compile it on this machine, or elsewhere with "
                       "--target-cpu "):
        ns.EmbeddingTables(other)


def test_torch_is_imported_when_it_is_needed():
    environment = {**os.environ, "PYTHONPATH": str(models.BUILD / "python")}
    done = subprocess.run(
        [sys.executable, "-c", "import sys, neuroshard, neuroshard.cuda; print('torch' in sys.modules)"],
        env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert (done.stdout.strip(), done.stderr) == ("False", "")


# Inputs


def x_with(**parts):
    return Jagged(**{"ids": IDS, "offsets": OFFSETS, **parts}), W


def w_with(**parts):
    return X, Jagged(**{"ids": W[0], "offsets": W[1], "weights": W[2], **parts})


def by_feature(a, b=(IDS[:4], OFFSETS[:5])):
    return {"a": a, "b": b}, W


NESTED = torch.nested.nested_tensor([IDS, IDS], layout=torch.jagged)
INPUTS = {
    "ids of a wrong type": (x_with(ids=torch.zeros(8)), "input \"a, b\": expected ids as torch.int64 or torch.int32, found torch.float32"),
    "ids by two dimensions": (x_with(ids=IDS.view(2, 4)), r"ids: expected 1 dim.*shape \[2, 4\]"),
    "a scalar of ids": (w_with(ids=torch.tensor(3), offsets=None, pooling=1),
                        r"\"c\": ids: expected 1 dimensions, found shape \[\]"),
    "offsets of a wrong type": (x_with(offsets=torch.zeros(9)), "expected offsets as torch.int64 or torch.int32, found torch.float32"),
    "a missing offset": (x_with(offsets=torch.arange(8)),
                         r"offsets: expected features \* batch \+ 1 = 2 \* batch \+ 1 values, found 8"),
    "no offsets": (x_with(offsets=OFFSETS[:0]), "offsets: expected at least one value"),
    "offsets from 1": (x_with(offsets=OFFSETS + 1), "offsets must start at 0, found 1"),
    "offsets too far": (x_with(offsets=2 * OFFSETS), "last offset must be the number of ids 8"),
    "offsets that fall": (x_with(offsets=torch.tensor([0, 1, 5, 3, 4, 5, 6, 7, 8])),
                          "offsets must not decrease .* offset 2 is 5, the next 3"),
    "too few weights": (w_with(weights=torch.ones(3)), "one for each of the 4 ids, found 3"),
    "weights of a wrong type": (w_with(weights=W[2].long()),
                                "input \"c\": expected weights of a floating-point type, found torch.int64"),
    "no weights": (w_with(weights=None), "expected weights, as the model was written, found none"),
    "weights that nobody reads": (x_with(weights=torch.ones(8)), "expected no weights"),
    "an id out of range": (x_with(ids=IDS + 60), r"\"a\", bag 0, position 0 .* id 60 is out of range"),
    "one input": ((X,), "expected 2 inputs, .*found 1"),
    "a tensor": ((IDS, W), "expected a Jagged.*found Tensor"),
    "a feature too few": (({"a": X}, W), r"features \['a', 'b'\], found \['a'\]"),
    "features that are numbers": (({0: X, 1: X}, W), r"expected the features \['a', 'b'\]"),
    "offsets and pooling": (x_with(pooling=2), "either offsets or pooling"),
    "neither": (x_with(offsets=None), "found neither"),
    "pooling that does not fit": (x_with(offsets=None, pooling=3), "2 features x batch x 3 ids.*8"),
    "pooling as a text": (x_with(offsets=None, pooling="2"), "pooling as a whole number .* '2'"),
    "huge pooling": (x_with(offsets=None, pooling=2**70), "pooling as a whole number from 0 to 21474"),
    "negative pooling": (w_with(offsets=None, pooling=-1), "\"c\": expected pooling as a whole .* -1"),
    "nothing": ((None, None), "\"a, b\": expected a Jagged.*found NoneType"),
    "numpy": (((numpy.arange(8), numpy.arange(9)), W), "expected ids as a dense .* found ndarray"),
    "a nested tensor": ((NESTED, W), "\"a, b\": expected a Jagged, .* found NestedTensor"),
    "a nested feature": (by_feature(NESTED), r"\"a\": expected ids \[batch, pooling\]"),
    "a sparse feature": (by_feature((IDS[:4].to_sparse(), OFFSETS[:5])), "\"a\": expected ids as a de"),
    "features in two places": (by_feature((IDS[:4], OFFSETS[:5]), (IDS[:4].to("meta"), OFFSETS[:5])),
                               "\"b\": expected tensors with values, found one on the meta"),
    "a first feature elsewhere": (by_feature((IDS[:4].to("meta"), OFFSETS[:5])),
                                  "\"a\": expected tensors with values, found one on the meta"),
}


@pytest.mark.parametrize("training", [False, True])
def test_inputs(training, tables):
    before = models.all_arrays(tables)
    tables.train(training)
    for what, (inputs, message) in INPUTS.items():
        with pytest.raises(ValueError, match=message) as error:
            tables(*inputs)
        assert "exchange" not in str(error.value), what
        models.assert_same(models.all_arrays(tables), before)
        assert tables(X, W)["a"].shape == (BATCH, 8)


def test_inputs_of_two_batches_and_without_ids(tables):
    assert tables(X, (W[0], torch.tensor([0, 4]), W[2]))["c"].shape == (1, 20)
    assert tables((IDS.int(), OFFSETS.int()), W)["a"].shape == (BATCH, 8)
    empty = IDS[:0]
    for x, w, batch in (((empty, OFFSETS[:1]), (empty, OFFSETS[:1], torch.ones(0)), 0),
                        ((empty, torch.zeros(9).long()),
                         (empty, torch.zeros(5).long(), torch.ones(0)), 4),
                        (Jagged(empty, pooling=3), Jagged(empty, None, torch.ones(0), 3), 0)):
        results = tables(x, w)
        assert {len(result) for result in results.values()} == {batch}
        sum(result.sum() for result in results.values()).backward()


# Settings and states


@pytest.mark.parametrize("rate", ["fast", None, float("nan"), -1.0, 1e40])
def test_learning_rates_that_are_none(rate, tables):
    with pytest.raises(CLEAR, match="learning_rate: expected"):
        tables.set_learning_rate(rate)
    assert tables.learning_rate == 0.01
    tables.set_learning_rate(torch.tensor(0.5))
    assert tables.learning_rate == 0.5


@pytest.mark.parametrize("changes, message", [
    ({"_extra_state": None}, "_extra_state: expected .* found None"),
    ({"_extra_state": {}}, "_extra_state: expected .*'step'"),
    ({"_extra_state": {"step": "x", "learning_rate": 0.1}}, "step: expected a whole number"),
    ({"_extra_state": {"step": -5, "learning_rate": 0.1}}, "step: expected a whole number from 0"),
    ({"_extra_state": {"step": 1, "learning_rate": float("nan")}}, "learning_rate: expected a"),
    ({"first.weight": numpy.zeros((60, 8))}, "first.weight: expected a tensor with values"),
    ({"first.weight": torch.zeros((60, 8), device="meta")}, "first.weight: expected a tensor with"),
    ({"first.weight": torch.zeros((60, 7))}, r"first.weight: expected \(60, 8\) torch.float32"),
])
def test_states_that_do_not_fit(changes, message, tables):
    with pytest.raises((TensorError, RuntimeError), match=message):
        tables.load_state_dict({**tables.state_dict(), **changes})
    assert (tables.step, tables.learning_rate) == (0, 0.01)


# Order of calls


def test_closed_tables(artifact):
    tables = ns.EmbeddingTables(artifact, name="closed")
    state, results = dict(tables.state_dict()), tables(X, W)
    tables.close()
    tables.close()
    for use in (tables.check, tables.before_replay, tables.state_dict, lambda: tables.weights,
                lambda: tables.states, lambda: tables.set_learning_rate(0.5), lambda: tables(X, W),
                lambda: tables.load_state_dict(state)):
        with pytest.raises(TensorError, match="\"closed\" are closed"):
            use()
    with pytest.raises(ValueError, match="no open model named \"closed\""):
        results["a"].sum().backward()
    assert "closed" in repr(tables)


def test_closing_leaves_others_of_the_name_open(artifact):
    first = ns.EmbeddingTables(artifact, name="again")
    first.close()
    with contextlib.closing(ns.EmbeddingTables(artifact, name="again")) as second:
        first.close()
        second(X, W)


def test_a_graph_of_closed_tables_does_not_update_their_successor(artifact):
    first = ns.EmbeddingTables(artifact, name="again")
    loss = sum(result.sum() for result in first(X, W).values())
    first.close()
    with contextlib.closing(ns.EmbeddingTables(artifact, name="again")) as second:
        results = second(X, W)
        with pytest.raises(ValueError, match="is over"):
            loss.backward()
        assert second.step == 0
        sum(result.sum() for result in results.values()).backward()
        assert second.step == 1


def test_a_forked_child_is_refused(tables):
    # The child has none of the threads that would look up. It writes what it found to a pipe.
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            tables(X, W)
            found = "no error"
        except ValueError as error:
            found = str(error)
        os.write(send, found.encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        found = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert "opened by another process" in found
    tables(X, W)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_weights_of_other_types_are_converted(tables, dtype):
    """As in serving."""
    given = torch.tensor([0.5, -2, 1, 3], dtype=dtype)
    same = given.float()
    with torch.no_grad():
        assert all(torch.equal(one, other) for one, other in zip(
            tables(X, (*W[:2], given)).values(), tables(X, (*W[:2], same)).values()))


def test_a_second_backward_and_a_gradient_for_ids(tables):
    loss = sum(result.sum() for result in tables(X, W).values())
    loss.backward(retain_graph=True)
    with pytest.raises(ValueError, match="a backward runs once for each forward"):
        loss.backward()
    assert tables.step == 1
    with pytest.raises(ValueError, match="expected ids as torch.int64 or torch.int32, found torch.float32"):
        tables((torch.ones(8, requires_grad=True), OFFSETS), W)


def test_threads_train_one_after_the_other(tables, artifact):
    def work():
        for _ in range(10):
            sum(result.sum() for result in tables(X, W).values()).backward()

    assert in_threads(work, [()] * 4) == [None] * 4 and tables.step == 40
    # Each update takes the same from the rows of "a", as every gradient is 1.
    with contextlib.closing(ns.EmbeddingTables(artifact)) as fresh:
        for _ in range(40):
            sum(result.sum() for result in fresh(X, W).values()).backward()
        for name, array in models.all_arrays(fresh).items():
            torch.testing.assert_close(models.all_arrays(tables)[name], array)
