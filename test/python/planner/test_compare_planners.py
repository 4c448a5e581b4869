"""TorchRec's own planner and ours on one model, priced by both ratings."""

import pytest

torch = pytest.importorskip("torch")
torchrec = pytest.importorskip("torchrec")

from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder  # noqa: E402
from torchrec.distributed.planner.types import ParameterConstraints  # noqa: E402
from torchrec.distributed.sharding_plan import get_default_sharders  # noqa: E402

import neuroshard as ns  # noqa: E402
from neuroshard.planning import inspect_as_if_allowed  # noqa: E402
from neuroshard.torchrec import (NeuroShardPlanner, PlannerComparison, PlannerEntry, compare_planners,  # noqa: E402
                                 torchrec_topology)
from neuroshard.torchrec._comparison import Pricer  # noqa: E402
from neuroshard.torchrec._ids_per_sample import with_ids_per_sample  # noqa: E402
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
    for line, one in zip(str(found).splitlines()[1:], found.entries, strict=False):
        assert f"{one.cost_ms:.3f}" in line


def test_the_rating_is_the_one_that_torchrec_prints_of_its_plan():
    """Of tables that lie whole, on one rank: the sum of TorchRec's estimates of every shard."""
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator

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


def test_a_rule_that_several_tables_break_is_one_line():
    """Their names stand in it; data has a line for each."""
    rule, other = "is sharded otherwise: for a reason", "device 0 has 4 GiB"
    lines = tuple(f"breaks a rule: table '{name}': {rule}" for name in ("a", "b: c", "d", "e", "f"))
    for broken, expected in ((lines, [f"each of the tables 'a', 'b: c', 'd' and 2 more: {rule}"]),
                             (lines[:2], [f"each of the tables 'a' and 'b: c': {rule}"]),
                             ((lines[0], f"breaks a rule: {other}", lines[3]),
                              [f"each of the tables 'a' and 'e': {rule}", other]),
                             ((lines[1], f"breaks a rule: table 'a': {other}"), [f"table 'b: c': {rule}", f"table 'a': {other}"])):
        entry = PlannerEntry(name="NeuroShard", plan=None, cost_ms=None, torchrec_ms=None, peak_bytes=None, seconds=1,
                             failure="", broken=broken)
        problem = ns.ShardingProblem(tables=[ns.Table("a", 100, 64)], features=[ns.Feature("x", "a")], batch=512,
                                     topology="2xCPU")
        said = str(PlannerComparison(problem=problem, entries=(entry,))).splitlines()[2:]
        assert said == [f"  NeuroShard: breaks a rule: {one}" for one in expected] and entry.broken == broken


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


def mean_pooled_model(rows=60_000_000):
    """rows: of the table with mean pooling. TorchRec's planner copies the small ones."""
    model = torch.nn.Module()
    model.bags = torchrec.EmbeddingBagCollection(device=torch.device("meta"), tables=[
        torchrec.EmbeddingBagConfig(name=name, num_embeddings=count, embedding_dim=dim, feature_names=features,
                                    pooling=torchrec.PoolingType[pooling])
        for name, count, dim, features, pooling in (
            ("ad", rows, 128, ["ad_id", "last_ads"], "MEAN"), ("user", 120_000_000, 128, ["user_id"], "SUM"),
            ("os", 100, 16, ["os"], "SUM"))])
    model.seq = torchrec.EmbeddingCollection(device=torch.device("meta"), tables=[
        torchrec.EmbeddingConfig(name="cat", num_embeddings=300, embedding_dim=64, feature_names=["clicked"])])
    return model


