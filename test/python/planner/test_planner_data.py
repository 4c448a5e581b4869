"""The dataclasses of the planner: defaults, bad input, files, copies."""

import ast
import copy
import dataclasses
import inspect
import math
import pickle
import re

import pytest

import neuroshard as ns
from support.planning import ROOT, reference_task, small_problem

REUSE = (0.75, 0.25) + (0,) * 15


def full_problem():
    """Every field of the schema away from its default."""
    access = ns.Access(batch=2048, reuse=REUSE, row_mass=[ns.RowMass(0.1, 0.5)])
    return ns.ShardingProblem(
        tables=[ns.Table("a", 1000, 64, "bf16", ns.Optimizer(
            "adam", eps=1e-6, weight_decay=0.5, weight_decay_mode="decoupled"), True, access),
                ns.Table("b", 500, 32), ns.Table("c", 300, 16), ns.Table("d", 200, 8)],
        features=[ns.Feature("fa", "a", "mean", 3.5, 9, 0.5, 512, True, True),
                  ns.Feature("fb", "b"), ns.Feature("fc", "c"), ns.Feature("fd", "d")],
        batch=ns.Batch(1024, "i32", "f16", "bf16", 3),
        topology=ns.Topology(
            levels=[ns.Level(name="net", groups=[3], bandwidth_gb_per_s=5, latency_us=9),
                    ns.Level(name="node", groups=[2, 1], bandwidth_gb_per_s=50, latency_us=1)],
            devices=[ns.Device(device_class="CPU", memory_bytes="2GiB"),
                     ns.Device(device_class="CPU", memory_bytes=10**9),
                     ns.Device(device_class="H200", memory_bytes="1 GB", host=1)],
            hosts=[ns.Host(memory_bytes="8GiB"), ns.Host(
                memory_bytes="16GiB", disk=ns.Disk(bytes="4000 GB", reads_per_second=2e6,
                                                   bandwidth_gb_per_s=13.8))]),
        constraints=ns.Constraints(
            pins={"a": [0, 1]}, forbids={"b": 2}, co_locate=[("b", "c")],
            separate=[("a", "b")],
            tables=[ns.TableRule("a", ["column_wise", "table_wise"], 16)],
            reserves=ns.Reserves(dense_bytes="1MiB", fragmentation_bytes=0),
            fixed_shards=[ns.Shard(table="d", rows=(0, 200), cols=(0, 8), devices=1)]),
        snapshots=[ns.Snapshot("night", 2, [ns.FeatureStatistics("fb", presence=0.25)],
                               [ns.TableStatistics("b", access)]), ns.Snapshot("day")],
        optimizer_semantics="per_shard", memory_model="weights_only", cache_load_factor=0.25,
        source="made up")


@pytest.mark.parametrize("problem", [
    small_problem(), small_problem(topology=None), full_problem()])
def test_problems_survive_text_file_copy_and_pickle(problem, tmp_path):
    assert ns.ShardingProblem.from_json(problem.to_json()) == problem
    problem.save(tmp_path / "problem.json")
    assert ns.ShardingProblem.load(tmp_path / "problem.json") == problem
    assert (tmp_path / "problem.json").read_text() == problem.to_json()
    assert copy.copy(problem) == copy.deepcopy(problem) == problem
    assert pickle.loads(pickle.dumps(problem)) == problem
    for part in (problem.tables, problem.features, problem.topology, problem.constraints, problem.snapshots):
        assert eval(repr(part), vars(ns)) == part


WORKLOADS = sorted(path for path in (ROOT / "workloads").glob("*.json")
                   if "neuroshard.workload.v1" in path.read_text())


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
def test_stored_workloads_survive(path):
    problem = ns.ShardingProblem.load(path)
    assert ns.ShardingProblem.from_json(problem.to_json()) == problem


