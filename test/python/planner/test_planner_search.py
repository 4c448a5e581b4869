"""plan(), evaluate() and what_if() give the results of the C++ tools, with Python's conventions."""

import ast
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import neuroshard as ns
from support.planning import EXPECTED, ROOT, BytesModel, reference_task, small_problem

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
LIMIT_S = 600


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          timeout=LIMIT_S, **options)


def python(script, **options):
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    return run(sys.executable, "-c", script, env=environment, **options)


def test_importing_needs_neither_torch_nor_numpy():
    result = python("import sys, neuroshard\n"
                    "neuroshard.plan\n"
                    "print([name for name in ('torch', 'numpy', 'scipy') if name in sys.modules])")
    assert result.stdout == "[]\n", result.stderr


def test_without_the_module_only_the_planner_is_missing():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    result = run(sys.executable, "-c", "import neuroshard, neuroshard.collect; neuroshard.plan",
                 env=environment)
    assert result.returncode == 1
    assert "ImportError: neuroshard.plan needs the compiled module" in result.stderr


def test_type_stub_names_what_the_module_has():
    package = Path(ns.__file__).parent
    assert (package / "py.typed").exists()
    tree = ast.parse((package / "_planner.pyi").read_text())
    stub = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert stub == {name for name in vars(ns._planner) if not name.startswith("_")}


def test_result():
    problem = small_problem()
    result = ns.plan(problem, cost_model="roofline")
    result.plan.verify(problem)
    parts = result.breakdown
    assert result.cost_ms == parts.cost_ms == pytest.approx(
        parts.input_ms + parts.fetch_ms + parts.max_forward_ms + parts.exposed_forward_communication_ms
        + parts.dense_ms + parts.backward_communication_ms + parts.max_backward_ms)
    assert 0 < result.lower_bound_ms <= result.cost_ms
    assert len(parts.devices) == len(result.memory.devices) == 2
    assert result.memory.peak_bytes == max(one.peak_bytes for one in result.memory.devices)
    assert any("bottleneck" in sentence for sentence in result.explanation)
    assert result.tried and result.stop_reason and result.evaluations > 0
    assert result.migration is None
    provenance = result.plan.provenance
    assert (provenance.algorithm, provenance.objective, provenance.cost_model) == (
        "default", "step", "roofline")
    assert provenance.predicted_cost_ms == result.cost_ms
    assert str(result).startswith(f"4 tables in {len(result.plan.shards)} shards on 2 devices")


def test_evaluate_gives_the_cost_of_the_search():
    problem = small_problem()
    objective = ns.Objective(dense_bottom_ms=0.5, dense_rest_ms=2, pipeline_depth=2)
    result = ns.plan(problem, objective=objective)
    assert ns.evaluate(problem, result.plan, objective=objective) == result.breakdown
    assert result.breakdown.dense_ms == 2.5


@pytest.mark.parametrize("algorithm", ns.algorithms())
def test_every_algorithm(algorithm):
    problem = small_problem()
    result = ns.plan(problem, algorithm=algorithm)
    result.plan.verify(problem)
    assert result.plan.provenance.algorithm == algorithm


def test_published_settings_reach_the_search():
    problem = reference_task("task_01")
    costs = [ns.plan(problem, cost_model="reference", objective="published",
                     algorithm="published", published=settings).cost_ms
             for settings in (None, ns.PublishedSettings(depth=0))]
    assert costs[0] == pytest.approx(EXPECTED["task_01"]["cost_ms"], rel=1e-9)
    assert costs[1] > costs[0]


def test_same_plan_as_the_compiler(tmp_path):
    opt, translate = shutil.which("neuroshard-opt"), shutil.which("neuroshard-translate")
    if not opt or not translate:
        pytest.skip("this build has no compiler tools")
    problem = small_problem()
    problem.save(tmp_path / "problem.json")
    made = run(translate, "--workload-to-mlir", tmp_path / "problem.json",
               "-o", tmp_path / "logical.mlir")
    assert made.returncode == 0, made.stderr
    planned = run(opt, "--neuroshard-to-planned", tmp_path / "logical.mlir",
                  "-o", tmp_path / "planned.mlir")
    assert planned.returncode == 0, planned.stderr
    written = run(translate, "--plan-to-json", tmp_path / "planned.mlir",
                  "-o", tmp_path / "plan.json")
    assert written.returncode == 0, written.stderr
    assert ns.Plan.load(tmp_path / "plan.json").shards == ns.plan(problem).plan.shards


