"""neuroshard.torch_cuda on the emulator: results, updates and gradients of compiled tables
against torch.nn.EmbeddingBag and the optimizers of torch."""

import copy
import gc
import pickle

import pytest
import torch

import neuroshard.torch_cuda as torch_cuda
from neuroshard import cuda
import torch_cuda_models as models
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table

pytestmark = models.usable()

BATCH = 16


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """kind of optimizer -> artifact of bags_model, or "types"."""
    folder, made = tmp_path_factory.mktemp("torch_cuda"), {}

    def get(kind):
        if kind not in made:
            model = models.types_model() if kind == "types" else models.bags_model(kind)
            made[kind] = models.compiled(model, folder / str(kind), training=kind is not None)
        return made[kind]
    return get


@pytest.fixture
def open_tables(artifacts):
    opened = []

    def get(kind="sgd", **options):
        opened.append(torch_cuda.EmbeddingTables(artifacts(kind), **options))
        return opened[-1]
    yield get
    for tables in opened:
        tables.close()


def train(tables, batch, factors):
    """One step; gives the results."""
    results = tables(*batch)
    models.loss_of(results, factors).backward()
    return {name: result.detach() for name, result in results.items()}


# Against torch


@pytest.mark.parametrize("kind", models.OPTIMIZERS)
def test_steps_are_those_of_torch(kind, open_tables, generator):
    tables = open_tables(kind, learning_rate=0.05, seed=3)
    theirs = models.TorchTables(tables, kind, 0.05)
    for number in range(4):
        x, w = models.random_batch(BATCH + number, generator)
        ours_w, theirs_w = ((*w[:2], w[2].clone().requires_grad_()) for _ in range(2))
        results, expected = tables(x, ours_w), theirs.forward(x, theirs_w)
        assert list(results) == tables.names == list(expected)
        factors = models.random_factors(expected, generator)
        for name in expected:
            torch.testing.assert_close(results[name], expected[name], rtol=1e-5, atol=1e-6)
        models.loss_of(results, factors).backward()
        models.loss_of(expected, factors).backward()
        theirs.step()
        tables.check()
        torch.testing.assert_close(ours_w[2].grad, theirs_w[2].grad, rtol=1e-4, atol=1e-5)
        for name, weights in theirs.weights.items():
            torch.testing.assert_close(tables.weights[name], weights.detach(), rtol=1e-4,
                                       atol=1e-5)
            assert tables.states[name].keys() == theirs.states(name).keys()
            for key, state in theirs.states(name).items():
                torch.testing.assert_close(tables.states[name][key], state, rtol=1e-4, atol=1e-5)
    assert tables.step == 4


def test_types_and_ids_without_pooling(open_tables, generator):
    tables = open_tables("types", learning_rate=0.5)
    assert tables.inputs == {list(tables.inputs)[0]: ("p", "q")}
    ids, offsets, _ = models.random_jagged([20, 25], BATCH, generator)
    half, brain = (tables.weights[name].clone() for name in ("half", "brain"))
    middle = int(offsets[BATCH])
    results = tables((ids.int(), offsets))
    expected = torch.nn.functional.embedding_bag(
        ids[:middle], half.float(), offsets[:BATCH + 1], mode="sum", include_last_offset=True)
    assert results["p"].dtype == torch.float16
    torch.testing.assert_close(results["p"], expected.half())
    assert torch.equal(results["q"], brain[ids[middle:]].float())
    # Sums of equal small numbers are exact in every type.
    (results["p"].sum() + 2 * results["q"].sum()).backward()
    counts = torch.bincount(ids[:middle], minlength=20).unsqueeze(1)
    assert torch.equal(tables.weights["half"], (half.float() - 0.5 * counts).half())
    counts = torch.bincount(ids[middle:], minlength=25).unsqueeze(1)
    assert torch.equal(tables.weights["brain"], (brain.float() - counts).bfloat16())