def test_plans_survive_text_file_copy_and_pickle(tmp_path):
    plan = ns.plan(small_problem()).plan
    assert ns.Plan.from_json(plan.to_json()) == plan
    plan.save(tmp_path / "plan.json")
    assert ns.Plan.load(tmp_path / "plan.json") == plan
    assert copy.deepcopy(plan) == pickle.loads(pickle.dumps(plan)) == plan
    assert eval(repr(plan.shards), vars(ns)) == plan.shards


def test_results_survive_pickling():
    result = ns.plan(small_problem(), warm_start=ns.plan(small_problem()).plan)
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_snapshot_takes_what_it_leaves_open_from_the_features_of_the_copy(tmp_path):
    day = ns.Snapshot("day", 1, [ns.FeatureStatistics("clicked", presence=0.5)])
    problem = small_problem(snapshots=[day])
    assert problem.snapshots == (day,) and "mean_pooling=None" in repr(problem.snapshots)
    problem.save(tmp_path / "problem.json")
    drifted = tuple(one.replace(mean_pooling=40, p99_pooling=90) if one.name == "clicked" else one
                    for one in problem.features)
    explicit = ns.FeatureStatistics("clicked", 40, 90, 0.5)
    wanted = small_problem(features=drifted, snapshots=[day.replace(features=[explicit])])
    assert ns.plan(wanted, algorithm="dim").cost_ms != ns.plan(problem, algorithm="dim").cost_ms
    for one in (problem, ns.ShardingProblem.load(tmp_path / "problem.json"),
                pickle.loads(pickle.dumps(problem))):
        copied = one.replace(features=drifted)
        assert copied.snapshots == (day,) and copied != wanted
        assert copied._native.to_json() == wanted.to_json()


def test_an_inherited_p99_that_does_not_do_is_named():
    features = [ns.Feature("f", "t", mean_pooling=2, p99_pooling=3)]
    busy = ns.Snapshot("busy", 1, [ns.FeatureStatistics("f", mean_pooling=9)])
    with pytest.raises(ns.InvalidProblem, match="got: 3, which is that of feature 'f'") as caught:
        ns.ShardingProblem(tables=[ns.Table("t", 10, 4)], features=features, batch=8,
                           snapshots=[busy])
    assert caught.value.diagnostics[0].where == "snapshots[0].features[0].p99_pooling"


def test_replace_changes_a_copy_and_checks_it():
    problem = small_problem()
    changed = problem.replace(batch=8192)
    assert (problem.batch.global_size, changed.batch.global_size) == (4096, 8192)
    assert changed != problem and changed.replace(batch=4096) == problem
    assert '"global_size":8192' in changed.to_json().replace(" ", "")
    with pytest.raises(ns.InvalidProblem, match="batch.global_size"):
        problem.replace(batch=0)
    with pytest.raises(AttributeError):
        problem.batch = 1


@pytest.mark.parametrize("text, size", [
    ("80GiB", 80 << 30), ("512MiB", 512 << 20), ("40 GB", 40 * 10**9), (123, 123)])
def test_byte_sizes(text, size):
    assert ns.Host(memory_bytes=text).memory_bytes == size


@pytest.mark.parametrize("text, devices, groups", [
    ("8xH200", 8, [(8,)]), ("2x8xA100-40GB", 16, [(16,), (8, 8)]), ("4xCPU@2GiB", 4, [(4,)])])
def test_topologies_by_text(text, devices, groups):
    topology = ns.Topology.parse(text)
    assert topology.device_count == devices
    assert [level.groups for level in topology.levels] == groups
    assert small_problem(topology=text) == small_problem(topology=topology)


def test_a_rate_that_a_node_shares():
    topology = ns.Topology.parse("2x2xCPU@1GiB@200mbit")
    assert [level.group_bandwidth_gb_per_s for level in topology.levels] == [0.025, 0]
    problem = small_problem(topology=topology)
    assert ns.ShardingProblem.from_json(problem.to_json()) == problem
    assert topology.with_devices(6).levels[0].group_bandwidth_gb_per_s == 0.025
    plan = ns.plan(problem, evaluation_budget=50).plan
    shared, own = (ns.evaluate(small_problem(topology=one), plan)
                   for one in (topology, "2x2xCPU@1GiB"))
    assert shared.cost_ms > own.cost_ms


