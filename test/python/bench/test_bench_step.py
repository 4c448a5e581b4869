"""neuroshard-bench step: its table and file on one and two ranks, and what it refuses."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torchrec")

from neuroshard.bench import step as bench_step
from support.artifact import tool


def run(*arguments):
    return subprocess.run([tool("neuroshard-bench"), "step", "--python", sys.executable,
                           *arguments], capture_output=True, text=True, timeout=1200, check=False)


def test_on_two_ranks_beside_torchrec(tmp_path):
    out = tmp_path / "step.json"
    done = run("--model", "3x8,16,2", "--model", "2x4,8,1", "--engines", "neuroshard,torchrec",
               "--rounds", "2", "--steps", "2", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert "on 2 ranks" in done.stdout
    written = json.loads(out.read_text())
    assert (written["schema"], written["ranks"]) == ("neuroshard.step/1", 2)
    assert [(row["model"], row["engine"]) for row in written["steps"]] == [
        ("3x8,16,2", "neuroshard"), ("3x8,16,2", "torchrec"),
        ("2x4,8,1", "neuroshard"), ("2x4,8,1", "torchrec")]
    for row in written["steps"]:
        assert row["wall"] > 0 and row["cpu"] > 0
        assert (row["phases"] > 0) == (row["engine"] == "neuroshard")


def test_one_rank_tells_the_host_apart(tmp_path):
    out = tmp_path / "step.json"
    done = run("--ranks", "1", "--model", "3x8,16,2", "--engines", "apart,neuroshard", "--input",
               "jagged", "--optimizer", "adagrad", "--rounds", "2", "--steps", "5", "-o", str(out))
    assert done.returncode == 0, done.stderr
    apart, whole = json.loads(out.read_text())["steps"]
    assert f"{apart['cpu'] - apart['phases']:.3f}" in done.stdout
    assert apart["cpu"] < apart["wall"]  # without the dense work
    assert whole["engine"] == "neuroshard" and whole["phases"] > 0


@pytest.mark.parametrize(("arguments", "text"), [
    (("--model", "20x32"), "expected TABLESxDIM,BATCH,POOLING such as 20x32,256,4, got: '20x32'"),
    (("--engines", "neuroshard,best"), "unknown engine 'best'; there are neuroshard, torchrec"),
    (("--rounds", "1"), "--rounds: expected a whole number in [2, 100000], got: '1'"),
    (("-o", "none/step.json"), "--output 'none/step.json': there is no folder"),
])
def test_refuses(arguments, text, capsys):
    with pytest.raises(SystemExit) as end:
        bench_step.parse(list(arguments))
    assert end.value.code != 0 and text in capsys.readouterr().err
