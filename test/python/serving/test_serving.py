"""Frozen tables answer as torch does with their dequantized rows, in all types, poolings and forms of ids; their
bytes are FBGEMM's; wrong input and damaged files are one error each."""

import copy
import os
import pickle
import random
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
import torch

import neuroshard as ns
from neuroshard.distributed import Jagged
from neuroshard.errors import CheckpointError, TensorError
from neuroshard.serving import dequantize, quantize
from support import matrix

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
TYPES = ("f32", "f16", "bf16", "int8", "int4", "fp8")
LARGEST_GAP = 1e-5  # of sums of about 10 values of about 1


def draw_case(seed):
    """A problem of some tables, its weights and the types to serve them in."""
    rng = random.Random(seed)
    tables = [ns.Table(f"t{i}", rng.choice((1, 7, 300)), rng.choice((1, 3, 8, 37, 64, 260, 519)),
                       optimizer=rng.choice(("sgd", "adagrad", "rowwise_adagrad"))) for i in range(rng.randint(1, 4))]
    features = [ns.Feature(f"f{i}", rng.choice(tables).name, pooling=rng.choice(("sum", "mean", "none")))
                for i in range(rng.randint(1, 6))]
    features = [one.replace(weighted=one.pooling == "sum" and rng.random() < 0.4) for one in features]
    problem = ns.ShardingProblem(tables=tables, features=features, batch=8, topology="1xCPU")
    generator = torch.Generator().manual_seed(seed)
    weights = {table.name: torch.randn(table.rows, table.dim, generator=generator) for table in tables}
    return problem, weights, {table.name: rng.choice(TYPES) for table in tables}, generator


def draw_ids(problem, batch, generator):
    """{feature: (ids, offsets)}, with empty bags; of weighted ones also weights."""
    rows = {table.name: table.rows for table in problem.tables}
    drawn = {}
    for feature in problem.features:
        lengths = torch.randint(0, 12, (batch,), generator=generator)
        ids = torch.randint(0, rows[feature.table], (int(lengths.sum()),), generator=generator)
        drawn[feature.name] = (ids, torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]))
        if feature.weighted:
            drawn[feature.name] += (torch.randn(len(ids), generator=generator),)
    return drawn


def expected(problem, weights, types, drawn):
    results = {}
    for feature in problem.features:
        dtype, (ids, offsets, *factors) = types[feature.table], drawn[feature.name]
        values = weights[feature.table]
        rows = dequantize(quantize(values, dtype), values.shape[1], dtype)
        results[feature.name] = rows[ids] if feature.pooling == "none" else torch.nn.functional.embedding_bag(
            ids, rows, offsets, mode=feature.pooling, include_last_offset=True,
            per_sample_weights=factors[0] if factors else None)
    return results


@pytest.mark.parametrize("seed", matrix.sample(range(400), 12, "serving"))
def test_answers_are_those_of_torch(seed, tmp_path):
    problem, weights, types, generator = draw_case(seed)
    with ns.serve(ns.freeze(weights, problem, tmp_path / "frozen", dtype=types)) as tables:
        for batch in (5, 0, 1):
            drawn = draw_ids(problem, batch, generator)
            found = tables(drawn)
            for name, value in expected(problem, weights, types, drawn).items():
                torch.testing.assert_close(found[name], value, rtol=0, atol=LARGEST_GAP, msg=name)


def test_weights_of_ids(tmp_path):
    problem = ns.ShardingProblem(tables=[ns.Table("t", 50, 12)],
                                 features=[ns.Feature("f", "t", weighted=True, mean_pooling=3)], batch=4,
                                 topology="1xCPU")
    weights = {"t": torch.randn(50, 12)}
    ids, offsets, factors = torch.randint(0, 50, (9,)), torch.tensor([0, 4, 4, 9]), torch.randn(9)
    rows = dequantize(quantize(weights["t"], "int8"), 12, "int8")
    wanted = torch.nn.functional.embedding_bag(ids, rows, offsets, mode="sum", per_sample_weights=factors,
                                               include_last_offset=True)
    with ns.serve(ns.freeze(weights, problem, tmp_path / "frozen")) as tables:
        torch.testing.assert_close(tables({"f": (ids, offsets, factors)})["f"], wanted, rtol=0, atol=LARGEST_GAP)
        torch.testing.assert_close(tables(Jagged(ids.int(), offsets, factors))["f"], wanted, rtol=0,
                                   atol=LARGEST_GAP)
        with pytest.raises(TensorError, match="expected a weight for each id, found none"):
            tables({"f": (ids, offsets)})


