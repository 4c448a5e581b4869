"""neuroshard-report shows a plan's cost, and refuses one that does not fit its workload."""

import json
import os
import stat
import subprocess

from support import artifact


def workload(folder):
    path = folder / "workload.json"
    path.write_text(json.dumps({
        "schema": "neuroshard.workload.v1", "batch": {"global_size": 1024},
        "tables": [{"name": "a", "rows": 1 << 20, "dim": 256, "optimizer": "adam"},
                   {"name": "b", "rows": 1 << 20, "dim": 128}],
        "features": [{"name": "a_id", "table": "a"}, {"name": "b_id", "table": "b"}],
        "topology": "2xA100-40GB"}))
    return path


def plan(folder, devices_of_b):
    path = folder / "plan.json"
    shards = [{"name": "a", "table": "a", "rows": [0, 1 << 20], "cols": [0, 256], "devices": [0],
               "tier": "hbm"},
              {"name": "b", "table": "b", "rows": [0, 1 << 20], "cols": [0, 128],
               "devices": devices_of_b, "tier": "hbm"}]
    path.write_text(json.dumps({"schema": "neuroshard.plan.v1", "device_count": 2,
                                "shards": shards}))
    return path


def test_memory_by_kind(tmp_path):
    done = subprocess.run([artifact.tool("neuroshard-report"), workload(tmp_path),
                           plan(tmp_path, [1]), "--cost-model", "roofline"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cost model: roofline\n" in done.stdout
    assert "note:" not in done.stdout
    rows = [line.replace("|", " ").split() for line in done.stdout.splitlines()
            if "A100-40GB" in line]
    # Device, class, shards, GiB of weights, GiB of state: 2^20 x 256 x 4 bytes is 1 GiB, and
    # Adam keeps two values per weight.
    assert [row[:5] for row in rows] == [["0", "A100-40GB", "1", "1.00", "2.00"],
                                         ["1", "A100-40GB", "1", "0.50", "0.00"]]
    for name in ("this plan", "published", "random", "dim", "size", "lookup", "size-lookup",
                 "torchrec", "threshold"):
        assert any(line.startswith(name) for line in done.stdout.splitlines()), name


def test_plan_on_a_missing_device_is_refused(tmp_path):
    code, message = artifact.run_tool("neuroshard-report", workload(tmp_path), plan(tmp_path, [2]))
    assert code == 1
    assert "device" in message and "2" in message


def test_says_what_no_measured_model_covers(tmp_path, monkeypatch):
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("NEUROSHARD_MODELS", str(folder))
    done = subprocess.run([artifact.tool("neuroshard-report"), workload(tmp_path),
                           plan(tmp_path, [1])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "note: no measured compute model for device class A100-40GB" in done.stdout
    monkeypatch.setenv("NEUROSHARD_MODELS", str(tmp_path / "none"))
    code, message = artifact.run_tool("neuroshard-report", workload(tmp_path), plan(tmp_path, [1]))
    assert code == 1
    assert "NEUROSHARD_MODELS" in message


def report(*arguments):
    return subprocess.run([artifact.tool("neuroshard-report"), *map(str, arguments)],
                          capture_output=True, text=True, check=False)


def test_other_topologies(tmp_path):
    done = report(workload(tmp_path), "--cost-model", "roofline", "--what-if",
                  "4,2x8xA100-40GB,1xA100-40GB@1GiB")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["4", "2x8xA100-40GB", "1xA100-40GB@1GiB"]
    assert float(lines[0].split()[1]) > 0
    assert "no plan: " in lines[2]
    for wrong in ("8xB999", "0"):
        done = report(workload(tmp_path), "--what-if", wrong)
        assert done.returncode == 1 and f"--what-if {wrong}" in done.stderr


def rows_of(done):
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()[1:]]


def test_a_number_of_devices_keeps_the_links(tmp_path):
    def file(name, topology):
        content = json.loads(workload(tmp_path).read_text())
        content["topology"] = topology
        (tmp_path / name).write_text(json.dumps(content))
        return tmp_path / name

    def slow(nodes, bandwidth):
        count = sum(nodes)
        return {"levels": [{"name": "cluster", "groups": [count], "bandwidth_gb_per_s": 0.5,
                            "latency_us": 100},
                           {"name": "rack", "groups": nodes, "bandwidth_gb_per_s": bandwidth,
                            "latency_us": 50}][len(nodes) == 1:],
                "devices": [{"class": "A100-40GB", "memory_bytes": 40 << 30, "host": 0}] * count,
                "hosts": [{"memory_bytes": 1 << 40}]}

    given = file("given.json", slow([2, 2], 0.25))
    # Of 2, 3 and 4 devices: what the same topology written out costs.
    for count, nodes in ((2, [2]), (3, [2, 1]), (4, [2, 2])):
        whole = file("whole.json", slow(nodes, 0.25))
        asked = rows_of(report(given, "--cost-model", "roofline", "--what-if", count))
        written = rows_of(report(whole, "--cost-model", "roofline", "--what-if", count))
        assert asked == written, count
    (fast,) = rows_of(report(given, "--cost-model", "roofline", "--what-if", "2xA100-40GB"))
    (own,) = rows_of(report(given, "--cost-model", "roofline", "--what-if", "2"))
    assert float(own[1]) > 2 * float(fast[1])


def test_what_if_shows_the_other_rows(tmp_path):
    path = workload(tmp_path)
    content = json.loads(path.read_text())
    content["constraints"] = {"pins": [{"table": "a", "devices": [1]}]}
    path.write_text(json.dumps(content))
    rows = rows_of(report(path, "--cost-model", "roofline", "--what-if", "1,2"))
    assert rows[0][:3] == ["1", "no", "plan:"] and "devices" in rows[0]
    assert float(rows[1][1]) > 0
    done = report(path, "--what-if", "2,8xB999")
    assert done.returncode == 1 and done.stdout == "" and "--what-if 8xB999" in done.stderr


def test_where_no_plan_can_be_written_none_is_made(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    file = workload(tmp_path)
    before = file.read_text()
    for output, message in ((pipe, "it is there and is no file"), ("", "empty"),
                            (tmp_path, "is no file"), (tmp_path / "no" / "x", "no folder"),
                            (file, "is an input")):
        done = report(file, "--cost-model", "roofline", "-o", output)
        assert done.returncode == 1 and done.stdout == "", output
        assert message in done.stderr, done.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode) and file.read_text() == before


def test_options_without_effect_are_refused(tmp_path):
    file, given = workload(tmp_path), plan(tmp_path, [1])
    for arguments in (("--horizon-steps", 10), (given, "--algorithm", "random"),
                      (given, "--previous", given), (given, "--what-if", 2),
                      ("--what-if", 2, "-o", tmp_path / "plan2.json"),
                      ("--what-if", 2, "--previous", given),
                      (given, "--no-baselines", "--deadline", 1),
                      (given, "--no-baselines", "--seed", 1),
                      (given, "--no-baselines", "--evaluations", 1),
                      ("--no-baselines", "--policy", given)):
        done = report(file, *arguments)
        assert done.returncode == 1 and done.stdout == "", arguments
        assert "requires" in done.stderr or "excludes" in done.stderr, done.stderr
    done = report(file, given, "--cost-model", "roofline", "--seed", 2**64 - 1)
    assert done.returncode == 0, done.stderr


def test_a_plan_in_use_is_kept_and_says_so(tmp_path):
    first = tmp_path / "first.json"
    done = report(workload(tmp_path), "--cost-model", "roofline", "-o", first, "--no-baselines")
    assert done.returncode == 0, done.stderr
    assert "bottleneck: device" in done.stdout and "against the other" not in done.stdout
    done = report(workload(tmp_path), "--cost-model", "roofline", "--previous", first,
                  "--horizon-steps", "1000", "--no-baselines", "-o", tmp_path / "second.json")
    assert done.returncode == 0, done.stderr
    assert "moves 0 B in 0.000 ms" in done.stdout
    assert "(horizon: 1e+03 steps)" in done.stdout
    second = json.loads((tmp_path / "second.json").read_text())
    assert second["shards"] == json.loads(first.read_text())["shards"]


def test_bad_options_are_named(tmp_path):
    for option, value in (("--algorithm", "best"), ("--deadline", "-1"),
                          ("--horizon-steps", "nan"), ("--target", "what"),
                          ("--threads", "100000"), ("--batch", "0"), ("--batch", str(1 << 32)),
                          ("--seed", "-1"), ("--seed", str(1 << 64)), ("--seed", "1e3"),
                          ("--evaluations", "-1"), ("--evaluations", str(1 << 63)),
                          ("--pipeline-depth", "0"),
                          ("--previous", str(tmp_path / "none.json"))):
        done = report(workload(tmp_path), option, value)
        assert done.returncode == 1, option
        assert value in done.stderr, done.stderr
    for option in ("--topology", "--previous", "--policy", "--cost-model", "--target"):
        done = report(workload(tmp_path), option, "")
        assert done.returncode == 1 and option in done.stderr, done.stderr
    assert report(workload(tmp_path), "").returncode == 1
    assert report("").returncode == 1
