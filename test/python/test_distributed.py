"""Sharded modules on 1, 2, 4 and 8 ranks of torchrun: training against torch, forms of ids,
torch's own machinery, wrong input. Each number of ranks is one torchrun; cases are in
distributed_*.py."""

import os

import pytest
import torch

import neuroshard as ns
from distributed_models import COUNT, lone, make_problem
from support import matrix
from support.ranks import Ranks

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
# Of each number of ranks, how many problems are drawn.
POOLED = {1: 1, 2: 3, 4: 2, 8: 1}
UNPOOLED = {1: 1, 2: 1, 4: 1, 8: 1}


def drawn(ranks):
    numbers = matrix.sample(range(COUNT), POOLED[ranks], f"distributed {ranks}")
    unpooled = matrix.sample(range(COUNT), UNPOOLED[ranks], f"unpooled {ranks}")
    repeated = numbers if ALL else numbers[:1]
    return [*(f"training.matrix:number={one}" for one in numbers),
            *(f"training.matrix:number={one}:unpooled=1" for one in unpooled),
            *(f"training.same_bits:number={one}" for one in repeated)]


CONVENTIONS = [f"steps.convention:optimizer={one}"
               for one in ("sgd", "adagrad", "rowwise_adagrad", "adam")]
COMPILED = [f"torch.compile:backend={backend}:kind={kind}" for backend in ("eager", "aot_eager")
            for kind in ("pooled", "weighted", "unpooled")]
OTHERS = {
    1: ["torch.compile:backend=inductor:kind=pooled", "torch.opcheck", "torch.copies",
        "torch.closed", "torch.export:kind=pooled", "errors.forms", "errors.ids_of_one_rank",
        CONVENTIONS[1], "steps.modes", "steps.orders", "steps.pending"],
    2: ["training.cuts", "inputs.forms", "inputs.torchrec:pooling=SUM", "inputs.torchrec:pooling=MEAN",
        "inputs.torchrec:pooling=SUM:weighted=1", "inputs.torchrec_unpooled", "inputs.bags",
        "errors.ids_of_one_rank", "errors.forms", "errors.weights", "errors.construction",
        "errors.disagreement", "torch.overlap", "torch.closed", *COMPILED, *(
        f"torch.export:kind={kind}" for kind in ("pooled", "weighted", "unpooled")),
        "training.seeds", *CONVENTIONS, "steps.convention:optimizer=sgd:division=0", "steps.modes",
        "steps.orders", "steps.pending", "steps.two_collections", "steps.searched",
        "steps.unread_result"],
    4: ["errors.ids_of_one_rank", "errors.disagreement", CONVENTIONS[2], "steps.convention:optimizer=adam:division=0", "steps.subgroups",
        "steps.searched"],
    8: [CONVENTIONS[3]],
}
CASES = {ranks: [*drawn(ranks), *OTHERS[ranks]] for ranks in POOLED}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distributed")
    environment = {"NEUROSHARD_CACHE": str(folder / "cache")}
    return {ranks: Ranks(ranks, cases, folder, environment=environment)
            for ranks, cases in CASES.items()}


@pytest.mark.parametrize(("ranks", "case"),
                         [(ranks, case) for ranks, cases in CASES.items() for case in cases])
def test_ranks(runs, ranks, case):
    runs[ranks].check(case)


def test_without_process_group(tmp_path, monkeypatch):
    """One rank needs no torch.distributed; more say what is missing."""
    monkeypatch.setenv("NEUROSHARD_CACHE", str(tmp_path))
    problem, plan = lone(make_problem(1, 1))
    tables = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.5, threads=2)
    before = [shard.weights.clone() for shard in tables.local_shards()]
    out = tables({name: torch.zeros(3, 2, dtype=torch.int64) for name in tables.features})
    sum(one.float().sum() for one in out.values()).backward()
    assert tables.step == 1
    for old, shard in zip(before, tables.local_shards(), strict=True):
        assert not torch.equal(old[0], shard.weights[0]), shard.table
        assert torch.equal(old[1:], shard.weights[1:]), shard.table
    tables.close()
    two = problem.replace(topology="2xCPU")
    with pytest.raises(ValueError, match="for 2 devices, but there are 1 ranks; torch.distributed "
                       "is not initialised"):
        ns.ShardedEmbeddingBagCollection(ns.plan(two).plan, two, learning_rate=0.5)
