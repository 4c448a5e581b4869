"""EmbeddingTables: when steps update and in what order, bad ids, and the
tables as a module: state_dict, copies, names."""

import contextlib
import copy
import gc
import pickle

import pytest
import torch

import neuroshard as ns
from support import table_models as models
from support.table_models import BATCH, artifacts, open_tables, train  # noqa: F401, fixtures

pytestmark = models.usable()


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
    with pytest.raises(ValueError, match="no update; compile it with --training"):
        sum(r.sum() for r in tables(x, (*w[:2], weights)).values()).backward()


def test_weights_have_no_backward_where_nothing_learns(open_tables, generator):
    tables = open_tables()
    (x, w), before = models.random_batch(BATCH, generator), models.all_arrays(tables)
    weights = w[2].clone().requires_grad_()
    assert not any(one.requires_grad for one in tables.eval()(x, (*w[:2], weights)).values())
    models.assert_same(models.all_arrays(tables), before)


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
    """Also of a captured step, which reads it at the replay."""
    batch, tables = models.random_batch(BATCH, generator), open_tables(learning_rate=0.0)
    before = models.all_arrays(tables)
    factors = models.random_factors(tables(*batch), generator)
    train(tables, batch, factors)
    models.assert_same(models.all_arrays(tables), before)
    tables.set_learning_rate(0.1)
    train(tables, batch, factors)
    assert not torch.equal(tables.weights["first"], before["first"])


def test_learning_rate_counts_at_the_update(open_tables, generator):
    one, other = open_tables(learning_rate=1.0), open_tables(learning_rate=0.25)
    batch = models.random_batch(BATCH, generator)
    results = one(*batch)
    factors = models.random_factors(results, generator)
    one.set_learning_rate(0.25)
    models.loss_of(results, factors).backward()
    train(other, batch, factors)
    models.assert_same(models.all_arrays(one), models.all_arrays(other))


def test_replays_count(open_tables):
    tables = open_tables()
    for _ in range(2):
        tables.before_replay()
    assert tables.step == 2


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


def test_bad_ids_end_the_step(open_tables, generator):
    """On CPUs, and where each step checks its ids."""
    tables = open_tables(check_every=1)
    before = models.all_arrays(tables)
    x, w = models.random_batch(BATCH, generator)
    x[0][5] = 4711
    with pytest.raises(ValueError, match="feature \"a\".*id 4711 is out of range for table"):
        tables(x, w)
    tables.check()
    models.assert_same(models.all_arrays(tables), before)


def test_bad_ids_are_told_late(artifacts, generator):
    with contextlib.closing(ns.EmbeddingTables(artifacts("sgd"), device="emulator",
                                               check_every=0)) as tables:
        x, w = models.random_batch(BATCH, generator)
        x[0][5] = 4711
        with torch.no_grad():
            tables(x, w)
            with pytest.raises(ValueError, match="id 4711 at position 5 .*\"first\", feature \"a\""):
                tables.check()
            tables.check()


@pytest.mark.parametrize("training", [False, True])
def test_every_third_call_checks(training, artifacts, generator):
    tables = ns.EmbeddingTables(artifacts("sgd"), device="emulator", check_every=3)
    x, w = models.random_batch(BATCH, generator)
    x[0][5] = -1

    def call():
        loss = sum(result.sum() for result in tables(x, w).values())
        if training:
            loss.backward()

    with torch.set_grad_enabled(training):
        call()
        call()
        with pytest.raises(ValueError, match="position 5"):
            call()
    tables.close()


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
        with pytest.raises(TypeError, match="state_dict"):
            copying(tables)


def test_the_same_seed_gives_the_same_weights(open_tables):
    models.assert_same(open_tables(seed=5).weights, open_tables(seed=5).weights)
    assert not torch.equal(open_tables(seed=6).weights["first"],
                           open_tables(seed=5).weights["first"])


def test_names_end_with_the_tables(artifacts):
    first = ns.EmbeddingTables(artifacts("sgd"), name="mine")
    with pytest.raises(ValueError, match="a model named \"mine\" is open already"):
        ns.EmbeddingTables(artifacts("sgd"), name="mine")
    del first
    gc.collect()
    ns.EmbeddingTables(artifacts("sgd"), name="mine").close()
