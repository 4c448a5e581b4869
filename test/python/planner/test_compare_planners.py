"""TorchRec's own planner and ours on one model, priced by both ratings."""

import pytest

torch = pytest.importorskip("torch")
torchrec = pytest.importorskip("torchrec")

import neuroshard as ns  # noqa: E402
from neuroshard.torchrec import compare_planners, torchrec_topology  # noqa: E402
from support.commands import make_runner  # noqa: E402

MODEL = """
import torch
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name, rows in (("users", (900_000, 300)), ("items", (50_000, 20))):
            setattr(self, name, EmbeddingBagCollection(device=torch.device("meta"), tables=[
                EmbeddingBagConfig(name=f"{name}{i}", num_embeddings=count, embedding_dim=64,
                                   feature_names=[f"{name}_f{i}"]) for i, count in enumerate(rows)]))
"""


def make_model():
    names = {}
    exec(MODEL, names)
    return names["Model"]()


def test_both_plans_have_both_prices():
    found = compare_planners(make_model(), "4xH200", 512)
    for one in found.entries:
        assert one.failure == "" and one.cost_ms > 0 and one.torchrec_ms > 0 and one.peak_bytes > 0
        assert {shard.table for shard in one.plan.shards} == {table.name for table in found.problem.tables}
    ours = found.entry("NeuroShard")
    assert ours.broken == ()
    assert ours.cost_ms == pytest.approx(ns.evaluate(found.problem, ours.plan).cost_ms)
    for line in str(found).splitlines()[1:3]:
        assert f"{found.entries[0].cost_ms:.3f}" in line or f"{ours.cost_ms:.3f}" in line


def test_the_rating_is_the_one_that_torchrec_prints_of_its_plan():
    """Of tables that lie whole, on one rank: the sum of TorchRec's estimates of every shard."""
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
    from torchrec.distributed.sharding_plan import get_default_sharders

    model = make_model()
    found = compare_planners(model, "1xH200", 256)
    enumerator = EmbeddingEnumerator(torchrec_topology(ns.Topology.parse("1xH200")), 256)
    options = enumerator.enumerate(model, get_default_sharders())
    expected = sum(shard.perf.total for option in options for shard in option.shards
                   if (option.sharding_type, option.compute_kernel) == ("table_wise", "fused"))
    plan = found.entry("NeuroShard").plan
    assert all(len(plan.shards_of(table.name)) == 1 for table in found.problem.tables)
    assert found.entry("NeuroShard").torchrec_ms == pytest.approx(expected)


def test_broken_rules_stand_beside_the_plan_of_torchrec():
    """By our terms reserves and exchanges leave no room: the plan has its prices and names the rule."""
    found = compare_planners(make_model(), "2xH200@4GiB", 512,
                             reserves=ns.Reserves(dense_bytes=3 * 2**30, fragmentation_bytes=0, communicator_bytes=0))
    narrow = compare_planners(make_model(), "2xH200@4GiB", 512,
                              reserves=ns.Reserves(dense_bytes=2**32, fragmentation_bytes=0, communicator_bytes=0))
    assert found.entry("NeuroShard").broken == ()
    theirs = narrow.entry("TorchRec's planner")
    assert theirs.cost_ms > 0 and theirs.torchrec_ms > 0 and any("has 4.0 GiB" in one for one in theirs.broken)
    assert "no plan" in narrow.entry("NeuroShard").failure and theirs.broken[0] in str(narrow)


def test_a_model_without_tables_is_told_once_what_has_some():
    """TorchRec has two modules of some names."""
    with pytest.raises(ns.errors.Unsupported, match="they take ") as error:
        compare_planners(torch.nn.Linear(2, 2), "4xH200", 512)
    names = str(error.value).split("they take ")[1].split(", ")
    assert "EmbeddingBagCollection" in names and len(names) == len(set(names))


def test_the_command_prints_what_the_api_finds(capsys, tmp_path):
    run = make_runner(capsys, tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    done = run("compare", "--torchrec", f"{tmp_path}/model.py:Model", "--topology", "4xH200", "--batch", 2048)
    assert done.code == 0 and "TorchRec's rating, ms" in done.out and "NeuroShard" in done.out
    for arguments, message in ((["--topology", "4xH200"], "add --batch"),
                               (["--topology", "4xH200", "--batch", 7], "expected a multiple of the 4 devices")):
        refused = run("compare", "--torchrec", f"{tmp_path}/model.py:Model", *arguments)
        assert refused.code == 1 and message in refused.err
