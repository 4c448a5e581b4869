"""bench.pipelined: its table and file on two ranks, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from neuroshard.bench import pipelined


def test_on_two_ranks(tmp_path):
    out = tmp_path / "pipelined.json"
    environment = {**os.environ, "PYTHONPATH": str(Path(os.environ["NEUROSHARD_BUILD_DIR"],
                                                        "python"))}
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone",
         "-m", "neuroshard.bench.pipelined", "--model", "3x4,8,2", "--rounds", "2", "--steps", "2",
         "-o", str(out)], capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "on 2 ranks" in done.stdout
    written = json.loads(out.read_text())
    assert (written["schema"], written["ranks"]) == ("neuroshard.pipelined/1", 2)
    row, = written["steps"]
    assert row["model"] == "3x4,8,2" and row["ids"] > 0 and row["ahead"] > 0
    assert row["predicted_plain"] >= row["predicted_ahead"] > 0
    dense = max(0, row["ids"] - row["kernels"])
    assert row["plain"] > dense and row["ahead"] > dense


@pytest.mark.parametrize(("arguments", "text"), [
    (("--model", "20x32"), "expected TABLESxDIM,BATCH,POOLING such as"),
    (("--rounds", "1"), "--rounds: expected a whole number in [2, 100000], got: '1'"),
    (("-o", "none/step.json"), "--output 'none/step.json': there is no folder"),
])
def test_refuses(arguments, text, capsys):
    with pytest.raises(SystemExit) as end:
        pipelined.parse(list(arguments))
    assert end.value.code != 0 and text in capsys.readouterr().err