def test_rows_split_by_columns_have_one_norm(tmp_path, generator):
    """The exact row-wise optimizer over two shards is that of the whole rows."""
    model = Model([Table("t", 30, 24, "f32", Optimizer("rowwise_adagrad"))],
                  [Input("x", ("a",), (Lookup("a", "t"),))])
    split = Plan(1, [Shard("t", (0, 30), columns, (0,)) for columns in ((0, 8), (8, 24))])
    ours = torch_cuda.EmbeddingTables(models.compiled(model, tmp_path / "split", split))
    whole = torch_cuda.EmbeddingTables(models.compiled(model, tmp_path / "whole"))
    assert list(ours.weights) == ["t.s0", "t.s1"] and list(whole.weights) == ["t"]
    for _ in range(3):
        batch = models.random_jagged([30], BATCH, generator)[:2]
        factors = {"a": torch.randn((BATCH, 24), generator=generator)}
        results = [train(tables, [batch], factors)["a"] for tables in (ours, whole)]
        # The norm is the sum of two sums.
        torch.testing.assert_close(*results, rtol=1e-6, atol=1e-6)
        joined = torch.cat(list(ours.weights.values()), 1)
        torch.testing.assert_close(joined, whole.weights["t"], rtol=1e-6, atol=1e-7)
        assert torch.equal(ours.states["t.s0"]["sum"], ours.states["t.s1"]["sum"])


def test_gradients_of_weights_that_several_lookups_read(tmp_path, generator):
    """Also of shards by columns; ids that only unweighted lookups read have none."""
    adagrad = Optimizer("adagrad")
    model = Model([Table("t", 30, 8, "f32", adagrad), Table("split", 30, 24, "f32", adagrad)],
                  [Input("x", ("c", "d"), (Lookup("c", "t", weighted=True),
                                           Lookup("c", "split", weighted=True),
                                           Lookup("d", "t")), weighted=True)])
    plan = Plan(1, [Shard("t", (0, 30), (0, 8), (0,)), Shard("split", (0, 30), (0, 8), (0,)),
                    Shard("split", (0, 30), (8, 24), (0,))])
    tables = torch_cuda.EmbeddingTables(models.compiled(model, tmp_path / "model", plan))
    for _ in range(2):
        ids, offsets, weights = models.random_jagged([30, 30], BATCH, generator, weighted=True)
        weights.requires_grad_()
        t, split = tables.weights["t"].clone(), torch.cat(list(tables.weights.values())[1:], 1)
        results = tables((ids, offsets, weights))
        factors = models.random_factors(results, generator)
        models.loss_of(results, factors).backward()
        middle = int(offsets[BATCH])
        theirs = weights.detach().clone().requires_grad_()
        expected = {name: torch.nn.functional.embedding_bag(
            ids[:middle], table, offsets[:BATCH + 1], mode="sum", include_last_offset=True,
            per_sample_weights=theirs[:middle]) for name, table in (("c@t", t), ("c@split", split))}
        for name, value in expected.items():
            torch.testing.assert_close(results[name], value, rtol=1e-5, atol=1e-6)
        models.loss_of(expected, factors).backward()
        torch.testing.assert_close(weights.grad, theirs.grad, rtol=1e-4, atol=1e-5)
        assert not weights.grad[middle:].any() and weights.grad[:middle].any()


# Forms of inputs and results


class KeyedJaggedTensor:
    """What of torchrec's class is read."""

    def __init__(self, keys, values, offsets, weights):
        self.parts = keys, values, offsets, weights

    def keys(self):
        return self.parts[0]

    def values(self):
        return self.parts[1]

    def offsets(self):
        return self.parts[2]

    def weights_or_none(self):
        return self.parts[3]