def test_each_broken_rule_says_its_reason():
    found = compare_planners(mean_pooled_model(200_000_000), "4xH100", 1024, evaluation_budget=50)
    theirs = found.entry("TorchRec's planner")
    kinds = {table.name: kind_in(theirs.plan, table) for table in found.problem.tables}
    assert kinds == {"bags.ad": "rows", "bags.user": "rows", "bags.os": "copy", "seq.cat": "copy"}
    reasons = {"bags.ad": "TorchRec computes wrong results of mean-pooled tables",
               "bags.os": "data_parallel among the sharding_types",
               "seq.cat": "TorchRec loses rows of replicated tables without pooling"}
    assert len(theirs.broken) == len(reasons)
    for line, (table, reason) in zip(theirs.broken, reasons.items()):
        assert f"table '{table}'" in line and reason in line
    # Rows of it may not be cut, and TorchRec's planner does not cut 128 columns by itself.
    assert "shards of 128 where constraints have no min_partition" in found.entry(
        "TorchRec's planner, same rules").failure


@pytest.mark.parametrize(("topology", "optimizer", "widths"), [
    ("4xH100", None, {"ad": ParameterConstraints(min_partition=32)}), ("8xH100", "rowwise_adagrad", None)])
def test_a_row_of_torchrec_keeps_the_rules(topology, optimizer, widths):
    rows = 200_000_000 if widths else 60_000_000
    found = compare_planners(mean_pooled_model(rows), topology, 1024, optimizer=optimizer, constraints=widths,
                             evaluation_budget=50)
    same = found.entry("TorchRec's planner, same rules")
    assert same.broken == () and same.failure == "" and same.cost_ms > 0
    assert same.plan.check(found.problem) == () and bool(found.entry("TorchRec's planner").broken) == bool(widths)
    assert [one.name for one in found.entries] == ["TorchRec's planner", "TorchRec's planner, same rules", "NeuroShard"]


def kind_in(plan, table):
    shards = plan.shards_of(table.name)
    if shards[0].replicated:
        return "copy"
    return "rows" if any(one.row_count < table.rows for one in shards) else "columns" if len(shards) > 1 else "whole"


def test_states_of_column_cuts_are_a_rule_that_an_argument_lifts():
    """And they do not hide the other rules that are broken."""
    only = {"user": ParameterConstraints(sharding_types=["column_wise", "row_wise"])}
    pricer = Pricer(mean_pooled_model(), get_default_sharders(), exact_problem(only), 1024, "auto", only)
    lines = pricer.broken(ns.Plan(device_count=8, shards=[
        *rows_on("bags.ad", 60_000_000, 128, 8), ns.Shard(table="bags.os", rows=(0, 100), cols=(0, 16), devices=1),
        *(ns.Shard(table="bags.user", rows=(0, 120_000_000), cols=(64 * i, 64 * i + 64), devices=i) for i in (0, 1)),
        ns.Shard(table="seq.cat", rows=(0, 300), cols=(0, 64), devices=0)]),
        {"bags.ad": "row_wise", "bags.os": "table_wise", "bags.user": "column_wise", "seq.cat": "table_wise"})
    assert len(lines) == 2 and "per_shard_state=True sets it" in lines[0] and "bags.user" in lines[0]
    assert "bags.ad" in lines[1] and "mean-pooled" in lines[1]


def exact_problem(constraints):
    planner = NeuroShardPlanner("8xH100", 1024, constraints, optimizer="rowwise_adagrad", evaluation_budget=50,
                                progress=False)
    planner.plan(mean_pooled_model(), get_default_sharders())
    return planner.problem


def rows_on(name, rows, dim, devices):
    step = rows // devices
    return [ns.Shard(table=name, rows=(step * i, step * (i + 1)), cols=(0, dim), devices=i) for i in range(devices)]


