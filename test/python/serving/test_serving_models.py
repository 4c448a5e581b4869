"""A whole model, trained by shard_model and saved, is frozen into one folder that answers for its collections as
TorchRec's own modules do, from Python and by the C functions."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import neuroshard as ns
from neuroshard._table_keys import keys_of_tables
from neuroshard.errors import CheckpointError, TensorError
from support.commands import make_runner
from support.torchrec_models import draw

warnings.filterwarnings("ignore")

from torchrec import KeyedJaggedTensor  # noqa: E402

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
MODEL = '''
import torch
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, EmbeddingCollection, EmbeddingConfig, PoolingType

class Model(torch.nn.Module):
    """Collections whose tables and features have the same names."""

    def __init__(self, device="meta"):
        super().__init__()
        bag = EmbeddingBagConfig
        self.bags = EmbeddingBagCollection(device=torch.device(device), tables=[
            bag(name="t0", num_embeddings=50, embedding_dim=8, feature_names=["f0", "f1"]),
            bag(name="t1", num_embeddings=30, embedding_dim=12, feature_names=["f1"], pooling=PoolingType.MEAN)])
        self.inner = torch.nn.ModuleDict({"weighted": EmbeddingBagCollection(
            device=torch.device(device), is_weighted=True,
            tables=[bag(name="t0", num_embeddings=40, embedding_dim=4, feature_names=["f0"])])})
        self.rows = EmbeddingCollection(device=torch.device(device), tables=[
            EmbeddingConfig(name="t0", num_embeddings=20, embedding_dim=8, feature_names=["f0"])])
        self.top = torch.nn.Linear(3, 1)

    def forward(self, bags, weighted, rows):
        found = [self.bags(bags).values(), self.inner["weighted"](weighted).values()]
        return sum(one.sum() for one in found) + self.rows(rows)["f0"].values().sum()
'''
TRAIN = """
import sys, torch, torch.distributed as dist, neuroshard as ns
from torchrec import KeyedJaggedTensor as Keyed
from model import Model
dist.init_process_group("gloo")
model = Model()
problem = ns.distributed.problem_of(model, batch=8, topology="2xCPU@4GiB")
views = ns.distributed.shard_model(model, ns.distributed.plan(problem), problem, learning_rate=0.1)
keyed = lambda keys, weights=None: Keyed(keys, torch.arange(4 * len(keys)), weights, lengths=torch.ones(4 * len(keys)).int())
model(keyed(["f0", "f1"]), keyed(["f0"], torch.ones(4)), keyed(["f0"])).backward()
ns.distributed.save(sys.argv[1] + "/run", {"model": model})
whole = ns.distributed.full_state_dict(model)
if dist.get_rank() == 0:
    torch.save(whole, sys.argv[1] + "/whole.pt")
views["bags"].close()
dist.destroy_process_group()
"""
PATHS = ("bags", "inner.weighted", "rows")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a checkpoint of two ranks and of the model's code, and TorchRec's model with its weights."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "model.py").write_text(MODEL)
    (folder / "train.py").write_text(TRAIN)
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                           folder / "train.py", folder], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python"), "OMP_NUM_THREADS": "1",
                               "NEUROSHARD_CACHE": str(folder / "cache")})
    assert done.returncode == 0, done.stderr[-3000:]
    names = {}
    exec(MODEL, names)  # noqa: S102
    model = names["Model"]("cpu")
    model.load_state_dict(torch.load(folder / "whole.pt"), strict=False)
    return folder, model


@pytest.fixture(scope="module")
def frozen(trained):
    folder, model = trained
    problem = ns.distributed.problem_of(model, batch=1)
    return ns.freeze(folder / "run", problem, folder / "frozen", dtype="f32")


def draw_all(model, seed):
    generator = torch.Generator().manual_seed(seed)
    return {"bags": draw(model.bags.embedding_bag_configs(), generator, 3),
            "inner.weighted": draw(model.inner["weighted"].embedding_bag_configs(), generator, 3, weighted=True),
            "rows": draw(model.rows.embedding_configs(), generator, 3)}


def torchs(model, given):
    """What TorchRec's modules give, as {path: {feature: values}}."""
    modules = {"bags": model.bags, "inner.weighted": model.inner["weighted"], "rows": model.rows}
    return {path: {name: one if path != "rows" else one.values() for name, one in (
        modules[path](ids).to_dict() if path != "rows" else modules[path](ids)).items()} for path, ids in given.items()}