def test_forms_of_inputs(open_tables, generator):
    tables = open_tables()
    (ids, offsets), w = models.random_batch(BATCH, generator)
    expected = tables((ids, offsets), w)
    middle = int(offsets[BATCH])
    by_feature = {"b": (ids[middle:], offsets[BATCH:] - middle),
                  "a": (ids[:middle], offsets[:BATCH + 1])}
    spread = torch.stack([ids, ids], 1)[:, 0]
    assert not spread.is_contiguous()
    for x, given_w in (
            (torch_cuda.Jagged(ids, offsets), torch_cuda.Jagged(*w)),
            (KeyedJaggedTensor(["a", "b"], ids, offsets.int(), None),
             KeyedJaggedTensor(["c"], *w)),
            (by_feature, {"c": w}), ([spread, offsets], list(w))):
        models.assert_same(tables(x, given_w), expected)


def test_bags_of_one_size(open_tables, generator):
    """Without offsets: the same results, updates and gradients of weights."""
    fixed, ragged = open_tables("adagrad"), open_tables("adagrad")
    for pooling in (1, 5):
        x = {name: torch.randint(0, 40, (BATCH, pooling), generator=generator) for name in "ab"}
        ids, weights = torch.randint(0, 30, (BATCH * pooling,), generator=generator), []
        factors = None
        for tables in (fixed, ragged):
            weights.append(torch.linspace(-1, 1, len(ids)).requires_grad_())
            flat = torch.cat([x["a"], x["b"]]).reshape(-1)
            if tables is fixed:
                batch = [torch_cuda.Jagged(flat, pooling=pooling),
                         torch_cuda.Jagged(ids, None, weights[-1], pooling)]
            else:
                batch = [x, (ids, torch.arange(BATCH + 1) * pooling, weights[-1])]
            results = tables(*batch)
            factors = factors or models.random_factors(results, generator)
            models.loss_of(results, factors).backward()
        models.assert_same(models.all_arrays(fixed), models.all_arrays(ragged))
        assert torch.equal(weights[0].grad, weights[1].grad)


def test_results_side_by_side(open_tables, generator):
    """concatenate: the same bits, in one tensor."""
    one, many = open_tables("adam", concatenate=True), open_tables("adam")
    assert one.columns["b@first"] == slice(20, 28)
    for _ in range(3):
        batch = models.random_batch(BATCH, generator)
        results, expected = one(*batch), many(*batch)
        factors = models.random_factors(expected, generator)
        parts = {name: results[:, columns] for name, columns in one.columns.items()}
        models.assert_same(parts, expected)
        models.loss_of(parts, factors).backward()
        models.loss_of(expected, factors).backward()
        models.assert_same(models.all_arrays(one), models.all_arrays(many))


def test_gradients_that_are_views(open_tables, generator):
    """Expanded, strided and misaligned gradients are copied first."""
    ours, theirs = open_tables(), open_tables()
    batch = models.random_batch(BATCH, generator)
    for number in range(3):
        results, others = ours(*batch), theirs(*batch)
        odd = {name: torch.randn(result.numel() + 1, generator=generator)[1:].view(result.shape)
               for name, result in results.items()}
        given = {name: (result.new_ones(()).expand(result.shape), odd[name],
                        torch.stack([odd[name], odd[name] + 1], 2)[..., 0])[number]
                 for name, result in results.items()}
        torch.autograd.backward(list(results.values()), list(given.values()))
        torch.autograd.backward(list(others.values()),
                                [given[name].clone(memory_format=torch.contiguous_format)
                                 for name in others])
        models.assert_same(models.all_arrays(ours), models.all_arrays(theirs))


# Training or not, and in what order


def test_no_update_without_training(open_tables, generator):
    tables = open_tables("adam")
    before = models.all_arrays(tables)
    batch = models.random_batch(BATCH, generator)
    tables.eval()
    assert not any(result.requires_grad for result in tables(*batch).values())
    tables.train()
    with torch.no_grad():
        assert not any(result.requires_grad for result in tables(*batch).values())
    tables(*batch)  # and no backward
    models.assert_same(models.all_arrays(tables), before)
    assert tables.step == 0


