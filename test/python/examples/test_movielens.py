"""The example on MovieLens-100k: its features use nothing from the future, and four processes under
NeuroShard's plan train as one process of PyTorch does."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from support import optimizers

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
sys.path.insert(0, str(ROOT / "examples"))

if not list((BUILD / "python" / "neuroshard").glob("_planner.*.so")):
    pytest.skip("a build with sanitizers has no Python module", allow_module_level=True)

import neuroshard as ns  # noqa: E402
from movielens import report  # noqa: E402
from movielens.checks import Update  # noqa: E402
from movielens.data import GENRES, HISTORY, MovieLens, _read  # noqa: E402
from movielens.unsharded import UnshardedTables  # noqa: E402

RANKS, STEPS = 4, 200


@pytest.fixture(scope="module")
def data():
    return MovieLens()


def test_test_part_is_later_than_training_part(data):
    assert len(data) == 100_000
    assert (len(data.train), len(data.test)) == (80_000, 20_000)
    assert data.time[data.train].max() <= data.time[data.test].min()


def test_histories_are_the_last_movies_before(data):
    """Compared with a walk through all ratings in the order of time."""
    histories = {1: defaultdict(list), 0: defaultdict(list)}
    expected = {"liked": {}, "disliked": {}}
    for sample in np.argsort(data.time, kind="stable"):
        user = data.user[sample]
        expected["liked"][sample] = histories[1][user][-HISTORY:]
        expected["disliked"][sample] = histories[0][user][-HISTORY:]
        histories[int(data.labels[sample])][user].append(data.movie[sample])
    for feature, movies in expected.items():
        ids, lengths = data.take(feature, np.arange(len(data)))
        assert ids.tolist() == [movie for sample in range(len(data)) for movie in movies[sample]]
        assert lengths.tolist() == [len(movies[sample]) for sample in range(len(data))]


def test_dense_counts_are_of_the_past(data):
    """Column 3 counts the ratings of the user, column 5 those of the movie."""
    users, movies = defaultdict(int), defaultdict(int)
    expected = np.empty((len(data), 2))
    for sample in np.argsort(data.time, kind="stable"):
        user, movie = data.user[sample], data.movie[sample]
        expected[sample] = users[user], movies[movie]
        users[user] += 1
        movies[movie] += 1
    assert np.allclose(np.expm1(5 * data.dense[:, [3, 5]]), expected, rtol=1e-4, atol=1e-4)


def test_ids_are_rows_of_their_tables(data):
    everything = np.arange(len(data))
    for feature, table in data.features.items():
        ids, lengths = data.take(feature, everything)
        assert lengths.sum() == len(ids)
        assert ids.min() >= 0 and ids.max() < data.tables[table].rows


def test_pairs_are_of_the_users_own_genres(data):
    samples = np.arange(0, len(data), 997)
    genres, lengths = data.take("genres", samples)
    pairs, same_lengths = data.take("user_genres", samples)
    assert (lengths == same_lengths).all()
    assert (pairs == np.repeat(data.user[samples], lengths) * len(GENRES) + genres).all()


def test_raw_ids_are_ascending():
    """They are looked up by bisection."""
    for part, column in (("users", "user_id"), ("items", "movie_id")):
        assert (np.diff(_read(part)[column]) > 0).all()


def test_shares_of_the_ranks_make_the_global_batch(data):
    samples = data.global_batches(64, 1)[0]
    whole = data.batch(samples)
    parts = [data.batch(data.share(samples, rank, RANKS)) for rank in range(RANKS)]
    assert torch.equal(torch.cat([part.labels for part in parts]), whole.labels)
    assert torch.equal(torch.cat([part.dense for part in parts]), whole.dense)
    for index in range(len(data.features)):
        def ids_of(batch):
            size = len(batch.labels)
            return batch.ids[batch.offsets[index * size]:batch.offsets[(index + 1) * size]]
        assert torch.equal(torch.cat([ids_of(part) for part in parts]), ids_of(whole))


def test_epochs_are_permutations_of_the_training_part(data):
    batches = data.global_batches(20_000, 8)
    for epoch in (batches[:4], batches[4:]):
        assert (np.sort(np.concatenate(epoch)) == data.train).all()
    assert not (batches[0] == batches[4]).all()
    again = data.global_batches(20_000, 8)
    assert all((one == other).all() for one, other in zip(batches, again))


def test_batch_larger_than_the_training_part_is_refused(data):
    with pytest.raises(ValueError, match="expected at most 80000 samples, got: 80001"):
        data.global_batches(80_001, 1)


@pytest.mark.parametrize("kind", ["sgd", "adagrad", "rowwise_adagrad", "adam"])
def test_unsharded_tables_learn_by_the_formulas(data, kind, generator):
    """Checks the unsharded baseline against float64 formulas."""
    optimizer = ns.Optimizer(kind)
    weights = {name: torch.rand((spec.rows, 4), generator=generator) - 0.5
               for name, spec in data.tables.items()}
    tables = UnshardedTables(data, weights, optimizer, learning_rate=0.1)
    expected = {name: weight.clone() for name, weight in weights.items()}
    states = {name: optimizers.new_states(optimizer, *weight.shape)
              for name, weight in weights.items()}
    for number in (1, 2):
        batch = data.batch(data.global_batches(50, 2)[number - 1])
        tables.zero_grad()
        pooled = tables.start(batch)()
        factors = {name: torch.rand(value.shape, generator=generator)
                   for name, value in pooled.items()}
        sum((pooled[name] * factors[name]).sum() for name in pooled).backward()
        for name, weight in expected.items():
            gradient = table_gradient(data, batch, name, factors, len(weight))
            new, *new_states = optimizers.step(optimizer, weight, states[name], gradient, 0.1,
                                               number)
            expected[name] = new.value.float()
            states[name] = [state.value.float() for state in new_states]
        tables.step()
    for name, weight in tables.weights().items():
        torch.testing.assert_close(weight, expected[name], rtol=1e-5, atol=1e-6)


def table_gradient(data, batch, table, factors, rows):
    """The summed gradient of a table's rows, and which rows are in the batch."""
    size = len(batch.labels)
    total = torch.zeros((rows, 4), dtype=torch.float64)
    touched = torch.zeros(rows, dtype=torch.bool)
    for index, feature in enumerate(data.features):
        if data.features[feature] != table:
            continue
        for sample in range(size):
            begin, end = batch.offsets[index * size + sample:][:2]
            ids = batch.ids[begin:end]
            share = max(len(ids), 1) if data.tables[table].pooling == "mean" else 1
            for row in ids:
                total[row] += factors[feature][sample].double() / share
                touched[row] = True
    return SimpleNamespace(value=total, touched=touched,
                           error=lambda _decay: torch.zeros_like(total))