def test_other_device_counts_keep_memory_and_links():
    topology = ns.Topology.parse("8xH200@100GiB")
    slow = topology.replace(levels=[topology.levels[0].replace(bandwidth_gb_per_s=7.5)])
    made = slow.with_devices(16)
    assert made.device_count == 16 and made.devices[9].memory_bytes == 100 << 30
    assert [level.bandwidth_gb_per_s for level in made.levels
            if level.name == slow.levels[0].name] == [7.5]
    racks = ns.Topology.parse("2x4xH200")
    racks = racks.replace(levels=[
        racks.levels[0], racks.levels[1].replace(name="rack", bandwidth_gb_per_s=7.5)])
    assert [level.groups for level in racks.with_devices(10).levels] == [(10,), (4, 4, 2)]
    assert [level.bandwidth_gb_per_s for level in racks.with_devices(3).levels] == [7.5]
    assert racks.with_devices(8) is racks
    mixed = slow.replace(devices=[*slow.devices[:-1], slow.devices[0].replace(memory_bytes=1)])
    with pytest.raises(ValueError, match="devices differ"):
        mixed.with_devices(4)


REFUSED = [
    (lambda: ns.Table(3, 10, 4), TypeError, "Table.name: expected a text, got: 3"),
    (lambda: ns.Table("t", 10.5, 4), TypeError, "Table.rows: expected a whole number, got: 10.5"),
    (lambda: ns.Table("t", 10, True), TypeError, "Table.dim: expected a whole number"),
    (lambda: ns.Table("t", 10, 4, "f64"), ValueError, "Table.type: expected one of f32, f16"),
    (lambda: ns.Table("t", 10, 4, optimizer="lion"), ValueError, "Optimizer.kind: expected one"),
    (lambda: ns.Table("t", 10, 4, optimizer=3), TypeError, "Table.optimizer: expected an Opt"),
    (lambda: ns.Table("t", 10, 4, hashed=1), TypeError, "Table.hashed: expected True or False"),
    (lambda: ns.Table("t", 10, 4, access=REUSE), TypeError, "Table.access: expected an Access"),
    (lambda: ns.Table("t\ud800", 10, 4), ValueError, "Table.name: .*lone surrogates"),
    (lambda: ns.Table("t", 10**400, 4), ValueError, "Table.rows: .*less than 30 digits"),
    (lambda: ns.Table("t", 10**5000, 4), ValueError, "Table.rows: .*less than 30 digits"),
    (lambda: ns.Feature("f", "t", mean_pooling=10**400), ValueError,
     "mean_pooling: expected a finite number"),
    (lambda: ns.Level(name="n", groups=10**400, bandwidth_gb_per_s=1, latency_us=1), ValueError,
     "Level.groups: .*less than 30 digits"),
    (lambda: ns.Host(memory_bytes=10**400), ValueError, "memory_bytes: .*less than 30 digits"),
    (lambda: ns.Host(memory_bytes="\ud8001GiB"), ValueError, "memory_bytes: .*lone surrogates"),
    (lambda: ns.Topology.parse("\ud800"), ValueError, "Topology.parse: .*lone surrogates"),
    (lambda: ns.Topology(levels=[], devices=[], hosts=[]).with_devices(2), ValueError,
     "the topology has no levels"),
    (lambda: ns.Topology.parse("2xCPU").replace(hosts=[]).with_devices(2), ValueError,
     "the topology has no hosts"),
    (lambda: ns.Optimizer("sgd", eps=math.nan), ValueError, "Optimizer.eps: expected a finite"),
    (lambda: ns.Access(batch=1, reuse=[1]), ValueError, "expected 17 shares, got: 1"),
    (lambda: ns.Access(batch=1, reuse=["x"] * 17), TypeError, "Access.reuse: expected a number"),
    (lambda: ns.Feature("f", "t", "max"), ValueError, "Feature.pooling: expected one of sum"),
    (lambda: ns.Feature("f", "t", mean_pooling="2"), TypeError, "Feature.mean_pooling"),
    (lambda: ns.Feature("f", "t", presence=math.inf), ValueError, "Feature.presence"),
    (lambda: ns.Batch("many"), TypeError, "Batch.global_size: expected a whole number"),
    (lambda: ns.Batch(8, id_type="i8"), ValueError, "Batch.id_type: expected one of i32, i64"),
    (lambda: ns.Topology.parse("8xToaster"), ns.InvalidProblem, "Toaster"),
    (lambda: ns.Topology.parse(8), TypeError, "expected a text such as '8xH200'"),
    (lambda: ns.Device(device_class="CPU", memory_bytes="lots"), ValueError,
     "Device.memory_bytes: .*lots"),
    (lambda: ns.Host(memory_bytes=1.5), TypeError, "Host.memory_bytes: expected bytes"),
    (lambda: ns.Level(name="n", groups=["8"], bandwidth_gb_per_s=1, latency_us=1), TypeError,
     "Level.groups: expected a whole number"),
    (lambda: ns.Topology(levels=[8], devices=[], hosts=[]), TypeError, r"levels\[0\]"),
    (lambda: ns.Shard(table="t", rows=5, cols=(0, 1), devices=0), TypeError, "Shard.rows"),
    (lambda: ns.Shard(table="t", rows=(0, 1, 2), cols=(0, 1), devices=0), ValueError,
     r"Shard.rows: expected \[begin, end\)"),
    (lambda: ns.Shard(table="t", rows=(0, 1), cols=(0, 1), devices="0"), TypeError,
     "Shard.devices"),
    (lambda: ns.Shard(table="t", rows=(0, 1), cols=(0, 1), devices=0, tier="tape"), ValueError,
     "Shard.tier: expected one of hbm, dram, ssd"),
    (lambda: ns.Place("t", "gpu"), TypeError, "Place.devices"),
    (lambda: ns.TableRule("t", "row_wise"), TypeError, "allowed_kinds: expected a list"),
    (lambda: ns.TableRule("t", cache_share=0.1, tier="hbm"), ValueError,
     "TableRule.tier: expected one of dram, ssd, got: 'hbm'"),
    (lambda: ns.TableRule("t", ["diagonal"]), ValueError, "allowed_kinds: expected table_wise"),
    (lambda: ns.Reserves(dense_bytes="-4GiB"), ValueError, "Reserves.dense_bytes"),
    (lambda: ns.Constraints(pins=["t"]), TypeError, r"Constraints.pins\[0\]"),
    (lambda: ns.Constraints(co_locate=["ab"]), TypeError, "co_locate: expected a list of texts"),
    (lambda: ns.Snapshot("day", weight="2"), TypeError, "Snapshot.weight"),
    (lambda: ns.Snapshot("day", features=["f"]), TypeError, r"Snapshot.features\[0\]"),
    (lambda: small_problem(tables=["t"]), TypeError, r"ShardingProblem.tables\[0\]"),
    (lambda: small_problem(tables="t"), TypeError, "ShardingProblem.tables: expected a list"),
    (lambda: small_problem(batch="big"), TypeError, "ShardingProblem.batch"),
    (lambda: small_problem(topology=8), TypeError, "expected a Topology or a text"),
    (lambda: small_problem(target="jax"), ValueError, "target: expected one of native, torch"),
    (lambda: small_problem(constraints={}), TypeError, "constraints: expected a Constraints"),
    (lambda: small_problem(tables=[]), ns.InvalidProblem, "table"),
    (lambda: small_problem(batch=2**70), ns.InvalidProblem, "batch.global_size"),
    (lambda: small_problem(constraints=ns.Constraints(pins={"nobody": 0})), ns.InvalidProblem,
     r"constraints.pins\[0\].table: unknown table 'nobody'"),
    (lambda: small_problem(constraints=ns.Constraints(pins={"user": 7})), ns.InvalidProblem,
     r"constraints.pins\[0\].devices"),
    (lambda: small_problem(snapshots=[ns.Snapshot("d", -1)]), ns.InvalidProblem,
     r"snapshots\[0\].weight"),
    (lambda: ns.Plan(shards=[], device_count="2"), TypeError, "Plan.device_count"),
    (lambda: ns.Plan(shards=[3], device_count=2), TypeError, r"Plan.shards\[0\]"),
    (lambda: ns.Plan.from_json("{}"), ns.InvalidPlan, "schema"),
    (lambda: ns.Plan.load("missing.json"), ns.InvalidPlan, "missing.json"),
    (lambda: ns.ShardingProblem.from_json("{"), ns.InvalidProblem, "line 1"),
    (lambda: ns.ShardingProblem.load("missing.json"), ns.InvalidProblem, "missing.json"),
    (lambda: ns.ShardingProblem.load(None), TypeError, "load: expected a path.*None"),
    (lambda: ns.ShardingProblem.load(b"a"), TypeError, "load: expected a path.*b'a'"),
    (lambda: ns.ShardingProblem.from_json(None), TypeError, "from_json: expected a text"),
    (lambda: ns.Plan.load("a\ud800"), ValueError, "Plan.load: .*lone surrogates"),
    (lambda: ns.Plan.from_json(b"{}"), TypeError, "Plan.from_json: expected a text"),
    (lambda: ns.Plan(shards=[], device_count=1).save("a\0b"), ValueError, "save: .*without NUL"),
    (lambda: ns.Plan(shards=[], device_count=1).save(None), TypeError, "save: expected a path"),
    (lambda: small_problem().save(None), TypeError, "ShardingProblem.save: expected a path"),
    (lambda: small_problem().save("missing/problem.json"), OSError, "missing"),
    (lambda: ns.Objective("fast"), ValueError, "Objective.kind: expected one of step, publ"),
    (lambda: ns.Objective(dense_rest_ms=-1), ValueError, "dense_rest_ms: expected a number in"),
    (lambda: ns.Objective(dense_rest_ms=1e12), ValueError, r"dense_rest_ms: .*1e\+11\]"),
    (lambda: ns.Objective("published", pipeline_depth=3), ValueError,
     "Objective.pipeline_depth: only the objective 'step' reads it"),
    (lambda: ns.Objective(pipeline_depth=0), ValueError, "pipeline_depth: expected a whole number"),
    (lambda: ns.PublishedSettings(beam_width=0), ValueError, "beam_width: expected a whole number in"),
    (lambda: ns.WarmStart(ns.Plan(shards=[], device_count=1), 0), ValueError, "horizon_steps"),
    (lambda: ns.WarmStart(ns.Plan(shards=[], device_count=1), tolerance=2), ValueError,
     "WarmStart.tolerance"),
    (lambda: ns.WarmStart("yesterday"), TypeError, "WarmStart.previous: expected a Plan"),
]