def test_features_with_and_without_weights(tmp_path):
    """In the order of the problem, by feature in a dict and for all ids in a Jagged; with ids left out."""
    problem = ns.ShardingProblem(
        tables=[ns.Table("t", 50, 12), ns.Table("u", 20, 5)], batch=4, topology="1xCPU",
        features=[ns.Feature("a", "t"), ns.Feature("b", "u", weighted=True), ns.Feature("c", "t", pooling="none"),
                  ns.Feature("d", "t", weighted=True)])
    weights = {"t": torch.randn(50, 12), "u": torch.randn(20, 5)}
    generator = torch.Generator().manual_seed(7)
    drawn = draw_ids(problem, 6, generator)
    folder = ns.freeze(weights, problem, tmp_path / "frozen", dtype="f32")
    wanted = expected(problem, weights, {"t": "f32", "u": "f32"}, drawn)
    with ns.serve(folder) as tables:
        assert tables.features == ("a", "b", "c", "d")
        found = tables(drawn)
        begin = [0, *torch.tensor([len(one[0]) for one in drawn.values()]).cumsum(0).tolist()]
        offsets = torch.cat([one[1][:-1] + first for one, first in zip(drawn.values(), begin)] +
                            [torch.tensor([begin[-1]])])
        factors = [one[2] if len(one) == 3 else torch.full((len(one[0]),), float("nan")) for one in drawn.values()]
        whole = tables(Jagged(torch.cat([one[0] for one in drawn.values()]), offsets, torch.cat(factors)))
        for name, value in wanted.items():
            torch.testing.assert_close(found[name], value, rtol=0, atol=LARGEST_GAP, msg=name)
            assert torch.equal(found[name], whole[name]), name
        assert not tables({name: (torch.tensor([], dtype=torch.int64), torch.tensor([0])) for name in drawn})["b"].numel()
        ids, ends, factor = drawn["b"]
        for wrong, message in (
                ({"b": (ids, ends)}, "feature \"b\": expected a weight for each id, found none"),
                ({"a": (*drawn["a"], torch.ones(len(drawn["a"][0])))}, "feature \"a\": expected no weights"),
                ({"b": (ids, ends, factor[1:])}, f"feature \"b\": expected a weight for each of {len(ids)} ids"),
                ({"b": (ids, ends, None)}, "feature \"b\": expected a weight for each of .* found NoneType"),
                ({"b": (ids, ends, factor.long())}, "feature \"b\": expected a weight .* found torch.int64")):
            with pytest.raises(TensorError, match=message):
                tables(drawn | wrong)
        with pytest.raises(TensorError, match="expected a weight for each id, found none"):
            tables(Jagged(torch.tensor([0]), torch.tensor([0, 1, 1, 1, 1])))
    with ns.ServedTables(folder, drop_unknown=True) as tables:
        unknown = drawn | {"b": (torch.cat([torch.tensor([77]), ids]), torch.cat([ends[:1], ends[1:] + 1]),
                                 torch.cat([torch.tensor([9.0]), factor]))}
        assert torch.equal(tables(unknown)["b"], found["b"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_bytes_are_those_of_fbgemm_and_its_kernels_read_them(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fbgemm_gpu.split_embedding_configs import SparseType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
        from fbgemm_gpu.split_table_batched_embeddings_ops_inference import \
            IntNBitTableBatchedEmbeddingBagsCodegen as Tables
    values = torch.randn(3000, 24) * torch.logspace(-4, 3, 3000)[:, None]
    values[5], values[6] = 0.25, 0
    ours = quantize(values, dtype)
    theirs = torch.ops.fbgemm.FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf(values, 8 if dtype == "int8" else 4)
    assert torch.equal(ours, torch.cat([theirs[:, -4:], theirs[:, :-4]], 1))
    kind = SparseType.INT8 if dtype == "int8" else SparseType.INT4
    tables = Tables([("t", 3000, 24, kind, EmbeddingLocation.HOST)], device="cpu", output_dtype=SparseType.FP32)
    tables.initialize_weights()
    tables.split_embedding_weights(split_scale_shifts=False)[0][0][:, :ours.shape[1]] = ours
    read = tables(torch.arange(3000), torch.arange(3001))
    torch.testing.assert_close(read, dequantize(ours, 24, dtype), rtol=1e-6, atol=1e-7)


def test_errors_of_values():
    with pytest.raises(TensorError, match="expected values from -448 to 448, found row 1 with values from 1 to 500"):
        quantize(torch.tensor([[1.0, 2], [1, 500]]), "fp8")
    with pytest.raises(TensorError, match="that a scale and a bias of f16 can reach, found row 7"):
        quantize(torch.tensor([[1.0, float("nan")]]), "int8", 7)
    with pytest.raises(TensorError, match="expected finite values of f16, found row 0 with values from 70000"):
        quantize(torch.tensor([[70000.0]]), "f16")


def test_unknown_ids_are_an_error_or_left_out(small):
    _, _, folder = small
    ids = {"u": (torch.tensor([1, 40, 3]), torch.tensor([0, 2, 3])), "i": (torch.tensor([-1, 29]), torch.tensor([0, 1, 2]))}
    with ns.serve(folder) as tables:
        with pytest.raises(TensorError, match="feature \"u\", bag 0, position 1 .*id 40 is out of range for table "
                                              "\"user\" with 40 rows"):
            tables(ids)
        known = tables({"u": (torch.tensor([1, 3]), torch.tensor([0, 1, 2])),
                        "i": (torch.tensor([0, 29]), torch.tensor([0, 1, 2]))})
    with ns.ServedTables(folder, drop_unknown=True) as tables:
        found = tables(ids)
    assert torch.equal(found["u"], known["u"])
    assert torch.equal(found["i"], torch.stack([torch.zeros(5), known["i"][1]]))


@pytest.mark.parametrize("ids, message", [
    ({"u": torch.zeros(2, 1, dtype=torch.int64)}, "expected"),
    ({"u": (torch.tensor([0, 1]), torch.tensor([0, 5])), "i": (torch.tensor([0]), torch.tensor([0, 1]))}, "offset"),
    ({"u": (torch.tensor([0, 1]), torch.tensor([0, 1])), "i": (torch.tensor([0]), torch.tensor([0, 1]))}, "offset"),
    (Jagged(torch.tensor([0]), torch.tensor([0, 1])), "expected 2 x batch \\+ 1 offsets, found 2"),
    (Jagged(torch.tensor([0, 1, 2]), torch.tensor([0, 2, 1])), "offsets must not decrease"),
    (Jagged(torch.tensor([0]), pooling=1), "expected 2 features x batch x 1 ids, as it has no offsets, found 1"),
    (3, "expected a Jagged")])
def test_wrong_ids_are_one_error(small, ids, message):
    with ns.serve(small[2]) as tables, pytest.raises(TensorError, match=message):
        tables(ids)


def test_keyed_jagged_tensors(small):
    from torchrec import KeyedJaggedTensor

    values, lengths = torch.tensor([3, 4, 5, 6, 7]), torch.tensor([2, 0, 1, 2])
    with ns.serve(small[2]) as tables:
        found = tables(KeyedJaggedTensor(["u", "i"], values, lengths=lengths))
        wanted = tables({"u": (values[:2], torch.tensor([0, 2, 2])), "i": (values[2:], torch.tensor([0, 1, 3]))})
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_threads_get_the_same_answers(small):
    problem, _, folder = small
    wrong = []
    with ns.serve(folder) as tables:
        def ask(seed):
            generator = torch.Generator().manual_seed(seed)
            for _ in range(50):
                drawn = draw_ids(problem, 3, generator)
                first, again = tables(drawn), tables(drawn)
                wrong.extend(name for name in first if not torch.equal(first[name], again[name]))
        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_sources_give_the_same_tables(small, tmp_path):
    from safetensors.torch import save_file

    problem, weights, folder = small
    keyed = {f"model.embedding_bags.{name}.weight": value for name, value in weights.items()}
    torch.save({"tables": keyed, "step": 3}, tmp_path / "whole.pt")
    save_file(keyed, tmp_path / "whole.safetensors")
    model = torch.nn.Module()
    model.user, model.item = (torch.nn.EmbeddingBag.from_pretrained(weights[name]) for name in ("user", "item"))
    wanted = [(folder / f"weights{i}.bin").read_bytes() for i in range(2)]
    for number, source in enumerate((keyed, tmp_path / "whole.pt", tmp_path / "whole.safetensors", model)):
        again = ns.freeze(source, problem, tmp_path / f"frozen{number}")
        assert [(again / f"weights{i}.bin").read_bytes() for i in range(2)] == wanted


TRAIN = """
import sys, torch, torch.distributed as dist, neuroshard as ns
dist.init_process_group("gloo")
problem = ns.ShardingProblem(tables=[ns.Table("user", 40, 8, optimizer="adagrad")],
                             features=[ns.Feature("u", "user")], batch=4, topology="2xCPU")
plan = ns.Plan(device_count=2, shards=[ns.Shard(table="user", rows=(0, 40), cols=(0, 4), devices=0),
                                       ns.Shard(table="user", rows=(0, 40), cols=(4, 8), devices=1)])
tables = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.1)
tables({"u": torch.arange(4).reshape(2, 2)})["u"].sum().backward()
ns.distributed.save(sys.argv[1] + "/run", {"tables": tables})
whole = ns.distributed.full_state_dict(tables)
if dist.get_rank() == 0:
    torch.save(whole, sys.argv[1] + "/whole.pt")
tables.close()
dist.destroy_process_group()
"""


def test_a_checkpoint_of_two_ranks(tmp_path):
    run_ranks(tmp_path, TRAIN)
    problem = ns.ShardingProblem(tables=[ns.Table("user", 40, 8, optimizer="adagrad")],
                                 features=[ns.Feature("u", "user")], batch=4, topology="1xCPU")
    first = ns.freeze(tmp_path / "run", problem, tmp_path / "a", dtype="f32")
    second = ns.freeze(tmp_path / "whole.pt", problem, tmp_path / "b", dtype="f32")
    assert (first / "weights0.bin").read_bytes() == (second / "weights0.bin").read_bytes()
    with pytest.raises(CheckpointError, match="expected one key that ends in other.weight, found none"):
        ns.freeze(tmp_path / "run", problem.replace(tables=[ns.Table("other", 40, 8)],
                                                    features=[ns.Feature("u", "other")]), tmp_path / "c")


def test_plans_of_several_devices_run(small, tmp_path):
    """neuroshard-run compares a cut table with the unsharded program, both with the frozen weights."""
    problem, weights, _ = small
    problem = problem.replace(topology="2xCPU")
    cut = ns.Plan(device_count=2, shards=[
        ns.Shard(table="user", rows=(0, 40), cols=(0, 4), devices=0),
        ns.Shard(table="user", rows=(0, 40), cols=(4, 8), devices=1),
        ns.Shard(table="item", rows=(0, 11), cols=(0, 5), devices=0),
        ns.Shard(table="item", rows=(11, 30), cols=(0, 5), devices=1)])
    folder = ns.freeze(weights, problem, tmp_path / "cut", dtype={"user": "int4", "item": "int8"}, plan=cut)
    done = subprocess.run([BUILD / "bin" / "neuroshard-run", folder, "--batch", "6"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    with pytest.raises(TensorError, match="is for 2 devices; serve it from as many ranks"):
        ns.serve(folder)


SERVE = """
import sys, torch, torch.distributed as dist, neuroshard as ns
dist.init_process_group("gloo")
folder, rank = sys.argv[1], dist.get_rank()
weights = torch.load(folder + "/weights.pt")
problem = ns.serving.served(ns.ShardingProblem.load(folder + "/problem.json"), "int8")
plan = ns.Plan.load(folder + "/cut/plan.json")
for wrong, text in (({"initial_values": {"user": torch.nn.init.zeros_}}, 'table "user" is frozen'),
                    ({"row_order": {"user": torch.arange(40)}}, "have their ids as rows")):
    try:
        ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0, artifact=folder + "/cut", **wrong)
        raise AssertionError(text)
    except ValueError as error:
        assert text in str(error), error
tables = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0, artifact=folder + "/cut").eval()
generator = torch.Generator().manual_seed(rank)
ids = torch.randint(0, 30, (3, 4), generator=generator)
factors = torch.rand(3, 4, generator=generator)
weighted = (ids.flatten(), torch.arange(0, 13, 4), factors.flatten())
found = tables({"u": ids, "i": ids, "w": weighted})
whole = tables(ns.distributed.Jagged(ids.flatten().repeat(3), torch.arange(0, 37, 4), factors.flatten().repeat(3)))
assert all(torch.equal(found[name], whole[name]) for name in found)
for wrong, text in (({"u": (*weighted,)}, 'feature "u": expected no weights'), ({"w": ids}, "expected weights for all")):
    try:
        tables({"u": ids, "i": ids, "w": weighted} | wrong)
        raise AssertionError(text)
    except ns.errors.TensorError as error:
        assert text in str(error), error
for name, table in (("u", "user"), ("i", "item"), ("w", "user")):
    wanted = (weights[table][ids] * (factors if name == "w" else torch.ones(3, 4))[..., None]).sum(1)
    torch.testing.assert_close(found[name], wanted, rtol=0, atol=1e-5)
    assert not found[name].requires_grad
held = [torch.ops.neuroshard.memory_bytes(tables.name, kind) for kind in (0, 1)]  # weights, states
said = ns.inspect(problem, plan).memory.devices[rank]
assert held == [said.weights_bytes, said.optimizer_state_bytes], (held, said)
assert said.optimizer_state_bytes == said.backward_bytes == 0 and problem.mode == "inference"
assert not [key for key in tables.state_dict() if key.endswith("weight")]
tables.close()
dist.destroy_process_group()
"""


def test_ranks_serve_cut_tables(small, tmp_path):
    problem, weights, _ = small
    problem = problem.replace(topology="2xCPU", features=[ns.Feature("u", "user"), ns.Feature("i", "item"),
                                                          ns.Feature("w", "user", weighted=True)])
    plan = ns.Plan(device_count=2, shards=[
        ns.Shard(table="user", rows=(0, 40), cols=(0, 4), devices=0),
        ns.Shard(table="user", rows=(0, 40), cols=(4, 8), devices=1),
        ns.Shard(table="item", rows=(0, 11), cols=(0, 5), devices=0),
        ns.Shard(table="item", rows=(11, 30), cols=(0, 5), devices=1)])
    ns.freeze(weights, problem, tmp_path / "cut", plan=plan)
    problem.save(tmp_path / "problem.json")
    torch.save({name: dequantize(quantize(value, "int8"), value.shape[1], "int8")
                for name, value in weights.items()}, tmp_path / "weights.pt")
    run_ranks(tmp_path, SERVE)


def run_ranks(folder, program):
    """Runs a program on two ranks, with the folder as its argument."""
    (folder / "program.py").write_text(program)
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                           folder / "program.py", folder], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python"), "OMP_NUM_THREADS": "1",
                               "NEUROSHARD_CACHE": str(folder / "cache")})
    assert done.returncode == 0, done.stderr[-3000:]


def test_damage_is_one_error(small, tmp_path):
    problem, weights, _ = small
    folder = ns.freeze(weights, problem, tmp_path / "frozen")
    bytes_ = (folder / "weights1.bin").read_bytes()
    (folder / "weights1.bin").write_bytes(bytes_[:-1] + bytes([bytes_[-1] ^ 1]))
    with pytest.raises(TensorError, match="weights1.bin' is not the file that the model was frozen with"):
        ns.serve(folder)
    (folder / "weights1.bin").write_bytes(bytes_[:-1])
    with pytest.raises(TensorError, match="weights1.bin' has 269 bytes, expected the weights of shard"):
        ns.serve(folder)
    (folder / "weights1.bin").unlink()
    with pytest.raises(TensorError, match="cannot read '.*weights1.bin': No such file"):
        ns.serve(folder)


def test_wrong_arguments(small, tmp_path):
    problem, weights, folder = small
    target = tmp_path / "frozen"
    torch.save({"user": Path("x")}, tmp_path / "objects.pt")
    for source, options, message in (
            (weights, {"dtype": "int2"}, "expected one of f32, f16, bf16, int8, int4, fp8, found 'int2'"),
            (weights, {"dtype": {"user": "int8"}}, "table \"item\" has no type"),
            (weights, {"dtype": {"user": "int8", "item": "f16", "x": "f16"}}, "there is no table 'x' in the problem; it has user, item"),
            ({"user": weights["user"]}, {}, "table \"item\": expected one tensor by its name"),
            ({**weights, "item": torch.zeros(3, 5)}, {}, "floating-point weights \\[30, 5\\] as the problem says"),
            ({**weights, "item": torch.zeros(30, 5, dtype=torch.int8)}, {}, "found torch.int8"),
            ({"user": weights["user"], **{f"{one}.item.weight": weights["item"] for one in "ab"}}, {},
             "found a.item.weight, b.item.weight"),
            ({"m.user.weight": weights["user"], "m.user.ids": torch.zeros(39, 6), "item": weights["item"]}, {},
             "table \"user\" has dynamic ids"),
            (tmp_path / "none.pt", {}, "cannot be read as a state dict"),
            (tmp_path / "objects.pt", {}, "objects.pt cannot be read as a state dict: it has objects of "
                                          "(pathlib|threading|collections|builtins)[^;]*, and only tensors")):
        with pytest.raises(TensorError, match=message):
            ns.freeze(source, problem, target, **options)
        assert not target.exists()
    with pytest.raises(CheckpointError, match="nowhere"):
        ns.freeze(tmp_path / "nowhere", problem, target)
    mean = problem.replace(features=[ns.Feature("u", "user", weighted=True, pooling="mean")])
    for wrong, message in ((mean, "weights of ids are for sums"),
                           (problem.replace(features=[]), "expected a problem with features, found none")):
        with pytest.raises(TensorError, match=message):
            ns.freeze(weights, wrong, target)
    with pytest.raises(TypeError, match="expected a checkpoint's folder"):
        ns.freeze(3, problem, target)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("kept")
    with pytest.raises(TensorError, match="is there and is not a folder that freeze has written"):
        ns.freeze(weights, problem, tmp_path / "mine")
    for name, found in (("mine", "a folder without manifest.json"), ("mine/notes.txt", "a file"), ("none", "nothing")):
        with pytest.raises(TensorError, match=f"serve: .*{name}: expected a folder that neuroshard.freeze has "
                                              f"written, found {found}"):
            ns.serve(tmp_path / name)
    again = ns.freeze({**weights, "item": weights["item"] + 1}, problem, target)
    ns.freeze(weights, problem, target)  # in place of the earlier one
    assert (again / "weights1.bin").read_bytes() == (folder / "weights1.bin").read_bytes()
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".frozen")]