def fake_run(name, losses):
    return SimpleNamespace(name=name, losses=losses)


@pytest.mark.parametrize("loss_gap,weight_gap,agrees", [
    (0.9e-3, 0.9e-6, True), (1.1e-3, 0.9e-6, False), (0.9e-3, 1.1e-6, False)])
def test_report_tells_agreement_from_none(loss_gap, weight_gap, agrees, capsys):
    losses = [0.5] * 40
    runs = [fake_run("NeuroShard", [*losses[:-1], 0.5 + loss_gap]), fake_run("TorchRec", losses),
            fake_run("unsharded", losses)]
    updates = [Update("sgd", 0.0, 0.1), Update("adam", weight_gap, 0.1)]
    assert report.conclude(None, None, updates, runs) == agrees
    assert f"NeuroShard {loss_gap:.1e}" in capsys.readouterr().out


@pytest.mark.parametrize("auc,agrees", [(0.7319, True), (0.7281, True), (0.7321, False),
                                        (0.7279, False)])
def test_report_holds_the_auc_of_a_smaller_wire_type(auc, agrees):
    losses = [0.5] * 40
    runs = [fake_run("NeuroShard", losses), fake_run("TorchRec", losses), fake_run("bf16", losses),
            fake_run("unsharded", losses)]
    runs[2].auc, runs[3].auc = auc, 0.73
    assert report.conclude(None, None, [Update("sgd", 0.0, 0.1)], runs) == agrees


@pytest.mark.parametrize("auc,agrees", [(0.7309, True), (0.7291, True), (0.7311, False), (0.7289, False)])
def test_report_holds_the_auc_of_served_tables(auc, agrees):
    assert report.conclude_served(SimpleNamespace(auc=0.73), {"int8": auc, "int4": 0.5}) == agrees


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The files that the example writes, trained with small batches and narrow tables."""
    folder = tmp_path_factory.mktemp("movielens")
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "NEUROSHARD_CACHE": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "examples"), str(BUILD / "python")])}
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
         str(RANKS), "-m", "movielens.train", "--batch", "512", "--dim", "16", "--wire", "bf16", "int8",
         "--serve", "f16", "int8", "int4", "fp8",
         "--steps",
         str(STEPS), "--out", folder / "out"],
        env=environment, capture_output=True, text=True, timeout=1200)
    assert result.returncode == 0, result.stdout + result.stderr
    return SimpleNamespace(text=result.stdout, plan=ns.Plan.load(folder / "out" / "plan.json"),
                           **json.loads((folder / "out" / "figures.json").read_text()))


def test_plan_replicates_the_small_tables_only(data, trained):
    for table, spec in data.tables.items():
        assert trained.plan.shards_of(table)[0].replicated == (spec.rows < 100)
    rows = [shard.row_count for shard in trained.plan.shards_of("user_genre")]
    assert rows == [4480, 4480, 4480, 4477]


@pytest.mark.parametrize("kind", ["sgd", "adagrad", "rowwise_adagrad", "adam"])
def test_one_update_is_that_of_one_process(trained, kind):
    update = trained.updates[kind]
    assert update["difference"] <= 1e-6
    assert update["moved"] > 1e-4  # Far enough that a missing update would be seen.


def test_losses_are_those_of_one_process(trained):
    losses = {name: run["losses"] for name, run in trained.runs.items()}
    assert all(len(one) == STEPS for one in losses.values())
    for name in ("NeuroShard", "TorchRec"):
        gap = max(abs(a - b) for a, b in zip(losses[name], losses["unsharded"]))
        assert gap == trained.loss_differences[name] <= 1e-3
    assert np.mean(losses["NeuroShard"][-20:]) < np.mean(losses["NeuroShard"][:20]) - 0.02


def test_predictions_are_better_than_chance_and_alike(trained):
    auc = {name: run["auc"] for name, run in trained.runs.items()}
    assert auc["NeuroShard"] > 0.7
    assert abs(auc["NeuroShard"] - auc["unsharded"]) < 1e-3
    assert abs(auc["TorchRec"] - auc["unsharded"]) < 1e-3
    for smaller in ("bf16", "int8"):
        assert abs(auc[smaller] - auc["unsharded"]) < 2e-3
        assert trained.runs[smaller]["losses"] != trained.runs["NeuroShard"]["losses"]


def test_output_names_what_was_compared(trained):
    for text in ("one update from identical state", "TorchRec", "largest difference", "test AUC",
                 "served as int8", "served as int4"):
        assert text in trained.text