@pytest.mark.parametrize("make, error, message", REFUSED,
                         ids=[f"{i}-{case[2][:24]}" for i, case in enumerate(REFUSED)])
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_type_checkers_see_the_constructors_parameters():
    """An __init__ that only type checkers see must name what the dataclass takes."""
    seen = set()
    for path in (ROOT / "python" / "neuroshard").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ClassDef) or not hasattr(ns, node.name):
                continue
            kind = getattr(ns, node.name)
            if kind.__module__ != f"neuroshard.{path.stem}":  # a namesake, such as cuda.Device
                continue
            shown = [init.args for init in ast.walk(node)
                     if isinstance(init, ast.FunctionDef) and init.name == "__init__"]
            if not dataclasses.is_dataclass(kind) or not shown:
                continue
            taken = list(inspect.signature(kind).parameters.values())
            assert [one.arg for one in shown[0].args[1:]] == [
                one.name for one in taken if one.kind is not one.KEYWORD_ONLY], node.name
            assert [one.arg for one in shown[0].kwonlyargs] == [
                one.name for one in taken if one.kind is one.KEYWORD_ONLY], node.name
            seen.add(node.name)
    assert {"Table", "ShardingProblem", "Plan", "Constraints"} <= seen


def test_everything_wrong_with_a_problem_is_listed():
    with pytest.raises(ns.InvalidProblem) as caught:
        small_problem(tables=[ns.Table("user", -1, 64), ns.Table("item", 10, 0),
                              ns.Table("page", 5, 16), ns.Table("tag", 5, 4)], batch=-5)
    assert {one.where for one in caught.value.diagnostics} == {
        "tables[0].rows", "tables[1].dim", "batch.global_size"}
    assert isinstance(caught.value, ns.PlanningError) and isinstance(caught.value, ValueError)
    assert caught.value.limit == "bad input"
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.diagnostics == caught.value.diagnostics and str(again) == str(caught.value)