def test_same_seed_same_plan_whatever_the_threads():
    problem = reference_task("task_05")
    plans = [ns.plan(problem, seed=7, threads=threads).plan for threads in (1, 2, 8)]
    assert plans[0] == plans[1] == plans[2]


def test_a_deadline_of_zero_still_gives_a_valid_plan():
    problem = ns.ShardingProblem.load(ROOT / "workloads" / "synthetic_small.json").replace(
        topology="8xH200")
    result = ns.plan(problem, deadline_s=0)
    result.plan.verify(problem)
    assert "deadline" in result.stop_reason


def test_target_in_place_of_the_problem_s():
    problem = small_problem(constraints=ns.Constraints(
        tables=[ns.TableRule("item", ["row_wise"])]))
    result = ns.plan(problem, target="torchrec-1.9")
    result.plan.verify(problem.replace(target="torchrec-1.9"))
    assert [shard.rows for shard in result.plan.shards_of("item")] == [(0, 25000), (25000, 50000)]


LONG = ("synthetic_large", "128xH200")


def long_problem():
    """A problem whose search takes much longer than stopping it."""
    path = ROOT / "workloads" / f"{LONG[0]}.json"
    return ns.ShardingProblem.load(path).replace(topology=LONG[1])


def test_progress_is_told_and_may_end_the_search():
    told = []

    def tell(progress):
        told.append(progress)
        return len(told) < 3

    problem = long_problem()
    result = ns.plan(problem, progress=tell, threads=1)
    result.plan.verify(problem)
    assert len(told) == 3
    assert 0 < told[0].seconds < told[1].seconds and 0 <= told[0].share <= 1
    assert all(one.phase for one in told)


def test_an_exception_of_progress_comes_out():
    def tell(progress):
        raise RuntimeError("no more paper")

    with pytest.raises(RuntimeError, match="no more paper"):
        ns.plan(long_problem(), progress=tell)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_the_search(threads):
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))

    def tell(progress):
        # Not before the search runs: Python drops an interrupt of a weak reference's callback.
        if timer.ident is None:
            timer.start()
        return True

    with pytest.raises(KeyboardInterrupt):
        ns.plan(long_problem(), progress=tell, threads=threads)
    timer.join()


def test_a_problem_that_does_not_fit_says_what_binds():
    problem = ns.ShardingProblem.load(ROOT / "workloads" / "mlperf_dlrm_v2.json")
    with pytest.raises(ns.PlanningError, match="device memory: ") as caught:
        ns.plan(problem.replace(topology="1xA100-40GB"))
    error = caught.value
    assert error.limit == "device memory" and "GiB" in error.message
    assert error.details and error.advice and not isinstance(error, ns.InvalidProblem)


def test_a_problem_without_devices_is_refused():
    with pytest.raises(ns.InvalidProblem, match="topology: the problem has none"):
        ns.plan(small_problem(topology=None))


@pytest.mark.parametrize("options, error, message", [
    ({"algorithm": "best"}, ValueError, "algorithm: expected default, published"),
    ({"algorithm": 3}, TypeError, "algorithm: expected a text"),
    ({"objective": "speed"}, ValueError, "kind: expected one of step"),
    ({"objective": 1}, TypeError, "objective: expected"),
    ({"target": "jax"}, ValueError, "target: expected one of native"),
    ({"deadline_s": -1}, ValueError, r"deadline_s: expected a number in \[0, 1e\+09\], got: -1"),
    ({"deadline_s": "1"}, TypeError, "deadline_s: expected a number"),
    ({"seed": -1}, ValueError, r"seed: expected a whole number in \[0, 18446744073709551615\]"),
    ({"seed": 0.5}, TypeError, "seed: expected a whole number"),
    ({"threads": -2}, ValueError, r"threads: expected a whole number in \[0, 1024\]"),
    ({"evaluation_budget": -1}, ValueError, "evaluation_budget: expected a whole number in"),
    ({"published": 3}, TypeError, "published: expected PublishedSettings"),
    ({"published": ns.PublishedSettings()}, ValueError,
     "published: only algorithm='published' has this setting, algorithm: 'default'"),
    ({"policy": "policy.safetensors"}, ValueError, "policy: only algorithm='dreamshard'"),
    ({"policy_samples": 2, "algorithm": "dim"}, ValueError, "policy_samples: only .*'dim'"),
    ({"policy": b"p", "algorithm": "dreamshard"}, TypeError, "policy: expected a path"),
    ({"algorithm": "\ud800"}, ValueError, "algorithm: .*lone surrogates"),
    ({"algorithm": "dim\0"}, ValueError, r"algorithm: expected default.*got: 'dim\\x00'"),
    ({"warm_start": 10**5000}, TypeError, "warm_start: .*got: a value of type int"),
    ({"cost_model": 10**5000}, TypeError, "cost_model: .*got: a value of type int"),
    ({"seed": 10**400}, ValueError, "seed: .*less than 30 digits"),
    ({"deadline_s": 10**400}, ValueError, "deadline_s: expected a finite number"),
    ({"warm_start": "plan.json"}, TypeError, "warm_start: expected a Plan"),
    ({"progress": "yes"}, TypeError, "progress: expected a function"),
    ({"algorithm": "dreamshard", "policy": "missing.safetensors"}, ns.UnknownPolicy, "missing"),
])
def test_bad_options_are_named(options, error, message):
    with pytest.raises(error, match=message):
        ns.plan(small_problem(), **options)