def test_keyed_tensors_that_lie(small):
    """TorchRec checks neither the number of weights nor the type of ids."""
    from torchrec import KeyedJaggedTensor

    one = torch.tensor([1, 1])
    with ns.serve(small[2]) as tables:
        for ids in (torch.tensor([1.9, 2]), torch.tensor([True, False]), torch.tensor([1, 2], dtype=torch.uint8)):
            with pytest.raises(TensorError, match="expected ids as torch.int64 or torch.int32"):
                tables(KeyedJaggedTensor(["u", "i"], ids, lengths=one))
    problem = ns.ShardingProblem(tables=[ns.Table("t", 5, 4)], features=[ns.Feature("f", "t", weighted=True)], batch=4,
                                 topology="1xCPU")
    with ns.serve(ns.freeze({"t": torch.ones(5, 4)}, problem, small[2].parent / "weighted")) as tables:
        with pytest.raises(TensorError, match="expected a weight for each of 4 ids, found torch.float32 \\[1\\]"):
            tables(KeyedJaggedTensor(["f"], torch.zeros(4, dtype=torch.int64), torch.ones(1), one[:1] * 4))


def test_ids_too_wide_for_the_tables(tmp_path):
    problem = ns.ShardingProblem(tables=[ns.Table("t", 5, 4)], features=[ns.Feature("f", "t")],
                                 batch=ns.Batch(4, id_type="i32"), topology="1xCPU")
    folder = ns.freeze({"t": torch.ones(5, 4)}, problem, tmp_path / "frozen", dtype="f32")
    wide = {"f": torch.tensor([[1, 2**32 + 1]])}
    with ns.serve(folder) as tables, pytest.raises(TensorError, match="id 4294967297 .number 1 of the input. is out of"):
        tables(wide)
    with ns.ServedTables(folder, drop_unknown=True) as tables:
        assert torch.equal(tables(wide)["f"], torch.ones(1, 4))


