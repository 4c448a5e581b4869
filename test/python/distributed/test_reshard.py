"""A running model moves to other plans on 2 and 4 ranks. Each number of ranks is one job; cases are in
distributed_reshard.py, distributed_reshard_errors.py and, of the monitor that advises a move,
distributed_monitor.py."""

import os

import pytest
import torch

import neuroshard as ns
from distributed_models import COUNT, lone, make_problem
from support import matrix
from support.ranks import Ranks, chosen_cases

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
NUMBERS = {2: COUNT if ALL else 3, 4: 6 if ALL else 1}


def drawn(ranks):
    numbers = matrix.sample(range(COUNT), NUMBERS[ranks], f"reshard {ranks}")
    return [f"reshard.random:number={one}" for one in numbers]


CASES = {
    1: ["reshard.random:number=1:tiers=1:moves=1"],
    2: ["monitor.advice", "monitor.no_advice", "monitor.other_ids", "monitor.wrong_ids", *drawn(2), "reshard.random:number=4:tiers=1", "reshard.blocks:number=5",
        "reshard.catch_up", "reshard.same_object", "reshard.settings", "reshard.unpooled",
        *(f"reshard.semantics:source={one}:target={other}" for one in ("exact", "per_shard")
          for other in ("exact", "per_shard")),
        "reshard_errors.refused", "reshard_errors.of_one_rank", "reshard_errors.under_way",
        "reshard_errors.broken"],
    4: [*drawn(4), "reshard.blocks:number=12", "reshard.other_ranks:number=4", "reshard.other_ranks:number=2",
        "reshard.catch_up", "reshard.never_moved", "reshard.planned", "reshard_errors.groups"],
}


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """By number of ranks, the selected cases."""
    folder = tmp_path_factory.mktemp("reshard")
    return {ranks: Ranks(ranks, cases, folder,
                         environment={"NEUROSHARD_CACHE": str(folder / "cache")},
                         modules=("neuroshard.distributed", "torch.distributed.checkpoint",
                                  "torch._dynamo"))
            for ranks, cases in chosen_cases(request, CASES).items()}


def test_without_process_group(tmp_path, monkeypatch):
    """One rank needs no torch.distributed: a table goes to disk, and back."""
    monkeypatch.setenv("NEUROSHARD_CACHE", str(tmp_path))
    problem, plan = lone(make_problem(1, 1))
    tables = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.5, threads=1)
    before = {shard.table: shard.weights.clone() for shard in tables.local_shards()}
    on_disk = plan.replace(shards=[one.replace(tier="ssd", cache_rows=32) for one in plan.shards])
    for target in (on_disk, plan):
        figures = tables.reshard(target)
        assert figures.bytes == 0 and figures.copied_bytes[0] > 0
        assert len(tables.caches()) == (len(before) if target is on_disk else 0)
        for shard in tables.local_shards():
            assert torch.equal(shard.weights, before[shard.table]), shard.table
    tables.close()


@pytest.mark.parametrize(("ranks", "case"),
                         [(ranks, case) for ranks, cases in CASES.items() for case in cases])
def test_ranks(runs, ranks, case):
    runs[ranks].check(case)
