"""neuroshard plan, compare, explain, what-if print the results of the API."""

import json
import os
import stat

import pytest

import neuroshard as ns
from support.commands import make_runner
from support.planning import small_problem


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return make_runner(capsys, tmp_path)


def cut_problem():
    """A problem with a table that is faster when cut."""
    return small_problem(tables=[ns.Table("big", 1_000_000, 128), ns.Table("tiny", 100, 8)],
                         features=[ns.Feature("big_id", "big", mean_pooling=50),
                                   ns.Feature("tiny_id", "tiny")],
                         constraints=ns.Constraints(tables=[ns.TableRule("tiny", ["table_wise"]),
                                                            ns.TableRule("big", ["row_wise",
                                                                                 "table_wise"])]))


def test_plan_writes_the_plan_of_the_api(run, tmp_path):
    done = run("plan", "small.json", "-o", "plan.json", "--seed", 3, "--cost-model", "roofline")
    expected = ns.plan(small_problem(), seed=3, cost_model="roofline")
    assert done.code == 0
    assert ns.Plan.load(tmp_path / "plan.json") == expected.plan
    assert f"{expected.cost_ms:.3f} ms per step" in done.out
    for sentence in expected.explanation:
        assert sentence in done.out


def test_plan_as_json(run):
    found = run("plan", "small.json", "--json", "--batch", 8192, "--topology", "4xCPU@4GiB").json
    expected = ns.plan(small_problem(batch=8192, topology="4xCPU@4GiB"))
    assert found["cost_ms"] == expected.cost_ms
    assert found["explanation"] == list(expected.explanation)
    assert ns.Plan.from_json(json.dumps(found["plan"])) == expected.plan
    assert [one["peak_bytes"] for one in found["memory"]["devices"]] == [
        one.peak_bytes for one in expected.memory.devices]
    assert found["buffers"] == {kind: list(one) for kind, one in expected.buffers.items()}


def test_plan_shows_the_buffers_of_a_step_by_kind(run, tmp_path):
    """By hand: 'b' lies whole on device 1 and has 32 samples of 3 ids and 8 columns in f32."""
    problem = ns.ShardingProblem(
        tables=[ns.Table("a", 100, 4), ns.Table("b", 100, 8)],
        features=[ns.Feature("f", "a"), ns.Feature("g", "b", mean_pooling=3)], batch=32,
        topology="2xCPU@4GiB")
    problem.save(tmp_path / "two.json")
    ns.Plan(device_count=2, shards=[
        ns.Shard(table="a", rows=(0, 100), cols=(0, 4), devices=0),
        ns.Shard(table="b", rows=(0, 100), cols=(0, 8), devices=1)]).save(tmp_path / "plan.json")
    found = run("plan", "two.json", "--given", "plan.json", "--json").json["buffers"]
    assert all(len(devices) == 2 for devices in found.values())
    assert found["partials"] == [32 * 4 * 4, 32 * 8 * 4]
    assert found["headers"] == [2 * (5 + 1) * 8] * 2
    assert found["norms"] == [0, 0]
    shown = run("plan", "two.json", "--given", "plan.json").out
    lines = shown.split("Buffers of a step")[1].split("No table is cut")[0].splitlines()
    rows = {line.split("  ")[0]: line.split("  ")[1:] for line in lines if line.strip()}
    assert list(rows) == ["kind", *(kind.replace("_", " ") for kind, devices in found.items()
                                    if any(devices))]
    assert [one.strip() for one in rows["partials"] if one] == ["1.0 KiB", "1", "768 B"]
    # Buffers of others' steps are not known.
    foreign = run("plan", "two.json", "--given", "plan.json", "--target", "torchrec-1.9")
    assert foreign.code == 0 and "Buffers" not in foreign.out


def test_plan_from_a_previous_one(run):
    assert run("plan", "small.json", "-o", "old.json").code == 0
    found = run("plan", "small.json", "--previous", "old.json", "--json").json
    assert found["migration"]["bytes"] == 0
    assert found["migration"]["previous_cost_ms"] == found["cost_ms"]


