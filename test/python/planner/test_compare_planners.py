"""TorchRec's own planner and ours on one model, priced by both ratings."""

import pytest

torch = pytest.importorskip("torch")
torchrec = pytest.importorskip("torchrec")

from torchrec.distributed.planner.types import ParameterConstraints  # noqa: E402

import neuroshard as ns  # noqa: E402
from neuroshard.planning import inspect_as_if_allowed  # noqa: E402
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


def test_a_rule_that_is_broken_changes_no_price():
    """TorchRec replicates the small table, which our rules only allow where its constraints name that type."""
    model = torch.nn.Module()
    model.bags = torchrec.EmbeddingBagCollection(device=torch.device("meta"), tables=[
        torchrec.EmbeddingBagConfig(name=name, num_embeddings=rows, embedding_dim=dim, feature_names=[f"{name}_id"])
        for name, rows, dim in (("big", 1_000_000, 64), ("small", 100, 16))])
    named = {"small": ParameterConstraints(sharding_types=["data_parallel", "table_wise", "row_wise", "column_wise"])}
    broken, allowed = (compare_planners(model, "8xH100", 1024, constraints=one).entry("TorchRec's planner")
                       for one in (None, named))
    assert broken.plan == allowed.plan and broken.plan.shards_of("bags.small")[0].replicated
    assert len(broken.broken) == 1 and allowed.broken == ()
    assert (broken.cost_ms, broken.peak_bytes) == (allowed.cost_ms, allowed.peak_bytes)


@pytest.mark.parametrize("topology", ["4xCPU@64MiB", "2x2xH100@64MiB"])
@pytest.mark.parametrize("target", ["native", "torchrec-1.9"])
def test_lifted_rules_leave_every_cost_as_it_is(topology, target):
    """Of a plan that breaks a pin, a kind and its device's memory, beside the problem without these."""
    ruled = ns.ShardingProblem(
        tables=[ns.Table("a", 1_000_000, 64, optimizer=ns.Optimizer("adagrad")), ns.Table("b", 2000, 64)],
        features=[ns.Feature("x", "a", mean_pooling=7), ns.Feature("y", "b")], batch=512, topology=topology,
        target=target, constraints=ns.Constraints(pins={"b": 0}, tables=[ns.TableRule("a", ["column_wise"])]))
    free = ruled.replace(topology=topology.replace("@64MiB", ""), constraints=ns.Constraints())
    plan = ns.Plan(device_count=4, shards=[
        *(ns.Shard(table="a", rows=(250_000 * i, 250_000 * (i + 1)), cols=(0, 64), devices=i) for i in range(4)),
        ns.Shard(table="b", rows=(0, 2000), cols=(0, 64), devices=range(4))])
    assert len(plan.check(ruled)) >= 4
    expected, found = ns.inspect(free, plan), inspect_as_if_allowed(ruled, plan)
    assert found.breakdown == expected.breakdown
    assert found.memory.peak_bytes == expected.memory.peak_bytes


def test_rules_of_torchrec_are_lifted_and_shapes_are_not():
    """Blocks of rows that TorchRec has no form for have costs; rows that no shard has do not."""
    problem = ns.ShardingProblem(tables=[ns.Table("a", 100, 64)], features=[ns.Feature("x", "a")], batch=512,
                                 topology="2xCPU", target="torchrec-1.9")

    def halves(middle, begin):
        return ns.Plan(device_count=2, shards=[ns.Shard(table="a", rows=(0, middle), cols=(0, 64), devices=0),
                                               ns.Shard(table="a", rows=(begin, 100), cols=(0, 64), devices=1)])
    with pytest.raises(ns.InvalidPlan, match="blocks? .*must begin at row 50"):
        ns.inspect(problem, halves(40, 40))
    even = ns.inspect(problem, halves(50, 50)).cost_ms
    assert inspect_as_if_allowed(problem, halves(50, 50)).cost_ms == even
    assert 0.5 * even < inspect_as_if_allowed(problem, halves(40, 40)).cost_ms < 2 * even
    with pytest.raises(ns.InvalidPlan, match="covers"):
        inspect_as_if_allowed(problem, halves(40, 45))


def test_the_command_prints_what_the_api_finds(capsys, tmp_path):
    run = make_runner(capsys, tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    done = run("compare", "--torchrec", f"{tmp_path}/model.py:Model", "--topology", "4xH200", "--batch", 2048)
    assert done.code == 0 and "TorchRec's rating, ms" in done.out and "NeuroShard" in done.out
    for arguments, message in ((["--topology", "4xH200"], "add --batch"),
                               (["--topology", "4xH200", "--batch", 7], "expected a multiple of the 4 devices")):
        refused = run("compare", "--torchrec", f"{tmp_path}/model.py:Model", *arguments)
        assert refused.code == 1 and message in refused.err