def test_inspect_says_what_plan_would():
    problem = small_problem()
    objective = ns.Objective(dense_rest_ms=2)
    result = ns.plan(problem, cost_model="roofline", objective=objective)
    given = ns.inspect(problem, result.plan, cost_model="roofline", objective=objective)
    assert given.plan == result.plan
    assert (given.breakdown, given.memory, given.lower_bound_ms, given.remarks) == (
        result.breakdown, result.memory, result.lower_bound_ms, result.remarks)
    assert given.explanation == given.tried == () and given.migration is None
    with pytest.raises(ns.InvalidPlan):
        ns.inspect(problem, result.plan.replace(shards=result.plan.shards[1:]))
    with pytest.raises(TypeError, match="inspect: plan: expected a Plan"):
        ns.inspect(problem, "plan.json")
    own = ns.inspect(problem, result.plan, cost_model=BytesModel())
    assert own.lower_bound_ms is None and "no lower bound is known" in str(own)
    assert own.cost_ms == ns.evaluate(problem, result.plan, cost_model=BytesModel()).cost_ms
    with pytest.raises(ns.CostModelError, match="published"):
        ns.inspect(problem, result.plan, cost_model="reference")


def test_a_result_writes_its_plan_and_prints_what_it_has(tmp_path):
    snapshots = [ns.Snapshot("night", 1), ns.Snapshot("day", 3, [
        ns.FeatureStatistics("clicked", mean_pooling=40)])]
    problem = small_problem(snapshots=snapshots)
    previous = ns.plan(problem, algorithm="dim", cost_model="roofline")
    previous.save(tmp_path / "plan.json")
    assert ns.Plan.load(tmp_path / "plan.json") == previous.plan
    night, day = previous.breakdown.snapshots
    lines = str(previous).splitlines()
    assert f"no plan below {previous.lower_bound_ms:.3f} ms" in lines[0]
    assert lines[1] == (f"  snapshots (share of the mean): night {night.cost_ms:.3f} ms (25.0%), "
                        f"day {day.cost_ms:.3f} ms (75.0%); worst {day.cost_ms:.3f} ms")
    moved = ns.plan(problem, cost_model="roofline",
                    warm_start=ns.WarmStart(previous.plan, horizon_steps=1e12))
    assert (f"  the previous plan costs {previous.cost_ms:.3f} ms; "
            in str(moved) and "tables move, which takes" in str(moved))
    kept = ns.plan(problem, cost_model="roofline", warm_start=ns.WarmStart(previous.plan, 1e-3))
    assert "; nothing moves" in str(kept)


def test_verify_raises_what_check_lists():
    problem = small_problem()
    plan = ns.plan(problem).plan
    assert plan.check(problem) == ()
    broken = plan.replace(shards=plan.shards[1:])
    found = broken.check(problem)
    assert found and found[0].message
    with pytest.raises(ns.InvalidPlan) as caught:
        broken.verify(problem)
    assert caught.value.diagnostics == found
    with pytest.raises(ns.InvalidPlan):
        ns.evaluate(problem, broken)
    assert "none" in plan.check(problem.replace(topology=None))[0].message