def test_plan_of_a_function(run, tmp_path):
    (tmp_path / "beside.py").write_text("ROWS = 100_000\n")
    (tmp_path / "model.py").write_text(
        "import neuroshard as ns\nfrom beside import ROWS\n"
        "def build():\n"
        "    return ns.ShardingProblem(tables=[ns.Table('t', ROWS, 16)],\n"
        "                              features=[ns.Feature('f', 't')], batch=64)\n")
    found = run("plan", "model.py:build", "--topology", "2xCPU", "--json").json
    assert {one["table"] for one in found["plan"]["shards"]} == {"t"}


@pytest.mark.parametrize("arguments, said", [
    (["plan", "none.json"], "there is no file none.json"),
    (["plan", "broken.json"], "broken.json"),
    (["compare", "small.json", "latin.json"], "latin.json: json: "),
    (["plan", "model.py:build"], "ZeroDivisionError: division by zero (model.py, line 2)"),
    (["plan", "model.py:other"], "no function other; it has build, leave"),
    (["plan", "model.py:leave"], "model.py:leave: SystemExit: 0 (model.py, line 5)"),
    (["plan", "asks.py:build"], "build() missing 1 required positional argument: 'rows' (asks.py)"),
    (["plan", "left.py:build"], "left.py:build: SystemExit: 0 (left.py, line 1)"),
    (["plan", "small.json", "--topology", "8xTPU"], "TPU"),
    (["plan", "small.json", "--topology", "1xCPU@1MiB"], "device memory"),
    (["plan", "small.json", "--optimizer", "sgd"], "--optimizer"),
    (["explain", "small.json", "small.json"], "plan.v1"),
    (["explain", "small.json", ""], "there is no file ; expected a plan"),
    (["explain", "small.json", "-t", "nothing"], "there is no table 'nothing'"),
    (["explain", "small.json", "-t", "usr"], "there is no table 'usr'; did you mean 'user'?"),
    (["compare", "small.json", "none.json"], "there is no file none.json"),
    (["plan", "small.json", "-o", "none/plan.json"], "none/plan.json"),
])
def test_wrong_input_is_one_error(run, tmp_path, arguments, said):
    (tmp_path / "broken.json").write_text('{"schema": ')
    (tmp_path / "latin.json").write_bytes(b'{"schema": "\xfc"}')
    (tmp_path / "model.py").write_text("def build():\n    1 / 0\n\n"
                                       "def leave():\n    raise SystemExit(0)\n")
    (tmp_path / "left.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "asks.py").write_text("def build(rows): pass\n")
    done = run(*arguments)
    assert done.code == 1
    assert done.err.startswith("error: ") and said in done.err
    assert "Traceback" not in done.err and done.out == ""
    as_json = run(*arguments, "--json")
    assert as_json.code == 1 and said in as_json.json["error"]["message"]


@pytest.mark.parametrize("arguments", [
    ["plan"], ["plan", "small.json", "--nothing"], ["nothing"], ["what-if", "small.json"],
    ["plan", "small.json", "--algorithm", "nothing"], ["plan", "small.json", "--seed", "x"]])
def test_wrong_usage_exits_with_2(run, arguments):
    done = run(*arguments)
    assert done.code == 2 and "Usage: neuroshard" in done.err


def test_compare_ranks_plans_and_algorithms(run):
    assert run("plan", "small.json", "-o", "mine.json").code == 0
    found = run("compare", "small.json", "mine.json", "-a", "dim", "-a", "size", "--json").json
    costs = {one["name"]: one["cost_ms"] for one in found["plans"]}
    assert costs["dim"] == ns.plan(small_problem(), algorithm="dim").cost_ms
    assert costs["size"] == ns.plan(small_problem(), algorithm="size").cost_ms
    assert costs["mine.json"] == ns.plan(small_problem()).cost_ms
    assert list(costs.values()) == sorted(costs.values())
    shown = run("compare", "small.json", "mine.json", "-a", "dim").out
    assert f"{costs['dim']:.3f}" in shown and "mine.json" in shown


def test_compare_says_which_have_no_plan(run, tmp_path):
    cut_problem().replace(topology="8xCPU@400MiB").save(tmp_path / "tight.json")
    run("plan", "small.json", "-o", "other.json")
    done = run("compare", "small.json", "other.json", "--topology", "4xCPU@4GiB", "-a", "dim")
    assert done.code == 0 and "other.json: no plan: " in done.out
    none = run("compare", "small.json", "other.json", "--topology", "4xCPU@4GiB")
    assert none.code == 1 and "step, ms" not in none.out and "other.json: no plan: " in none.out


def test_a_plan_that_is_given_is_shown(run, tmp_path):
    """Weights and state by kind: 2^20 x 256 x 4 bytes is 1 GiB, and Adam keeps two values."""
    rows = 1 << 20
    problem = ns.ShardingProblem(
        tables=[ns.Table("a", rows, 256, optimizer="adam"), ns.Table("b", rows, 128)],
        features=[ns.Feature("a_id", "a"), ns.Feature("b_id", "b")], batch=1024,
        topology="2xA100-40GB")
    problem.save(tmp_path / "two.json")
    plan = ns.Plan(device_count=2, shards=[
        ns.Shard(table="a", rows=(0, rows), cols=(0, 256), devices=0),
        ns.Shard(table="b", rows=(0, rows), cols=(0, 128), devices=1)])
    plan.save(tmp_path / "given.json")
    found = run("plan", "two.json", "--given", "given.json", "-m", "roofline", "--json").json
    memory = found["memory"]["devices"]
    assert [(one["weights_bytes"], one["optimizer_state_bytes"]) for one in memory] == [
        (1 << 30, 2 << 30), (1 << 29, 0)]
    assert found["cost_ms"] == ns.evaluate(problem, plan, cost_model="roofline").cost_ms
    plan.replace(shards=[plan.shards[0], plan.shards[1].replace(devices=(2,))]).save(
        tmp_path / "wrong.json")
    wrong = run("plan", "two.json", "--given", "wrong.json")
    assert wrong.code == 1 and "device" in wrong.err


def test_options_without_effect_are_refused(run):
    assert run("plan", "small.json", "-o", "given.json").code == 0
    for arguments in (("--horizon-steps", 10), ("--given", "given.json", "--seed", 1),
                      ("--given", "given.json", "--previous", "given.json", "--tolerance", 0.5),
                      ("--given", "given.json", "--algorithm", "dim"),
                      ("--given", "given.json", "-o", "plan2.json")):
        done = run("plan", "small.json", *arguments)
        assert done.code == 2 and "Usage" in done.err, arguments
    for arguments in (("--policy-samples", 3), ("--beam-width", 5),
                      ("-a", "random", "--policy", "x.safetensors")):
        done = run("plan", "small.json", *arguments)
        flag = next(one for one in arguments if str(one).startswith("--"))
        assert done.code == 1 and f"error: {flag}: only the algorithm '" in done.err, done.err
    done = run("plan", "small.json", "--objective", "published", "--pipeline-depth", 4)
    assert done.code == 1 and done.err == (
        "error: --pipeline-depth: only the objective 'step' reads it, and the objective is "
        "'published'\n")
    done = run("compare", "small.json", "-a", "dim", "-a", "size", "--beam-width", 2)
    assert done.code == 1 and done.err == (
        "error: --beam-width: only the algorithm 'published' reads it, and the algorithms are "
        "'dim', 'size'\n")
    done = run("compare", "small.json", "given.json", "--seed", 2)
    assert done.code == 2 and "--seed has no effect" in done.err, done.err
    done = run("what-if", "small.json", "-n", 2, "-a", "size", "--beam-width", 3)
    assert done.code == 1 and done.err == (
        "error: --beam-width: only the algorithm 'published' reads it, and the algorithm is "
        "'size'\n")


def test_where_no_plan_can_be_written_none_is_made(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    before = (tmp_path / "small.json").read_text()
    for output, message in (("pipe", "something other than a file"), (".", "other than a file"),
                            ("no/x", "no folder"), ("small.json", "is an input"),
                            ("a\udcff", "--output: expected a text that UTF-8 can hold")):
        done = run("plan", "small.json", "-o", output)
        assert done.code == 1 and done.out == "" and message in done.err, done.err
    for arguments in (("plan", "small.json", "-o"), ("plan", "small.json", "--html"),
                      ("profile", "small.json", "none.npz", "-o"),
                      ("calibrate", "-o"),
                      ("calibrate", "none.json", "--workload", "small.json", "--plan", "none.json",
                       "-o")):
        done = run(*arguments, "no/x")
        assert done.code == 1 and done.out == "", arguments
        assert done.err == "error: no/x: cannot write: there is no folder 'no'\n", done.err
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert (tmp_path / "small.json").read_text() == before


def test_code_is_not_overwritten(run, tmp_path):
    """The file of a function is an input as others are."""
    code = ("import neuroshard as ns\n\ndef build():\n"
            "    return ns.ShardingProblem.load('small.json')\n")
    (tmp_path / "model.py").write_text(code)
    (tmp_path / "link.py").symlink_to("model.py")
    for arguments in (("plan", "model.py:build", "-o"), ("plan", "model.py:build", "--html"),
                      ("profile", "model.py:build", "a.npz", "-o"),
                      ("profile", "small.json", "model.py:build", "-o"),
                      ("calibrate", "run.json", "--workload", "model.py:build", "--plan",
                       "plan.json", "-o")):
        for output in ("model.py", "link.py"):
            done = run(*arguments, output)
            assert (done.code, done.out, done.err) == (
                1, "", f"error: {output} is an input; name another file to write\n"), arguments
    assert (tmp_path / "model.py").read_text() == code


def test_two_outputs_are_two_files(run, tmp_path):
    """Also through a link, and where the file does not exist yet."""
    (tmp_path / "link").symlink_to("new.x")
    (tmp_path / "folder").symlink_to(".")
    (tmp_path / "old.x").write_text("old")
    os.link(tmp_path / "old.x", tmp_path / "twin.x")
    before = set(os.listdir(tmp_path))
    for plan, report in (("new.x", "new.x"), ("new.x", "./new.x"), ("new.x", "link"),
                         ("folder/new.x", "new.x"), ("old.x", "old.x"), ("old.x", "twin.x")):
        done = run("plan", "small.json", "-o", plan, "--html", report)
        assert (done.code, done.out, done.err) == (
            1, "", f"error: --output {plan} and --html {report} are the same file; name another "
                   "for one of them\n")
    assert set(os.listdir(tmp_path)) == before and (tmp_path / "old.x").read_text() == "old"


def test_options_out_of_range_are_named(run):
    assert run("plan", "small.json", "-o", "old.json").code == 0
    for flag, value in (("--deadline-s", "-1"), ("--threads", "100000"), ("--seed", "-1"),
                        ("--seed", str(1 << 64)), ("--evaluation-budget", "-1"),
                        ("--pipeline-depth", "0"), ("--dense-rest-ms", "nan"),
                        ("--beam-width", "-1"), ("--tolerance", "inf"), ("--tolerance", "2"),
                        ("--horizon-steps", "nan")):
        done = run("plan", "small.json", "--previous", "old.json", flag, value)
        assert (done.code, done.out) == (1, "") and value in done.err, done.err
        assert done.err.startswith(f"error: {flag}: expected a "), done.err


def test_compare_gives_each_algorithm_its_own_options(run):
    found = run("compare", "small.json", "-a", "dim", "-a", "published", "--depth", 0,
                "--json").json
    settings = {one["name"]: one["cost_ms"] for one in found["plans"]}
    assert settings["published"] == ns.plan(
        small_problem(), algorithm="published", published=ns.PublishedSettings(depth=0)).cost_ms


def test_explain_costs_each_cut_table_whole(run, tmp_path):
    problem = cut_problem()
    problem.save(tmp_path / "cut.json")
    assert run("plan", "cut.json", "-o", "plan.json").code == 0
    found = run("explain", "cut.json", "plan.json", "--json").json
    plan = ns.Plan.load(tmp_path / "plan.json")
    assert len(plan.shards_of("big")) > 1 and [one["table"] for one in found["tables"]] == ["big"]
    whole = [ns.evaluate(problem, plan.replace(shards=[
        *plan.shards_of("tiny"), ns.Shard(table="big", rows=(0, 1_000_000), cols=(0, 128),
                                          devices=device)])).cost_ms for device in (0, 1)]
    assert found["tables"][0]["other_ms"] == pytest.approx(min(whole))
    assert min(whole) > found["cost_ms"]
    assert found["tables"][0]["other_device"] == whole.index(min(whole))
    # The search words the same of its own plan.
    sentence = next(one for one in run("explain", "cut.json", "--json").json["explanation"]
                    if one.startswith("table 'big'"))
    assert f"{min(whole):.3f} ms" in sentence
    assert sentence.endswith("; " + found["tables"][0]["why"])


def test_explain_says_what_bf16_on_the_wire_brings(run, tmp_path):
    problem = cut_problem().replace(topology="2x1xCPU@4GiB@100mbit")
    problem.save(tmp_path / "slow.json")
    assert run("plan", "slow.json", "-o", "plan.json").code == 0
    found = run("explain", "slow.json", "plan.json", "--json").json
    plan = ns.Plan.load(tmp_path / "plan.json")
    smaller = problem.replace(batch=problem.batch.replace(wire_type="bf16"))
    assert found["bf16_wire_ms"] == ns.evaluate(smaller, plan).cost_ms < found["cost_ms"]
    shown = run("explain", "slow.json", "plan.json").out
    assert f"would take {found['bf16_wire_ms']:.3f} ms instead of {found['cost_ms']:.3f}" in \
        " ".join(shown.split())
    # Of two devices that hold parts of the table, results and gradients are as many bytes.
    for one in ("f32/bf16", "bf16/f32"):
        apart = problem.replace(batch=problem.batch.replace(wire_type=one))
        cost = ns.evaluate(apart, plan).cost_ms
        assert found["bf16_wire_ms"] < cost < found["cost_ms"] and found["wire_ms"][one] == cost
        assert f'{cost:.3f} ms with "{one}"' in " ".join(shown.split())
    smaller.save(tmp_path / "small.json")
    assert run("explain", "small.json", "plan.json", "--json").json["bf16_wire_ms"] is None


def test_explain_of_a_plan_without_room_for_bf16(run, tmp_path):
    """Casts of rows to bf16 take memory that f32 does not."""
    problem = cut_problem().replace(topology="2x1xCPU@4GiB@100mbit")
    plan = ns.plan(problem).plan
    most = max(one.peak_bytes for one in ns.inspect(problem, plan).memory.devices)
    full = problem.replace(topology=f"2x1xCPU@{most}B@100mbit")
    full.save(tmp_path / "full.json")
    plan.save(tmp_path / "plan.json")
    found = run("explain", "full.json", "plan.json", "--json")
    assert found.code == 0 and found.json["wire_ms"] == {}


def test_the_search_chooses_the_wire_type(run, tmp_path):
    problem = cut_problem().replace(topology="2x1xCPU@4GiB@100mbit")
    problem.save(tmp_path / "slow.json")
    assert run("plan", "slow.json", "--wire-types", "auto", "-o", "plan.json").code == 0
    plan = ns.Plan.load(tmp_path / "plan.json")
    smaller = problem.replace(batch=problem.batch.replace(wire_type="bf16"))
    assert plan.chosen_wire_type == "bf16" and plan.complete(problem) == smaller
    found = run("explain", "slow.json", "plan.json", "--json").json
    assert found["cost_ms"] == ns.evaluate(smaller, plan).cost_ms
    assert found["cost_ms"] == ns.evaluate(problem, plan).cost_ms
    assert found["bf16_wire_ms"] is None
    assert run("plan", "slow.json", "--wire-types", "f8").code != 0
    # Without a choice it is the problem's.
    assert ns.plan(problem).plan.chosen_wire_type == ""
    assert ns.plan(problem).plan.complete(problem) is problem


def test_explain_of_a_whole_table(run, tmp_path):
    problem = cut_problem()
    problem.save(tmp_path / "cut.json")
    shard, = ns.plan(problem).plan.shards_of("tiny")
    found = run("explain", "cut.json", "--table", "tiny", "--json").json["tables"][0]
    assert found["cut_by"] == "whole" and found["other_device"] == 1 - shard.devices[0]


def test_explain_of_copies(run, tmp_path):
    """Of a whole table and of cut ones, on some devices."""
    rows = {"a": 100, "b": 200, "c": 50}
    problem = ns.ShardingProblem(
        tables=[ns.Table(name, count, 8) for name, count in rows.items()],
        features=[ns.Feature(f"{name}_ids", name) for name in rows], batch=64,
        topology="2x2xCPU@4GiB")
    problem.save(tmp_path / "problem.json")

    def shard(table, of_rows, devices):
        return ns.Shard(table=table, rows=of_rows, cols=(0, 8), devices=devices)

    shards = [shard("a", (0, 100), (1, 3)), shard("b", (0, 80), (0, 2, 3)),
              shard("b", (80, 200), 1), shard("c", (0, 50), range(4))]
    ns.Plan(shards=shards, device_count=4).save(tmp_path / "plan.json")
    found = {one["table"]: one
             for one in run("explain", "problem.json", "plan.json", "--json").json["tables"]}
    assert {name: one["cut_by"] for name, one in found.items()} == {
        "a": "copies", "b": "rows", "c": "replicated"}
    shown = run("explain", "problem.json", "plan.json").out
    assert "copied to 2 devices" in shown and "copied to 3 devices" in shown
    for name in rows:
        kept = [one for one in shards if one.table != name]
        costs = [ns.inspect(problem, ns.Plan(
            shards=[*kept, shard(name, (0, rows[name]), device)], device_count=4)).cost_ms
            for device in range(4)]
        assert found[name]["other_ms"] == pytest.approx(min(costs))


def test_explain_when_a_whole_table_does_not_fit(run, tmp_path):
    cut_problem().replace(memory_model="weights_only", topology="2xCPU@300MiB").save(
        tmp_path / "tight.json")
    found = run("explain", "tight.json", "--json").json["tables"][0]
    assert found["other_ms"] is None and found["other_device"] is None
    assert found["why"] == ("whole, it needs 488.3 MiB, and no device has more than 300.0 MiB left "
                            "for it")


def test_explain_of_a_plan_with_snapshots(run, tmp_path):
    """Both costs are means over the snapshots."""
    problem = cut_problem().replace(snapshots=[
        ns.Snapshot("day", features=[ns.FeatureStatistics("big_id", mean_pooling=90)]),
        ns.Snapshot("night", features=[ns.FeatureStatistics("big_id", mean_pooling=1)])])
    problem.save(tmp_path / "periods.json")
    assert run("plan", "periods.json", "-o", "plan.json").code == 0
    found = run("explain", "periods.json", "plan.json", "--json").json
    table, = found["tables"]
    change = table["other_ms"] / found["cost_ms"] - 1
    assert f"({100 * change:+.1f} %), on device {table['other_device']}" in table["why"]


def test_what_if_over_clusters(run):
    found = run("what-if", "small.json", "-c", "2xH200", "-c", "1xCPU@1MiB", "-n", 4, "--json")
    expected = ns.what_if(small_problem(), topologies=["2xH200", "1xCPU@1MiB"], devices=4)
    cases = found.json["cases"]
    assert found.code == 0
    assert [one["name"] for one in cases] == ["2xH200", "1xCPU@1MiB", "devices=4"]
    assert [one.get("cost_ms") for one in cases] == [one.cost_ms for one in expected]
    assert cases[1]["error"]["limit"] == "device memory"
    shown = run("what-if", "small.json", "-c", "1xCPU@1MiB")
    assert shown.code == 1 and "no plan: device memory" in shown.out


def test_an_unknown_cluster_is_a_row_of_what_if(run):
    found = run("what-if", "small.json", "-c", "2xH20O", "-c", "2xh200")
    assert found.code == 0 and "not known" in found.out
    assert "2xH20O: topology: unknown device class 'H20O' in '2xH20O'; did you mean 'H200'?" in found.out
    cases = run("what-if", "small.json", "-c", "2xH20O", "-c", "2xh200", "--json").json["cases"]
    assert [(one["topology"], one["device_count"]) for one in cases] == [(None, None), ("2 H200 of 139.0 GiB", 2)]
    assert cases[0]["error"]["limit"] == "bad input" and cases[1]["cost_ms"] > 0
    assert run("what-if", "small.json", "-c", "2xH20O").code == 1


def test_what_if_of_a_workload_without_devices(run, tmp_path):
    small_problem(topology=None).save(tmp_path / "bare.json")
    found = run("what-if", "bare.json", "-c", "2xH200", "--json").json["cases"]
    assert found[0]["cost_ms"] == ns.plan(small_problem(topology="2xH200")).cost_ms
    counted = run("what-if", "bare.json", "-c", "2xH200", "-n", 4)
    assert counted.code == 1 and "add --topology" in counted.err