def test_open_tables_are_not_copied(small):
    with ns.serve(small[2]) as tables:
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                copied(tables)


def test_names_that_end_in_each_other(tmp_path):
    problem = ns.ShardingProblem(tables=[ns.Table("user", 5, 4), ns.Table("super.user", 5, 4)],
                                 features=[ns.Feature("a", "user"), ns.Feature("b", "super.user")], batch=4,
                                 topology="1xCPU")
    one, two = torch.full((5, 4), 1.0), torch.full((5, 4), 2.0)
    for number, prefix in enumerate(("", "m.")):
        folder = ns.freeze({f"{prefix}user.weight": one, f"{prefix}super.user.weight": two}, problem,
                           tmp_path / str(number), dtype="f32")
        with ns.serve(folder) as tables:
            found = tables({"a": torch.tensor([[0]]), "b": torch.tensor([[0]])})
        assert (found["a"] == 1).all() and (found["b"] == 2).all()


def test_what_freeze_leaves_alone(small, tmp_path):
    problem, weights, _ = small
    folder = ns.freeze(weights, problem, tmp_path / "100%s")
    (folder / "mine.pt").write_text("kept")
    with pytest.raises(TensorError, match="has files that freeze has not written, which would be lost: mine.pt"):
        ns.freeze(weights, problem, folder)
    assert (folder / "mine.pt").read_text() == "kept"
    (folder / "mine.pt").unlink()
    (tmp_path / "current").symlink_to(folder)
    ns.freeze(weights, problem, tmp_path / "current")
    assert (tmp_path / "current").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["100%s", "current"]


def test_closed_tables(small):
    tables = ns.serve(small[2])
    tables.close()
    tables.close()
    with pytest.raises(TensorError, match="were closed"):
        tables({"u": torch.zeros(1, 1, dtype=torch.int64), "i": torch.zeros(1, 1, dtype=torch.int64)})


@pytest.mark.parametrize("stored, dim, dtype, expected", [
    (torch.zeros(3, 12, dtype=torch.uint8), 16, "int8", r"bytes \[rows, 20\] of rows of 16 columns in int8"),
    (torch.zeros(3, 12, dtype=torch.uint8), 8, "int4", r"bytes \[rows, 8\] of rows of 8 columns in int4"),
    (torch.zeros(12, dtype=torch.uint8), 12, "fp8", r"bytes \[rows, 12\]"),
    (torch.zeros(3, 12), 12, "fp8", r"found torch.float32"),
    (torch.zeros(3, 12, dtype=torch.uint8), 12, "int2", r"expected a type of f32, .*found 'int2'"),
])
def test_bytes_that_are_not_of_the_type_are_refused(stored, dim, dtype, expected):
    with pytest.raises(ns.TensorError, match=expected):
        dequantize(stored, dim, dtype)