def test_numpy_numbers_are_numbers():
    numpy = pytest.importorskip("numpy")
    table = ns.Table("t", numpy.int64(10), numpy.int32(4))
    feature = ns.Feature("f", "t", mean_pooling=numpy.float32(1.5))
    problem = ns.ShardingProblem(tables=[table], features=[feature], batch=numpy.int64(64))
    assert problem.tables[0].rows == 10 and '"mean_pooling":1.5' in problem.to_json()


def test_a_plan_prints_as_a_table_of_its_devices():
    def shard(table, rows, cols, devices, tier="hbm"):
        return ns.Shard(table=table, rows=rows, cols=cols, devices=devices, tier=tier)

    plan = ns.Plan(device_count=3, shards=[
        shard("user", (0, 600), (0, 8), 0), shard("user", (600, 1000), (0, 8), 1),
        shard("item", (0, 100), (0, 4), 1), shard("item", (0, 100), (4, 16), 0, "dram"),
        shard("small", (0, 10), (0, 2), (0, 1))])
    assert str(plan).splitlines() == [
        "3 tables in 5 shards on 3 devices",
        "device  shards        elements  tables",
        "     0       3           6,020  user rows 0-599, item columns 4-15 in host memory, "
        "small (a copy of 2)",
        "     1       3           3,620  user rows 600-999, item columns 0-3, small (a copy of 2)",
        "     2       0               0"]
    many = ns.Plan(device_count=40, shards=[shard(f"t{i}", (0, 9 - i), (0, 4), 7)
                                            for i in range(9)])
    lines = str(many).splitlines()
    assert len(lines) == 2 + 32 + 1 and lines[-1] == "   ... 8 more devices"
    assert lines[2 + 7].endswith("t0, t1, t2, t3, t4, t5, 3 more")


