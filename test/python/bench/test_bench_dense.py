"""bench.dense: compiled and eager results agree, and both are timed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch_mlir")


def test_small_batches():
    environment = {**os.environ, "PYTHONPATH": str(Path(os.environ["NEUROSHARD_BUILD_DIR"], "python"))}
    done = subprocess.run([sys.executable, "-m", "neuroshard.bench.dense", "--batches", "3", "17", "--turns", "2"],
                          capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["3", "17"]
    assert all(float(one) > 0 for row in rows for one in row[1:])
