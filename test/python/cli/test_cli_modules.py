"""Torch modules as workloads of the commands."""

import pytest

import neuroshard as ns
from support.commands import make_runner


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return make_runner(capsys, tmp_path)


MODEL = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.user = torch.nn.EmbeddingBag(500, 16, mode='sum', device='meta')
"""


def test_plan_of_a_torch_module(run, tmp_path):
    (tmp_path / "model.py").write_text(
        MODEL + "        self.item = torch.nn.EmbeddingBag(300, 8, mode='mean', device='meta')\n")
    found = run("plan", "model.py:Model", "--topology", "2xCPU", "--batch", 64, "--optimizer", "adam",
                "--mean-pooling", "item=5", "--json").json
    assert {(one["table"], one["cols"][1]) for one in found["plan"]["shards"]} >= {("user", 16)}
    for command in (["plan"], ["compare", "--torchrec"]):
        both = run(*command, "model.py:Model", "--topology", "2xCPU", "--batch", 64, "--mean-pooling", 5,
                   "--mean-pooling", "item=20")
        assert both.code == 1 and "expected either one number for all features, or feature=number" in both.err
    other = run("compare", "--torchrec", "model.py:Model", "--topology", "2xCPU", "--batch", 64, "--mean-pooling", "item=5")
    assert other.code == 1 and "the model has no module that one of the sharders takes" in other.err
    (tmp_path / "dense.py").write_text("import torch\nmodel = lambda: torch.nn.Linear(2, 2)\n")
    dense = run("plan", "dense.py:model", "--topology", "2xCPU", "--batch", 64)
    assert dense.code == 1 and "dense.py:model: a Linear without tables" in dense.err
    without = run("plan", "model.py:Model", "--topology", "2xCPU")
    assert without.code == 1 and "--batch" in without.err


def test_plan_of_all_tables_of_a_torch_module(run, tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\n"
        "def bags():\n"
        "    from torchrec import EmbeddingBagCollection, EmbeddingBagConfig\n"
        "    return EmbeddingBagCollection(device='meta', tables=[EmbeddingBagConfig(\n"
        "        name='t', num_embeddings=9, embedding_dim=4, feature_names=['f'])])\n"
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.bag = torch.nn.EmbeddingBag(500, 16, mode='sum', device='meta')\n"
        "        self.row = torch.nn.Embedding(300, 8, device='meta')\n"
        "class Mixed(Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.bags = bags()\n")
    found = run("plan", "model.py:Model", "--topology", "2xCPU", "--batch", 64, "--json").json
    assert {one["table"] for one in found["plan"]["shards"]} == {"bag", "row"}
    mixed = run("plan", "model.py:Mixed", "--topology", "2xCPU", "--batch", 64, "--json",
                "--mean-pooling", "bags/f=3", "--mean-pooling", "row=2").json
    assert {one["table"] for one in mixed["plan"]["shards"]} == {"bag", "row", "bags.t"}
    one = run("plan", "model.py:bags", "--topology", "2xCPU", "--batch", 64, "--json").json
    assert {shard["table"] for shard in one["plan"]["shards"]} == {"t"}


def test_what_if_and_profile_of_a_torch_module(run, tmp_path):
    """--cluster names the devices, and statistics need none."""
    (tmp_path / "model.py").write_text(
        MODEL + "def batches():\n"
        "    return [{'user': torch.zeros(64, 3, dtype=torch.int64)}]\n")
    cases = run("what-if", "model.py:Model", "--batch", 64, "-c", "2xCPU", "--json").json["cases"]
    assert cases[0]["cost_ms"] > 0
    done = run("profile", "model.py:Model", "model.py:batches", "--batch", 64, "-o", "made.json")
    assert done.code == 0, done.err
    assert ns.ShardingProblem.load(tmp_path / "made.json").features[0].mean_pooling == 3
