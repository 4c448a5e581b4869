"""EmbeddingTables: results, updates and gradients of compiled tables against torch.nn.EmbeddingBag and
the optimizers of torch."""

import pytest
import torch

import neuroshard as ns
from neuroshard.distributed import Jagged
from support import table_models as models
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.table_models import BATCH, artifacts, open_tables, train  # noqa: F401, fixtures

pytestmark = models.usable()


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


@pytest.mark.parametrize("device", models.DEVICES)
def test_rows_split_by_columns_have_one_norm(device, tmp_path, generator):
    """The exact row-wise optimizer over two shards is that of the whole rows."""
    model = Model([Table("t", 30, 24, "f32", Optimizer("rowwise_adagrad"))],
                  [Input("x", ("a",), (Lookup("a", "t"),))])
    split = Plan(1, [Shard("t", (0, 30), columns, (0,)) for columns in ((0, 8), (8, 24))])
    ours = ns.EmbeddingTables(models.compiled(model, tmp_path / "split", split), device=device)
    whole = ns.EmbeddingTables(models.compiled(model, tmp_path / "whole"), device=device)
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


@pytest.mark.parametrize("device", models.DEVICES)
def test_gradients_of_weights_that_several_lookups_read(device, tmp_path, generator):
    """Also of shards by columns; ids that only unweighted lookups read have none."""
    adagrad = Optimizer("adagrad")
    model = Model([Table("t", 30, 8, "f32", adagrad), Table("split", 30, 24, "f32", adagrad)],
                  [Input("x", ("c", "d"), (Lookup("c", "t", weighted=True),
                                           Lookup("c", "split", weighted=True),
                                           Lookup("d", "t")), weighted=True)])
    plan = Plan(1, [Shard("t", (0, 30), (0, 8), (0,)), Shard("split", (0, 30), (0, 8), (0,)),
                    Shard("split", (0, 30), (8, 24), (0,))])
    tables = ns.EmbeddingTables(models.compiled(model, tmp_path / "model", plan), device=device)
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


@pytest.mark.parametrize("device", models.DEVICES)
def test_rows_cut_and_padding(device, tmp_path, generator):
    """Ids of two row shards, less those that are padding, as the plain sums."""
    model = Model([Table("t", 30, 8, "f32", Optimizer("sgd"))],
                  [Input("x", ("a",), (Lookup("a", "t", padding_idx=3),))])
    plan = Plan(1, [Shard("t", (0, 13), (0, 8), (0,)), Shard("t", (13, 30), (0, 8), (0,))])
    tables = ns.EmbeddingTables(models.compiled(model, tmp_path / "model", plan), device=device,
                                learning_rate=0.5)
    ids, offsets, _ = models.random_jagged([30], BATCH, generator)
    ids[::4] = 3
    before = torch.cat(list(tables.weights.values())).requires_grad_()
    expected = torch.nn.functional.embedding_bag(ids, before, offsets, mode="sum", padding_idx=3,
                                                 include_last_offset=True)
    results = tables((ids, offsets))
    torch.testing.assert_close(results["a"], expected)
    for one in (results["a"], expected):
        one.sum().backward()
    torch.testing.assert_close(torch.cat(list(tables.weights.values())),
                               before.detach() - 0.5 * before.grad)


# Forms of inputs and results


class KeyedJaggedTensor:
    """The part of torchrec's class that is read."""

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
            (Jagged(ids, offsets), Jagged(*w)),
            (KeyedJaggedTensor(["a", "b"], ids, offsets.int(), None),
             KeyedJaggedTensor(["c"], *w)),
            (KeyedJaggedTensor(["a", "b"], ids, offsets, torch.rand(len(ids))), w),  # which no lookup reads
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
                batch = [Jagged(flat, pooling=pooling),
                         Jagged(ids, None, weights[-1], pooling)]
            else:
                batch = [x, (ids, torch.arange(BATCH + 1) * pooling, weights[-1])]
            results = tables(*batch)
            factors = factors or models.random_factors(results, generator)
            models.loss_of(results, factors).backward()
        models.assert_same(models.all_arrays(fixed), models.all_arrays(ragged))
        assert torch.equal(weights[0].grad, weights[1].grad)


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
