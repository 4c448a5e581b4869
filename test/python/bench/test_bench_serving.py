"""bench.serving: its table for each type, with results that agree."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("dtype, contenders", [
    ("int8", ["ours", "torch", "tbe"]), ("int4", ["ours", "torch", "tbe"]), ("fp8", ["ours", "tbe"]),
    ("f16", ["ours", "tbe"])])
def test_small_tables(dtype, contenders):
    environment = {**os.environ, "PYTHONPATH": str(Path(os.environ["NEUROSHARD_BUILD_DIR"], "python"))}
    done = subprocess.run(
        [sys.executable, "-m", "neuroshard.bench.serving", "--tables", "2", "--rows", "50", "--dim", "16",
         "--pooling", "3", "--turns", "2", "--seconds", "0.01", "--batches", "1", "5", "--dtype", dtype],
        capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    assert [row[:2] for row in rows] == [[batch, name] for batch in ("1", "5") for name in contenders]
    for _, name, median, last, per_second, ratio in rows:
        assert 0 < float(median) <= float(last) and float(per_second) > 0, name
        assert (name == "ours") == ratio.startswith("1.00 (1.00, 1.00)") or float(ratio.split()[0]) > 0