def test_compiled_for_inference(open_tables, generator):
    tables = open_tables(None)
    (x, w), like = models.random_batch(BATCH, generator), open_tables()
    models.assert_same(tables(x, w), like(x, w))
    weights = w[2].clone().requires_grad_()
    with pytest.raises(torch_cuda.TensorError, match="without training"):
        sum(r.sum() for r in tables(x, (*w[:2], weights)).values()).backward()


def test_backwards_in_any_order(open_tables, generator):
    """Two forwards, then their backwards: each updates by its own ids."""
    one, other = open_tables(), open_tables()
    batches = [models.random_batch(BATCH, generator) for _ in range(2)]
    factors = None
    for tables in (one, other):
        results = [tables(*batch) for batch in batches]
        factors = factors or [models.random_factors(r, generator) for r in results]
        losses = [sum((r[name] * f[name]).sum() for name in r)
                  for r, f in zip(results, factors)]
        for loss in losses if tables is one else reversed(losses):
            loss.backward()
    third = open_tables()
    for batch, factor in zip(batches, factors):
        results = third(*batch)
        sum((results[name] * factor[name]).sum() for name in results).backward()
    models.assert_same(models.all_arrays(one), models.all_arrays(third))
    for name, weights in third.weights.items():
        torch.testing.assert_close(other.weights[name], weights)
    assert one.step == 2


def test_results_that_nothing_reads(open_tables, generator):
    tables = open_tables()
    before = models.all_arrays(tables)
    tables(*models.random_batch(BATCH, generator))["c"].sum().backward()
    assert not torch.equal(tables.weights["third"], before["third"])
    assert torch.equal(tables.weights["first"], before["first"])


def test_learning_rate(open_tables, generator):
    """Also that of a captured step, which reads it when it is replayed."""
    batch, tables = models.random_batch(BATCH, generator), open_tables(learning_rate=0.0)
    before = models.all_arrays(tables)
    factors = models.random_factors(tables(*batch), generator)
    train(tables, batch, factors)
    models.assert_same(models.all_arrays(tables), before)
    tables.set_learning_rate(0.1)
    train(tables, batch, factors)
    assert not torch.equal(tables.weights["first"], before["first"])


def test_steps_while_a_graph_is_captured(open_tables, generator, monkeypatch):
    """The emulator captures nothing: what Python does in a capture, and before a replay."""
    tables, eager = open_tables("adam", learning_rate=0.1), open_tables("adam")
    batch = models.random_batch(BATCH, generator)
    modes, forward = [], cuda.Device.forward

    def record(self, parts, mode, stream):
        modes.append(mode)
        forward(self, parts, mode, stream)

    monkeypatch.setattr(cuda.Device, "forward", record)
    monkeypatch.setattr(type(tables._program), "is_capturing",
                        lambda program: program is tables._program)
    tables.set_learning_rate(7.0)
    results = tables(*batch)
    factors = models.random_factors(results, generator)
    models.loss_of(results, factors).backward()
    eager.set_learning_rate(0.1)
    train(eager, batch, factors)
    assert modes == [cuda.TRAINING_JOINED, cuda.TRAINING]
    assert (tables.step, eager.step) == (0, 1)
    models.assert_same(models.all_arrays(tables), models.all_arrays(eager))
    tables.set_learning_rate(0.2)
    eager.set_learning_rate(0.2)
    for _ in range(2):  # the "graph" ran once, as step 1, when it was captured
        tables.before_replay()
    train(tables, batch, factors)
    train(eager, batch, factors)
    assert (tables.step, eager.step) == (2, 2)
    models.assert_same(models.all_arrays(tables), models.all_arrays(eager))


