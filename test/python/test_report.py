"""neuroshard-report shows a plan's cost, and refuses one that does not fit its workload."""

import json
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
                          ("--previous", str(tmp_path / "none.json"))):
        done = report(workload(tmp_path), option, value)
        assert done.returncode == 1, option
        assert value in done.stderr, done.stderr
