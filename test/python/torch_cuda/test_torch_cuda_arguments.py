"""neuroshard.torch_cuda: arguments of types and values that cannot be meant, and calls in the
wrong order, from the wrong thread or of closed tables. Each gives one clear error and leaves the
tables as they were."""

import threading

import numpy
import pytest
import torch

import neuroshard.torch_cuda as torch_cuda
import torch_cuda_models as models
from neuroshard.errors import Error

pytestmark = models.usable()

Jagged = torch_cuda.Jagged
IDS, OFFSETS = torch.arange(8), torch.arange(9)
X, W = (IDS, OFFSETS), (torch.arange(4), torch.arange(5), torch.ones(4))
CLEAR = (Error, TypeError, ValueError)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    return models.compiled(models.bags_model("sgd"),
                           tmp_path_factory.mktemp("torch_cuda_arguments") / "bags")


@pytest.fixture
def tables(artifact):
    opened = torch_cuda.EmbeddingTables(artifact)
    yield opened
    opened.close()


@pytest.mark.parametrize("arguments, message", [
    ({"artifact": None}, "artifact: expected a path, .* got: None"),
    ({"artifact": "a\0b"}, "artifact: expected a path without NUL"),
    ({"device": "gpu"}, "expected a CUDA device, such as .* found 'gpu'"),
    ({"device": 1.5}, "expected a CUDA device, such as .* found 1.5"),
    ({"device": -1}, "expected a CUDA device, such as .* found -1"),
    ({"device": "cpu:3"}, "expected a CUDA device, found cpu:3"),
    ({"device": "cuda:99"}, r"there is no cuda:99: this PyTorch sees \d+ GPUs"),
    ({"learning_rate": "fast"}, "learning_rate: expected a number, got: 'fast'"),
    ({"learning_rate": -0.1}, "learning_rate: expected a number from 0"),
    ({"learning_rate": float("inf")}, "learning_rate: expected a finite number"),
    ({"seed": None}, "seed: expected a whole number, got: None"),
    ({"seed": 2**64}, "seed: expected a number from 0 to"),
    ({"name": 5}, "name: expected a text, got: 5"),
    ({"name": ""}, "name: expected a text that is not empty"),
    ({"concatenate": "no"}, "concatenate: expected True or False, got: 'no'"),
    ({"check_every": -1}, "check_every: expected a number from 0"),
    ({"check_offsets": 1}, "check_offsets: expected True or False, got: 1"),
    ({"join_sort": 0}, "join_sort: expected True or False, got: 0"),
])
def test_constructor(arguments, message, artifact):
    with pytest.raises(CLEAR, match=message):
        torch_cuda.EmbeddingTables(**{"artifact": artifact, **arguments})


def test_a_name_that_is_taken(artifact):
    first = torch_cuda.EmbeddingTables(artifact, name="twice")
    with pytest.raises(torch_cuda.TensorError, match="named \"twice\" are open already"):
        torch_cuda.EmbeddingTables(artifact, name="twice")
    first.close()
    torch_cuda.EmbeddingTables(artifact, name="twice").close()


def by_feature(a, b=(IDS[:4], OFFSETS[:5])):
    return {"a": a, "b": b}


INPUTS = {
    "nothing": ((None, None), "\"a, b\": expected a Jagged.*found NoneType"),
    "numpy": (((numpy.arange(8), numpy.arange(9)), W), "\"a, b\": expected ids as a dense tensor, "
                                                       "found ndarray"),
    "a tensor that is nested": (
        (torch.nested.nested_tensor([IDS, IDS], layout=torch.jagged), W),
        "\"a, b\": expected a Jagged, .* found NestedTensor"),
    "pooling as a text": ((Jagged(IDS, pooling="2"), W), "pooling as a whole number .* found '2'"),
    "pooling of a half": ((Jagged(IDS, pooling=2.5), W), "pooling as a whole number .* found 2.5"),
    "no pooling": ((Jagged(IDS, pooling=None), W), "pooling as a whole number .* found None"),
    "a yes for pooling": ((Jagged(IDS, pooling=True), W), "pooling as a whole number .* True"),
    "huge pooling": ((Jagged(IDS, pooling=2**70), W), "pooling as a whole number from 0 to 21474"),
    "negative pooling": ((X, Jagged(W[0], None, W[2].clone().requires_grad_(), -1)),
                         "\"c\": expected pooling as a whole number .* found -1"),
    "a scalar of ids": ((X, Jagged(torch.tensor(3), None, W[2].clone().requires_grad_(), 1)),
                        r"\"c\": ids: expected one dimension, found shape \(\)"),
    "feature_begin as a text": ((Jagged(*X, feature_begin="048"), W),
                                "feature_begin as a list of whole numbers, found str"),
    "feature_begin of halves": ((Jagged(*X, feature_begin=[0, 1.5, 8]), W),
                                "feature_begin as a list of whole numbers"),
    "a feature of two dimensions": ((by_feature((IDS[:4].view(2, 2), OFFSETS[:5])), W),
                                    r"\"a\": expected ids as .* one dimension, found shape \(2, 2"),
    "a feature of none": ((by_feature((torch.tensor(1), OFFSETS[:5])), W),
                          r"\"a\": expected ids as .* one dimension, found shape \(\)"),
    "a feature of floats as offsets": ((by_feature((IDS[:4], OFFSETS[:5].float())), W),
                                       r"\"a\": expected offsets .* torch.int64, found .*float32"),
    "features in two places": ((by_feature((IDS[:4], OFFSETS[:5]),
                                           (IDS[:4].to("meta"), OFFSETS[:5])), W),
                               "\"b\": expected ids on cpu, .* found meta"),
    "a sparse feature": ((by_feature((IDS[:4].to_sparse(), OFFSETS[:5])), W),
                         "\"a\": expected ids as a dense tensor .* torch.sparse_coo"),
    "a nested feature": (
        (by_feature(torch.nested.nested_tensor([IDS, IDS], layout=torch.jagged)), W),
        r"\"a\": expected ids \[batch, pooling\]"),
    "features that are numbers": (({0: X, 1: X}, W), r"expected the features \['a', 'b'\]"),
}