def test_batches_without_ids_or_samples(open_tables):
    tables = open_tables("adam")
    before = models.all_arrays(tables)
    empty = torch.zeros(0, dtype=torch.int64)
    for batch in (3, 0):
        x = empty, torch.zeros(2 * batch + 1, dtype=torch.int64)
        weights = torch.zeros(0, requires_grad=True)
        results = tables(x, (empty, torch.zeros(batch + 1, dtype=torch.int64), weights))
        assert results["a"].shape == (batch, 8) and not results["c"].any()
        sum(result.sum() for result in results.values()).backward()
        tables.check()
    models.assert_same(models.all_arrays(tables), before)


# Bad ids


def test_bad_ids_are_reported(open_tables, generator):
    tables = open_tables(check_every=0)
    x, w = models.random_batch(BATCH, generator)
    x[0][5] = 4711
    with torch.no_grad():
        tables(x, w)
        with pytest.raises(cuda.BadId, match='table "first".*feature "a"'):
            tables.check()
        tables.check()


@pytest.mark.parametrize("training", [False, True])
def test_every_third_call_checks(training, open_tables, generator):
    tables = open_tables(check_every=3)
    x, w = models.random_batch(BATCH, generator)
    x[0][5] = -1

    def call():
        loss = sum(result.sum() for result in tables(x, w).values())
        if training:
            loss.backward()

    with torch.set_grad_enabled(training):
        call()
        call()
        with pytest.raises(cuda.BadId, match="position 5"):
            call()


# Being a module


@pytest.mark.parametrize("kind", models.OPTIMIZERS)
def test_state_dict_goes_on_where_it_was(kind, open_tables, generator):
    batches = [models.random_batch(BATCH, generator) for _ in range(4)]
    trained, loaded = open_tables(kind, seed=1), open_tables(kind, seed=2)
    factors = models.random_factors(trained(*batches[0]), generator)
    for batch in batches[:2]:
        train(trained, batch, factors)
    trained.set_learning_rate(0.25)
    model = torch.nn.ModuleDict({"tables": trained})
    saved = pickle.loads(pickle.dumps(model.state_dict()))
    assert "tables.second.weight" in saved
    torch.nn.ModuleDict({"tables": loaded}).load_state_dict(saved)
    assert (loaded.step, loaded.learning_rate) == (2, 0.25)
    for batch in batches[2:]:
        models.assert_same(train(loaded, batch, factors), train(trained, batch, factors))
    models.assert_same(models.all_arrays(loaded), models.all_arrays(trained))


def test_state_dicts_that_do_not_fit(open_tables):
    tables = open_tables("adam")
    state = tables.state_dict()
    del state["first.exp_avg"]
    state["second.weight"] = torch.zeros(40, 13)
    state["other.weight"] = torch.zeros(1)
    with pytest.raises(RuntimeError) as error:
        tables.load_state_dict(state)
    for text in ("Missing key(s) in state_dict: \"first.exp_avg\"", "other.weight",
                 "second.weight: expected (40, 12) torch.float32, found (40, 13)"):
        assert text in str(error.value)


def test_tables_stay_as_they_were_compiled(open_tables):
    tables = open_tables()
    model = torch.nn.Sequential(tables, torch.nn.Linear(2, 2)).half()
    assert model[1].weight.dtype == torch.float16
    assert tables.weights["first"].dtype == torch.float32 and not list(tables.parameters())
    for copying in (copy.deepcopy, pickle.dumps):
        with pytest.raises(torch_cuda.TensorError, match="state_dict"):
            copying(tables)


def test_the_same_seed_gives_the_same_weights(open_tables):
    models.assert_same(open_tables(seed=5).weights, open_tables(seed=5).weights)
    assert not torch.equal(open_tables(seed=6).weights["first"],
                           open_tables(seed=5).weights["first"])


def test_names_end_with_the_tables(artifacts):
    first = torch_cuda.EmbeddingTables(artifacts("sgd"), name="mine")
    with pytest.raises(torch_cuda.TensorError, match="are open already"):
        torch_cuda.EmbeddingTables(artifacts("sgd"), name="mine")
    del first
    gc.collect()
    torch_cuda.EmbeddingTables(artifacts("sgd"), name="mine").close()