def test_a_searched_plan_says_where_it_comes_from():
    result = ns.plan(small_problem(), evaluation_budget=50, progress=False)
    made = result.plan.provenance
    first = str(result.plan).splitlines()[0]
    assert first.endswith(f", by {made.algorithm}, {made.predicted_cost_ms:.4g} ms predicted by "
                          f"{made.cost_model}")


def test_shards_without_names_get_some():
    shard = ns.Shard(table="t", rows=(0, 4), cols=(0, 4), devices=0)
    plan = ns.Plan(device_count=1, shards=[shard.replace(name="t_0"), shard, shard])
    assert [one.name for one in plan.shards] == ["t_0", "t_1", "t_2"]


def test_reference_tasks_are_read_alike():
    problem = reference_task("task_01")
    assert problem.memory_model == "weights_only" and problem.topology.device_count == 4


def test_adamw_with_l2_decay_is_refused():
    message = "tables[0].optimizer.weight_decay_mode: adamw has decoupled weight decay alone, got: l2"
    with pytest.raises(ns.InvalidProblem, match=re.escape(message)):
        small_problem(tables=[ns.Table("a", 100, 8, optimizer=ns.Optimizer(
            "adamw", weight_decay_mode="l2"))], features=[ns.Feature("f", "a")])


def test_penalties_are_of_ftrl():
    def problem(kind):
        return small_problem(tables=[ns.Table("a", 100, 8, optimizer=ns.Optimizer(
            kind, l1_penalty=0.5))], features=[ns.Feature("f", "a")])

    assert problem("ftrl").tables[0].optimizer.l1_penalty == 0.5
    with pytest.raises(ns.InvalidProblem, match=re.escape(
            "tables[0].optimizer.l1_penalty: adam has no l1_penalty; it has eps, beta1,")):
        problem("adam")