def assert_same(found, wanted):
    assert {path: list(one) for path, one in found.items()} == {path: list(one) for path, one in wanted.items()}
    for path, results in wanted.items():
        for name, value in results.items():
            torch.testing.assert_close(found[path][name], value.detach(), rtol=0, atol=1e-5)


def by_feature(ids):
    return {key: (one.values(), one.offsets(), *([] if one.weights_or_none() is None else [one.weights()]))
            for key, one in ids.to_dict().items()}


def test_collections_are_looked_up_together_and_apart(trained, frozen):
    model = trained[1]
    with ns.serve(frozen) as tables:
        assert tables.collections == PATHS
        for seed in range(3):
            given = draw_all(model, seed)
            wanted = torchs(model, given)
            for one in (given, dict(reversed(given.items())), given | {"bags": given["bags"].permute([1, 0])},
                        {path: by_feature(ids) for path, ids in given.items()}):
                assert_same(tables(one), {path: wanted[path] for path in one})
            for path in PATHS:
                assert_same(tables({path: given[path]}), {path: wanted[path]})
                assert_same(tables({path: by_feature(given[path])}), {path: wanted[path]})
            two = {path: given[path] for path in ("rows", "bags")}
            assert_same(tables(two), {path: wanted[path] for path in two})
        even = {"bags": {"f0": torch.tensor([[1, 2]]), "f1": torch.tensor([[3]])}}
        for path in ({}, {"rows": {"f0": torch.tensor([[4]])}}):
            found = tables(even | path)["bags"]
            torch.testing.assert_close(found["f0"], model.bags.embedding_bags["t0"].weight[1:3].sum(0)[None].detach())


def test_features_have_the_names_of_the_problem(trained, frozen):
    """In a flat dict, and for the C functions, which know no collections."""
    model = trained[1]
    given = draw_all(model, 5)
    names = {"bags/f0": "f0", "bags/f1@bags.t0": "f1@t0", "bags/f1@bags.t1": "f1@t1"}
    with ns.serve(frozen) as tables:
        assert tables.features == (*names, "inner.weighted/f0", "rows/f0")
        flat = {f"{path}/{key}": value for path, ids in given.items() for key, value in by_feature(ids).items()}
        found, wanted = tables(flat), tables(given)
        assert all(torch.equal(found[whole], wanted["bags"][own]) for whole, own in names.items())
        assert torch.equal(found["rows/f0"], wanted["rows"]["f0"])
        shared = {"bags/f1": flat["bags/f1"]}  # is of all features, too, of which the others lack
        with pytest.raises(TensorError, match="input \"ids\": expected the features .*'bags/f0'"):
            tables(shared)


def test_a_checkpoint_is_not_served(trained):
    with pytest.raises(TensorError, match="expected a folder that neuroshard.freeze has written, found a checkpoint; "
                                          "make such a folder of its tables by ns.freeze"):
        ns.serve(trained[0] / "run")


def test_wrong_calls(trained, frozen):
    model = trained[1]
    given = draw_all(model, 1)
    weighted = draw(model.rows.embedding_configs(), torch.Generator().manual_seed(1), 3, weighted=True)
    bags = given["bags"]
    cases = (({"bag": bags}, "expected collections of bags, inner.weighted, rows, found 'bag'"),
             (given | {"dense": bags}, "expected collections of bags, inner.weighted, rows, found 'dense'"),
             ({}, "expected {path: features} with paths of bags, inner.weighted, rows"),
             (bags, "expected {path: features} with paths of bags"),
             (3, "expected {path: features} with paths of bags"),
             (given | {"rows": 3}, "input \"rows\": expected a Jagged"),
             ({"rows": {"f0": 3}}, "feature \"rows/f0\": expected ids"),
             ({"bags": {"f0": torch.tensor([[1]])}}, "collection \"bags\": expected the features"),
             ({"bags": bags.permute([0])}, "there is no f1"),
             ({"inner.weighted": given["rows"]}, "collection \"inner.weighted\": expected a weight for each of"),
             (given | {"rows": KeyedJaggedTensor(["f0"], torch.tensor([1]), lengths=torch.tensor([1]))},
              f"expected as many bags of each feature, found {bags.stride()} of \"bags/f0\" and 1 of \"rows/f0\""),
             ({"rows": ns.distributed.Jagged(torch.tensor([1, 2]), torch.tensor([0, 1]))},
              "collection \"rows\": expected offsets from 0 to 2"),
             ({"rows": (torch.tensor([1]), torch.tensor([0, 1]), torch.ones(1))},
              "collection \"rows\": expected no weights"))
    with ns.serve(frozen) as tables:
        for ids, message in cases:
            with pytest.raises(TensorError, match=re.escape(message)):
                tables(ids)
        assert_same(tables(given), torchs(model, given))
        assert_same(tables({"rows": weighted}), torchs(model, {"rows": weighted}))