def test_what_if():
    problem = ns.ShardingProblem.load(ROOT / "workloads" / "mlperf_dlrm_v2.json").replace(
        topology="8xH200")
    cases = ns.what_if(problem, topologies=["8xH200", "1xA100-40GB"], devices=16,
                       cost_model="roofline")
    assert [case.topology.device_count for case in cases] == [8, 1, 16]
    assert cases[0].cost_ms == ns.plan(problem, cost_model="roofline").cost_ms
    assert cases[1].result is None and cases[1].error.limit == "device memory"
    planned = ns.plan(problem.replace(topology=cases[2].topology), cost_model="roofline")
    assert cases[2].peak_bytes == planned.memory.peak_bytes
    assert cases[2].cost_ms == cases[2].result.cost_ms
    lines = str(cases).splitlines()
    assert len(lines) == 4 and "no plan: device memory" in lines[2]
    assert lines[3].startswith("devices=16")


def test_what_if_without_cases_and_bounds():
    assert str(ns.WhatIf(())).splitlines() == [
        "topology  devices   cost, ms  bound, ms  fullest device"]
    cases = ns.what_if(small_problem(), topologies="2xCPU@4GiB", cost_model=BytesModel(),
                       algorithm="dim")
    assert isinstance(cases[0], ns.WhatIfCase) and "unknown" in str(cases).splitlines()[1]
    assert pickle.loads(pickle.dumps(cases)) == cases


@pytest.mark.parametrize("arguments, message", [
    ({}, "give topologies"), ({"devices": 2.5}, "device numbers"), ({"topologies": 8}, "list of")])