def test_ids_per_sample_reach_all_planners():
    """From one number, from names of three forms and from a profiled problem, in costs and in TorchRec's rating."""
    model = mean_pooled_model()
    options = {"topology": "8xH100", "batch_size": 1024, "evaluation_budget": 50}
    named = {"bags.ad/ad_id": 2, "bags/last_ads": 6, "user_id": 3.5}
    found = compare_planners(model, mean_pooling=named, **options)
    ids = {one.name: one.mean_pooling for one in found.problem.features}
    assert ids == {"bags.ad/ad_id": 2, "bags.ad/last_ads": 6, "bags.user/user_id": 3.5, "bags.os/os": 1,
                   "seq.cat/clicked": 1}
    profiled = ns.distributed.problem_of(model, batch=8192, mean_pooling={
        "bags/ad_id": 4, "bags/last_ads": 12, "bags/user_id": 7, "bags/os": 2, "seq/clicked": 2})
    profiled = profiled.replace(features=[one.replace(presence=0.5) for one in profiled.features])
    again = compare_planners(model, profiled=profiled, **options)
    assert again.problem == found.problem
    assert [one.torchrec_ms for one in again.entries] == [one.torchrec_ms for one in found.entries]
    one = compare_planners(model, **options)
    assert all(many.torchrec_ms > few.torchrec_ms for many, few in zip(found.entries, one.entries))
    both = compare_planners(model, profiled=profiled, mean_pooling={"os": 9}, **options)
    assert [feature.mean_pooling for feature in both.problem.features] == [2, 6, 3.5, 9, 1]
    with pytest.raises(ValueError, match="there is no feature 'bags/last_ad'; did you mean 'bags/last_ads'"):
        compare_planners(model, mean_pooling={"bags/last_ad": 6}, **options)
    with pytest.raises(ValueError, match='no feature "clicked" of table "seq.cat"'):
        compare_planners(model, profiled=profiled.replace(features=profiled.features[:-1]), **options)


def test_ids_per_sample_stand_in_place_of_all_numbers_of_the_constraints():
    """Of num_poolings, too, by which planners multiply; and only of the tables that a sharder takes."""
    class Big(EmbeddingBagCollectionSharder):
        def shardable_parameters(self, module):
            return {name: one for name, one in super().shardable_parameters(module).items() if name != "os"}

    model = mean_pooled_model()
    given = {name: ParameterConstraints(pooling_factors=[3], num_poolings=[2]) for name in ("ad", "user", "os")}
    found = with_ids_per_sample(given, model, [Big()], {"ad_id": 5, "user_id": 7}, None)
    assert {name: (one.pooling_factors, one.num_poolings) for name, one in found.items()} == {
        "ad": ([5, 3], [1, 2]), "user": ([7], [1]), "os": ([3], [2])}
    for name in ("os", "clicked"):
        with pytest.raises(ValueError, match=f"there is no feature '{name}'"):
            with_ids_per_sample({}, model, [Big()], {name: 5}, None)
    profiled = ns.ShardingProblem(tables=[ns.Table("bags.ad", 9, 8), ns.Table("bags.user", 9, 8)], features=[
        ns.Feature(name, table, mean_pooling=4) for name, table in (
            ("bags/ad_id", "bags.ad"), ("bags/last_ads", "bags.ad"), ("bags/user_id", "bags.user"))], batch=8)
    assert with_ids_per_sample({}, model, [Big()], None, profiled)["ad"].pooling_factors == [4, 4]


def test_the_command_prints_what_the_api_finds(capsys, tmp_path):
    run = make_runner(capsys, tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    done = run("compare", "--torchrec", f"{tmp_path}/model.py:Model", "--topology", "4xH200", "--batch", 2048)
    assert done.code == 0 and "TorchRec's rating, ms" in done.out and "NeuroShard" in done.out
    assert "all take 1 id per sample for 4 of 4 features" in done.out
    workload = tmp_path / "profiled.json"
    names = {}
    exec(MODEL, names)
    # One id per sample is no assumption where that was measured, or said.
    ns.distributed.problem_of(names["Model"](), batch=2048, mean_pooling=1).save(workload)
    for given in (["--mean-pooling", "5"], ["--mean-pooling", "1"], ["--profiled", workload]):
        done = run("compare", "--torchrec", f"{tmp_path}/model.py:Model", "--topology", "4xH200", "--batch", 2048, *given)
        assert done.code == 0 and "1 id per sample" not in done.out
    for arguments, message in ((["--topology", "4xH200"], "add --batch"),
                               (["--topology", "4xH200", "--batch", 7], "expected a multiple of the 4 devices")):
        refused = run("compare", "--torchrec", f"{tmp_path}/model.py:Model", *arguments)
        assert refused.code == 1 and message in refused.err