@pytest.mark.parametrize("case", INPUTS)
@pytest.mark.parametrize("training", [False, True])
def test_inputs(case, training, tables):
    inputs, message = INPUTS[case]
    before = models.all_arrays(tables)
    tables.train(training)
    with pytest.raises(torch_cuda.TensorError, match=message) as error:
        tables(*inputs)
    assert "exchange" not in str(error.value)
    models.assert_same(models.all_arrays(tables), before)
    tables(X, W)


def test_inputs_without_samples_or_ids(tables):
    empty = IDS[:0]
    for x, w, batch in (((empty, OFFSETS[:1]), (empty, OFFSETS[:1], torch.ones(0)), 0),
                        ((empty, torch.zeros(9).long()),
                         (empty, torch.zeros(5).long(), torch.ones(0)), 4),
                        (Jagged(empty, pooling=3), Jagged(empty, None, torch.ones(0), 3), 0)):
        results = tables(x, w)
        assert {len(result) for result in results.values()} == {batch}
        sum(result.sum() for result in results.values()).backward()


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
    ({"_extra_state": {"step": -5, "learning_rate": 0.1}}, "expected a step from 0, found -5"),
    ({"_extra_state": {"step": 1, "learning_rate": float("nan")}}, "learning_rate: expected a"),
    ({"first.weight": numpy.zeros((60, 8))}, "first.weight: expected a tensor with values"),
    ({"first.weight": torch.zeros((60, 8), device="meta")}, "first.weight: expected a tensor with"),
    ({"first.weight": torch.zeros((60, 7))}, r"first.weight: expected \(60, 8\) torch.float32"),
])
def test_states_that_do_not_fit(changes, message, tables):
    with pytest.raises((torch_cuda.TensorError, RuntimeError), match=message):
        tables.load_state_dict({**tables.state_dict(), **changes})
    assert (tables.step, tables.learning_rate) == (0, 0.01)


def test_closed_tables_do_nothing(artifact):
    tables = torch_cuda.EmbeddingTables(artifact, name="closed")
    state = {key: value for key, value in tables.state_dict().items()}
    tables.close()
    for use in (tables.check, tables.before_replay, tables.state_dict, lambda: tables.weights,
                lambda: tables.states, lambda: tables.set_learning_rate(0.5),
                lambda: tables.load_state_dict(state)):
        with pytest.raises(torch_cuda.TensorError, match="\"closed\" are closed"):
            use()
    assert "closed" in repr(tables)


def test_closing_leaves_others_of_the_name_open(artifact):
    first = torch_cuda.EmbeddingTables(artifact, name="again")
    first.close()
    second = torch_cuda.EmbeddingTables(artifact, name="again")
    first.close()
    second(X, W)
    second.close()


def test_threads_train_one_after_the_other(tables):
    errors = []

    def work():
        try:
            for _ in range(10):
                sum(result.sum() for result in tables(X, W).values()).backward()
        except BaseException as error:  # whatever it is
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and tables.step == 40
    # Each update takes the same from the rows of "a", as every gradient is 1.
    fresh = torch_cuda.EmbeddingTables(tables._program.artifact)
    for _ in range(40):
        sum(result.sum() for result in fresh(X, W).values()).backward()
    models.assert_same(models.all_arrays(tables), models.all_arrays(fresh))
    fresh.close()


def test_a_gradient_for_ids_or_a_second_backward(tables):
    results = tables(X, W)
    loss = sum(result.sum() for result in results.values())
    loss.backward(retain_graph=True)
    loss.backward()  # documented: updates again
    assert tables.step == 2
    with pytest.raises(torch_cuda.TensorError, match="ids: expected torch.int64, found torch.flo"):
        tables((torch.ones(8, requires_grad=True), OFFSETS), W)
