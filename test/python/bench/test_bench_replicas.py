"""bench.replicas: its table and file on two ranks, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torchrec")

ARGUMENTS = ("--rounds", "1", "--steps", "3", "--megabytes", "1", "--batch", "64", "--sync-every", "2")


def run(*arguments, optimize="1"):
    environment = {**os.environ, "PYTHONOPTIMIZE": optimize,
                   "PYTHONPATH": str(Path(os.environ["NEUROSHARD_BUILD_DIR"], "python"))}
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone",
         "-m", "neuroshard.bench.replicas", *arguments], capture_output=True, text=True,
        env=environment, timeout=600, check=False)


def test_on_two_ranks(tmp_path):
    out = tmp_path / "replicas.json"
    done = run(*ARGUMENTS, "-o", str(out))
    assert done.returncode == 0, done.stderr
    rows = {row["engine"]: row for row in json.loads(out.read_text())["engines"]}
    assert list(rows) == ["neuroshard", "dmp", "collection, groups of 1"]
    for name, every in (("neuroshard", "0"), ("dmp", "0"), ("collection, groups of 1", "2")):
        assert rows[name]["step_ms"] > 0 and list(rows[name]["difference"]) == [every]
        assert name in done.stdout
    # As without sharding; averages of copies are not.
    assert rows["neuroshard"]["difference"]["0"] < 1e-6
    assert rows["dmp"]["difference"]["0"] < 1e-6
    assert rows["collection, groups of 1"]["difference"]["2"] > 1e-4


def test_refuses_to_run_with_assertions():
    done = run(*ARGUMENTS, optimize="")
    assert done.returncode != 0
    assert "TorchRec's DMPCollection asserts a GPU; set PYTHONOPTIMIZE=1" in done.stderr
    assert "AssertionError" not in done.stderr
