"""neuroshard-bench planners: its figures are those of the real planners, its verifications and
prices agree with independent ones, and worse or invalid plans are reported as such."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torchrec")

from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.storage_reservations import FixedAbsoluteStorageReservation

import neuroshard as ns
from neuroshard.bench import planners
from neuroshard.bench._output import write_output
from neuroshard.bench._planners import contest, rules
from neuroshard.bench._planners.case import make_case, make_sharders
from neuroshard.bench._planners.rating import Rating
from neuroshard.bench._planners.report import BEST, lines_of, mean_ratio
from neuroshard.bench._planners.score import read_back, score
from neuroshard.torchrec import to_torchrec
from support.artifact import tool
from support.planning import ROOT

DEVICES = "4xH200"
RESERVE = 9 << 30


def small(optimizer="sgd"):
    tables = [ns.Table(f"t{index}", rows, dim, optimizer=optimizer)
              for index, (rows, dim) in enumerate(((2_000_000, 64), (500_000, 128), (3, 16)))]
    features = [ns.Feature(f"{table.name}_id", table.name, mean_pooling=pooling)
                for table, pooling in zip(tables, (5, 60, 1))]
    return ns.ShardingProblem(tables=tables, features=features, batch=4096)


@pytest.fixture(scope="module")
def case():
    workload = ns.ShardingProblem.load(ROOT / "workloads" / "criteo_kaggle.json")
    return make_case("criteo_kaggle", workload, DEVICES)


@pytest.fixture(scope="module")
def planned(case):
    return {one.setting: one for one in contest.contest(case, "exact", RESERVE, 1, tuned=False)}


def test_same_tables_and_rates(case):
    """Both planners get the tables of the workload and the rates of our device classes."""
    configs = {one.name: one for one in case.model.embedding_bag_configs()}
    limits = rules.make_constraints(case, rules.types_under(case, "exact"))
    for table in case.problem.tables:
        one = configs[table.name]
        assert (one.num_embeddings, one.embedding_dim) == (table.rows, table.dim)
        assert limits[table.name].pooling_factors == [
            feature.mean_pooling for feature in case.problem.features
            if feature.table == table.name]
    assert case.topology.devices[3].storage.hbm == 139 << 30
    assert case.topology.hbm_mem_bw * 1000 == 4300e9 and case.topology.intra_host_bw * 1000 == 372e9
    assert case.batch_per_rank * 4 == case.problem.batch.global_size
    assert contest.held_back(case) == RESERVE


def test_theirs_is_their_planner(case, planned):
    """A planner made here gives the same plan and rates it the same."""
    planner = EmbeddingShardingPlanner(
        topology=case.topology, batch_size=case.batch_per_rank, stats=[],
        constraints=rules.make_constraints(case, rules.types_under(case, "exact")),
        storage_reservation=FixedAbsoluteStorageReservation(RESERVE))
    plan = planner.plan(case.model, make_sharders())
    assert str(plan) == str(planned["torchrec"].plan)
    own = NoopPerfModel(case.topology).rate(planner.get_selected_options())
    assert score(case, "exact", planned["torchrec"]).rating == pytest.approx(own, rel=1e-9)


def test_ours_is_our_planner(case, planned):
    """The plan and its cost are those of neuroshard.plan for the workload."""
    problem = rules.problem_under(case, "exact")
    direct = ns.plan(problem, progress=False)
    assert score(case, "exact", planned["neuroshard"]).step_ms == pytest.approx(
        direct.cost_ms, rel=0.02)


def test_totals(case, planned):
    problem = rules.problem_under(case, "exact")
    for one in planned.values():
        found = score(case, "exact", one)
        assert not found.problems
        plan = read_back(case, "exact", one.plan)
        plan.verify(problem)
        devices = ns.evaluate(problem, plan, cost_model="roofline").devices
        assert found.step_ms == pytest.approx(sum(found.parts.values())) == pytest.approx(sum(
            max(getattr(device, part) for device in devices) for part in (
                "input_ms", "forward_ms", "forward_communication_ms",
                "backward_communication_ms", "backward_ms")))
        assert sum(found.shapes.values()) == len(problem.tables)
        weights = [sum(shard.row_count * shard.width * 4 for shard in plan.shards_on(device))
                   for device in range(4)]
        assert sum(weights) >= sum(table.rows * table.dim * 4 for table in problem.tables)
        for peak, least in zip(found.memory, weights):
            assert least + RESERVE < peak < 139 << 30
        assert one.seconds[0] > 0 and one.cpu_seconds[0] > 0


def test_rating_as_a_cost_model():
    """As our cost model the rating gives what TorchRec's planner gives, for whole tables and for
    cuts by columns or rows."""
    case = make_case("small", small(), DEVICES)
    kinds = {"t0": ["row_wise"], "t1": ["column_wise"], "t2": ["table_wise"]}
    plan = contest.ask_torchrec(case, kinds, RESERVE, min_partition=32)
    ours = read_back(case, "exact", plan)
    assert [len(ours.shards_of(name)) for name in kinds] == [4, 4, 1]
    rating = Rating(case)
    assert ns.evaluate(rules.problem_under(case, "exact"), ours, cost_model=rating,
                       objective="published").cost_ms == pytest.approx(rating.of_plan(plan))


def answer(case, *shards):
    plan = ns.Plan(shards=shards, device_count=4)
    return contest.Planned("by hand", to_torchrec(
        plan, {"": [table.name for table in case.problem.tables]}))


def whole(table, device):
    return ns.Shard(table=table.name, rows=(0, table.rows), cols=(0, table.dim), devices=device)


def test_a_bad_plan_is_seen_to_be(case, planned):
    bad = score(case, "exact", answer(case, *(whole(table, 0) for table in case.problem.tables)))
    for one in planned.values():
        good = score(case, "exact", one)
        assert bad.step_ms > 1.2 * good.step_ms and bad.rating > 1.5 * good.rating
        assert max(bad.memory) > max(good.memory)


def test_column_shards_break_exact_rules_only():
    """Row-wise Adagrad keeps a state for each column shard in TorchRec."""
    case = make_case("small", small("rowwise_adagrad"), DEVICES)
    first, *rest = case.problem.tables
    halves = answer(case, *(ns.Shard(table="t0", rows=(0, first.rows), cols=cols, devices=device)
                            for device, cols in enumerate(((0, 32), (32, 64)))),
                    *(whole(table, 2) for table in rest))
    assert rules.rules_of(case) == ("exact", "per-shard", "unrestricted")
    assert not score(case, "per-shard", halves).problems
    found = score(case, "exact", halves)
    assert any("t0" in one and "norms of their own columns" in one for one in found.problems) and not found.step_ms
    assert "column_wise" not in rules.types_under(case, "exact")["t0"]
    assert "column_wise" in rules.types_under(case, "per-shard")["t0"]


def test_rows_that_torchrec_runs_wrong_have_no_price():
    case = make_case("small", small(), DEVICES)
    plan = answer(case, *(whole(table, 0) for table in case.problem.tables)).plan
    rows = plan.plan[""]["t0"]
    rows.sharding_type, rows.ranks = "row_wise", [0, 1]
    spec = rows.sharding_spec.shards[0]
    blocks = [type(spec)([begin, 0], [size, 64], f"rank:{rank}/cuda:{rank}")
              for rank, (begin, size) in enumerate(((0, 1_500_000), (1_500_000, 500_000)))]
    rows.sharding_spec = type(rows.sharding_spec)(blocks)
    found = score(case, "exact", contest.Planned("uneven", plan))
    assert any("t0" in one for one in found.problems) and not found.step_ms


def test_lines_and_means():
    def line(setting, step, seconds, problems=()):
        return {"rules": "exact", "setting": setting, "step_ms": step, "rating": 1,
                "seconds": seconds, "cpu_seconds": seconds, "problems": list(problems)}

    first = [line("torchrec", 4, [3, 1, 2]), line("torchrec, dynamic", 2, [5]),
             line("torchrec, only row_wise", 1, [1], ["full"]), line("neuroshard", 1, [1])]
    second = [line("torchrec", 4, [2]), line("neuroshard", 4, [1])]
    found = {"a": first, "b": second}
    best = lines_of(first, "exact")[1]
    assert (best["setting"], best["step_ms"], best["seconds"]) == ("torchrec, best of 3", 2, [9])
    assert mean_ratio(found, "exact", "step_ms", "torchrec") == "0.500"  # of 1/4 and 1
    assert mean_ratio(found, "exact", "step_ms", BEST) == "0.500"  # of 1/2, the second has none
    assert mean_ratio(found, "exact", "seconds", "torchrec") == "0.500"
    assert mean_ratio(found, "per-shard", "seconds", "torchrec") == "-"


def run(*arguments):
    return subprocess.run([tool("neuroshard-bench"), "planners", "--python", sys.executable,
                           *arguments], capture_output=True, text=True, timeout=1200, check=False)


def test_command(tmp_path):
    workload, out = tmp_path / "small.json", tmp_path / "out.json"
    small().save(workload)
    done = run(str(workload), "--devices", "2xH200", "--repeats", "2", "-o", str(out))
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text())
    assert written["devices"] == "2xH200" and written["torchrec"].startswith("1.9")
    scores = {(one["rules"], one["setting"]): one for one in written["workloads"]["small"]}
    assert len(scores["exact", "neuroshard"]["seconds"]) == 2
    for setting in ("torchrec", "neuroshard"):
        assert f"| {scores['exact', setting]['step_ms']:.4f} |" in done.stdout
    assert "geometric mean" in done.stdout and "only row_wise" in done.stdout


def refusal(capsys, monkeypatch, *arguments):
    """The one line with which main() ends before it plans anything."""
    monkeypatch.setattr(sys, "argv", ["planners", *map(str, arguments)])
    monkeypatch.setattr(planners, "compare", None)
    with pytest.raises(SystemExit) as caught:
        planners.main()
    text = str(caught.value.code)
    assert text.startswith("error: ") and "\n" not in text and not capsys.readouterr().err
    return text


@pytest.mark.parametrize(("output", "text"), [
    ("none/x.json", "there is no folder"), ("folder", "found something else there"),
    ("", "found something else there"), ("small.json", "it is a workload to be read"),
    ("link.json", "it is a workload to be read")])
def test_refuses_an_output_before_planning(tmp_path, capsys, monkeypatch, output, text):
    small().save(tmp_path / "small.json")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "small.json")
    monkeypatch.chdir(tmp_path)
    assert f"--output {output!r}: " in (found := refusal(
        capsys, monkeypatch, "small.json", "-o", output)) and text in found


def test_refuses_two_workloads_of_one_name(tmp_path, capsys, monkeypatch):
    assert "there is a workload 'small' already" in refusal(
        capsys, monkeypatch, tmp_path / "small.json", tmp_path / "other" / "small.json")


def test_writes_whole_files(tmp_path):
    """The old file stays until the new one is complete; a failure leaves no other file."""
    path = tmp_path / "out.json"
    path.write_text("before")
    with pytest.raises(TypeError):
        write_output(str(path), {"figure": object()})
    assert path.read_text() == "before"
    write_output(str(path), {"figure": 1})
    assert json.loads(path.read_text()) == {"figure": 1} and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("devices", "text"), [
    ("2xCPU", "expected GPUs of one class"), ("3xH200", "4096 samples cannot be divided among 3")])
def test_refuses_devices(devices, text):
    with pytest.raises(ValueError, match=text):
        make_case("small", small(), devices)


def test_refuses_no_repeats(capsys):
    with pytest.raises(SystemExit):
        planners.parse(["--repeats", "0"])
    assert "--repeats: expected a whole number in [1, 10000], got: '0'" in capsys.readouterr().err