def test_what_if_names_bad_arguments(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ns.what_if(small_problem(), **arguments)


def test_snapshots_are_planned_for_together():
    quiet = ns.Snapshot("night", 1, [ns.FeatureStatistics("clicked", mean_pooling=1)])
    busy = ns.Snapshot("day", 3, [ns.FeatureStatistics("clicked", mean_pooling=40)])
    result = ns.plan(small_problem(snapshots=[quiet, busy]), cost_model="roofline")
    night, day = result.breakdown.snapshots
    assert (night.name, day.name, day.share) == ("night", "day", 0.75)
    assert result.cost_ms == pytest.approx(0.25 * night.cost_ms + 0.75 * day.cost_ms)
    assert result.breakdown.worst_ms == day.cost_ms > night.cost_ms


def test_a_warm_start_keeps_what_changing_would_not_pay():
    problem = small_problem()
    previous = ns.plan(problem, algorithm="dim", cost_model="roofline").plan
    kept = ns.plan(problem, cost_model="roofline",
                   warm_start=ns.WarmStart(previous, horizon_steps=1e-3))
    assert kept.plan.shards == previous.shards
    assert kept.migration.bytes == 0 and kept.migration.moves == ()
    assert kept.migration.previous_cost_ms == pytest.approx(kept.cost_ms)
    free = ns.plan(problem, cost_model="roofline",
                   warm_start=ns.WarmStart(previous, horizon_steps=1e12))
    assert free.cost_ms < kept.cost_ms
    assert free.migration.move_ms > 0
    assert free.migration.bytes == sum(move.bytes for move in free.migration.moves)


# Routes and wire types of plans that are brought

def relayed(topology, target="native", **feature):
    """A table in two rows shards on the devices 0 and 1, by relay; a problem for it."""
    problem = ns.ShardingProblem(
        tables=[ns.Table("t", 1000, 16)], features=[ns.Feature("f", "t", **feature)], batch=64,
        topology=topology, target=target)
    shards = [ns.Shard(table="t", rows=rows, cols=(0, 16), devices=[device], route="relay")
              for device, rows in enumerate(((0, 500), (500, 1000)))]
    return problem, ns.Plan(shards=shards, device_count=problem.topology.device_count)


def relay_remarks(problem, plan):
    return [one for one in ns.inspect(problem, plan).remarks if "route relay" in one]


@pytest.mark.parametrize(("topology", "groups"), [("4xCPU", "4"), ("2+3xCPU", "2+3"),
                                                  ("4x1xCPU", "1+1+1+1")])
def test_relays_without_groups_get_a_remark(topology, groups):
    assert relay_remarks(*relayed(topology)) == [
        "route relay of table 't' has no effect: relays need several groups of devices, of one size "
        f"of 2 or more; level 'node' has groups of {groups}"]
    problem, plan = relayed(topology)
    fixed = problem.replace(constraints=ns.Constraints(fixed_shards=plan.shards))
    assert any("route relay" in one for one in ns.plan(fixed).remarks)


def test_relays_of_copies_get_a_remark():
    problem, plan = relayed("2x2xCPU")
    assert not relay_remarks(problem, plan)
    copy = ns.Shard(table="t", rows=(0, 1000), cols=(0, 16), devices=range(4), route="relay")
    assert relay_remarks(problem, plan.replace(shards=[copy])) == [
        "route relay of table 't' has no effect: it is replicated, so its results do not travel"]


@pytest.mark.parametrize(("settings", "text"), [
    ({"target": "torchrec-1.9"}, "target torchrec-1.9 has no relays"),
    ({"pooling": "none"}, "results without pooling never go by relay")])
def test_relays_that_cannot_be_are_refused(settings, text):
    problem, plan = relayed("2x2xCPU", **settings)
    with pytest.raises(ns.InvalidPlan, match=text):
        ns.inspect(problem, plan)
    with pytest.raises(ns.InvalidProblem, match=text):
        problem.replace(constraints=ns.Constraints(fixed_shards=plan.shards[:1]))


def test_shards_by_hand_have_one_route():
    problem, plan = relayed("2x2xCPU")
    shards = [plan.shards[0], plan.shards[1].replace(route="direct")]
    text = "table 't': its results travel one way: shard 't_0' has route relay, shard 't_1' direct"
    with pytest.raises(ns.InvalidPlan, match=text):
        plan.replace(shards=shards).verify(problem)
    with pytest.raises(ns.InvalidProblem, match=text):
        problem.replace(constraints=ns.Constraints(fixed_shards=shards))


def test_a_plan_for_another_wire_type_gets_a_remark():
    problem = small_problem()
    half = problem.replace(batch=problem.batch.replace(wire_type="bf16"))
    made = ns.plan(half, evaluation_budget=50).plan
    said = "the plan was made for results and gradients that travel as "
    assert [one for one in ns.inspect(problem, made).remarks if said in one] == [
        f"{said}bf16, and the problem has wire_type f32: its costs are those of f32, as the problem "
        "says"]
    assert not [one for one in ns.inspect(half, made).remarks if said in one]
    chosen = ns.plan(problem, evaluation_budget=50, wire_types=["bf16"]).plan
    assert [one for one in ns.inspect(problem, chosen).remarks if said in one] == [
        f"{said}bf16, and the problem has wire_type f32: its costs are those of bf16, which its "
        "search chose"]


def test_a_plan_with_no_wire_type_at_all_is_refused():
    text = ns.plan(small_problem(), evaluation_budget=50).plan.to_json()
    wrong = text.replace('"wire_type","value":"f32"', '"wire_type","value":"f33"').replace(
        '"wire_type", "value": "f32"', '"wire_type", "value": "f33"')
    assert wrong != text
    with pytest.raises(ns.InvalidPlan, match="settings.*value: expected f32, f16, bf16, int8 or fp8.*'f33'"):
        ns.Plan.from_json(wrong)


def test_tables_below_device_memory():
    problem = ns.ShardingProblem(
        tables=[ns.Table("cold", 4_000_000, 64), ns.Table("warm", 500_000, 64)],
        features=[ns.Feature("c", "cold"), ns.Feature("w", "warm", mean_pooling=20)], batch=1024,
        topology=ns.Topology.parse("2xH100@400MiB"),
        constraints=ns.Constraints(reserves=ns.Reserves(
            dense_bytes=0, fragmentation_bytes=0, communicator_bytes=0)))
    with pytest.raises(ns.PlanningError) as caught:
        ns.plan(problem, cost_model="roofline")
    assert 'tiers="hbm,dram,ssd"' in caught.value.advice
    result = ns.plan(problem, cost_model="roofline", tiers="hbm,dram,ssd")
    assert {one.table: one.tier for one in result.plan.shards} == {"cold": "dram", "warm": "hbm"}
    cold = result.plan.shards_of("cold")
    # Rows, places of caches, 8 MiB for what moves rows on each device, and pinned ids.
    ids = result.memory.host_bytes[0] - 4_000_000 * 64 * 4 - 16 * sum(one.cache_rows for one in cold) - 2**23 * len(
        {one.devices[0] for one in cold})
    assert 0 < ids < 2**16
    assert result.memory.disk_bytes == (0,)
    assert 0 < result.breakdown.fetch_ms <= max(one.fetch_ms for one in result.breakdown.devices)
    assert result.explanation[0].startswith("table 'cold' is in host memory, with a cache of ")
    told = problem.replace(constraints=problem.constraints.replace(
        tables=[ns.TableRule("cold", cache_share=0.1, tier="ssd")]))
    result = ns.plan(told, cost_model="roofline")
    assert {one.tier for one in result.plan.shards if one.table == "cold"} == {"ssd"}
    assert result.memory.disk_bytes == (4_000_000 * 64 * 4,)