def test_sources_of_a_whole_model(trained, frozen):
    """A state dict and the module itself give what the checkpoint gives; and one collection can be frozen alone."""
    folder, model = trained
    problem = ns.distributed.problem_of(model, batch=1)
    expected = [(frozen / f"weights{index}.bin").read_bytes() for index in range(4)]
    for number, source in enumerate((model, folder / "whole.pt")):
        made = ns.freeze(source, problem, folder / f"again{number}", dtype="f32")
        assert [(made / f"weights{index}.bin").read_bytes() for index in range(4)] == expected
    own = problem.replace(tables=[problem.table("inner.weighted.t0")], features=[
        one for one in problem.features if one.table == "inner.weighted.t0"])
    with ns.serve(ns.freeze(folder / "run", own, folder / "one", dtype="f32")) as tables:
        given = {"inner.weighted": draw_all(model, 2)["inner.weighted"]}
        assert_same(tables(given), torchs(model, given))
    with pytest.raises(CheckpointError, match="expected one key that ends in t0.weight, found several: .*in a problem "
                                              "of the whole model tables have the paths of their collections"):
        ns.freeze(folder / "run", ns.distributed.problem_of(model.bags, batch=1), folder / "wrong")
    other = own.replace(tables=[ns.Table("other.t0", 40, 4)], features=[ns.Feature("other/f0", "other.t0")])
    with pytest.raises(CheckpointError, match="ends in other.t0.weight, found none; there are .*bags.embedding_bags.t0"):
        ns.freeze(folder / "run", other, folder / "wrong")


def test_the_command_freezes_a_model(trained, frozen, capsys, monkeypatch):
    """WORKLOAD may be the function that makes the model, of any batch."""
    folder, _ = trained
    monkeypatch.chdir(folder)
    done = make_runner(capsys, folder)("freeze", "run", "model.py:Model", "-o", "made", "--dtype", "f32")
    assert done.code == 0 and "wrote 4 tables" in done.out, done.err
    assert all((folder / "made" / path.name).read_bytes() == path.read_bytes() for path in frozen.glob("weights*"))


def test_keys_of_tables():
    """The longest name, with what a collection has between; single modules with _ in place of dots, where nothing
    else is there."""
    keys = ["m.bags.embedding_bags.t.weight", "m.more.bags.embedding_bags.t.weight", "m.rows.embeddings.t.weight",
            "m.tower.user.weight", "m.a_b.embedding_bags.x_y.weight", "m.x.y.weight", "top.0.weight",
            "m.bags.embedding_bags.t.momentum"]
    assert keys_of_tables(["bags.t", "more.bags.t", "rows.t", "tower_user", "x_y", "none"], keys) == {
        "bags.t": keys[:1], "more.bags.t": keys[1:2], "rows.t": keys[2:3], "tower_user": keys[3:4], "x_y": keys[4:5],
        "none": []}
    assert keys_of_tables(["t"], keys[:3]) == {"t": keys[:3]}
    assert keys_of_tables(["user", "super.user"], ["user.weight", "m.user.weight", "m.super.user.weight"]) == {
        "user": ["user.weight"], "super.user": ["m.super.user.weight"]}
    assert keys_of_tables(["user", "bags_user"], ["bags.user.weight"]) == {"user": ["bags.user.weight"], "bags_user": []}
    assert keys_of_tables(["user", "bags_user"], ["user.weight", "bags.user.weight"]) == {
        "user": ["user.weight"], "bags_user": ["bags.user.weight"]}
    assert keys_of_tables(["embeddings"], ["m.embedding_bags.embeddings.weight"])["embeddings"]