@pytest.mark.parametrize(("settings", "message"), [
    ({"kind": "rowwise_adagrad", "weight_decay": 0.1}, "catch_up: is of sgd, adagrad, adam, momentum and adamw"),
    ({"kind": "ftrl"}, "catch_up: is of sgd, adagrad, adam, momentum and adamw"),
    ({"kind": "sgd"}, "catch_up: changes nothing with sgd without weight_decay"),
    ({"kind": "adam", "eps": 0}, "eps: must be above 0 with catch_up")], ids=lambda one: str(one)[:24])
def test_rows_catch_up_where_their_steps_can_come_late(settings, message):
    with pytest.raises(ns.InvalidProblem, match=re.escape(f"tables[0].optimizer.{message}")):
        small_problem(tables=[ns.Table("a", 100, 8, optimizer=ns.Optimizer(catch_up=True, **settings))],
                      features=[ns.Feature("f", "a")])


def test_rows_that_catch_up_have_a_number_more(tmp_path):
    def states(**settings):
        problem = small_problem(tables=[ns.Table("a", 100, 8, optimizer=ns.Optimizer("adamw", **settings))],
                                features=[ns.Feature("f", "a")], topology="1xCPU")
        problem.save(tmp_path / "problem.json")
        assert ns.ShardingProblem.load(tmp_path / "problem.json") == problem
        return ns.plan(problem, evaluation_budget=10, progress=False).memory.devices[0].optimizer_state_bytes

    assert states(catch_up=True) - states() == 100 * 4


def test_eta_is_of_lars():
    def problem(kind):
        return small_problem(tables=[ns.Table("a", 100, 8, optimizer=ns.Optimizer(
            kind, eta=0.5))], features=[ns.Feature("f", "a")])

    assert problem("lars_sgd").tables[0].optimizer.eta == 0.5
    assert ns.Optimizer("lars_sgd").eta == 0.001
    with pytest.raises(ns.InvalidProblem, match=re.escape(
            "tables[0].optimizer.eta: lamb has no eta; it has eps, beta1,")):
        problem("lamb")


def test_optimizers_take_their_own_settings_alone():
    for setting in ({"eps": 0.5}, {"beta1": 0.5}, {"beta2": 0.5}, {"initial_accumulator": 0.5}):
        message = (f"tables[0].optimizer.{next(iter(setting))}: sgd has no {next(iter(setting))}; it has "
                   "weight_decay, max_gradient, weight_decay_mode, stochastic_rounding and catch_up")
        with pytest.raises(ns.InvalidProblem, match=re.escape(message)):
            small_problem(tables=[ns.Table("a", 100, 8, optimizer=ns.Optimizer("sgd", **setting))],
                          features=[ns.Feature("f", "a")])


def test_modes_of_weight_decay_are_named():
    with pytest.raises(ValueError, match="Optimizer.weight_decay_mode: expected one of default, l2, "
                                         "decoupled, adagradw, got: 'coupled'"):
        ns.Optimizer("adam", weight_decay_mode="coupled")
