"""Loading and judging plans takes time in proportion to their tables, shards and devices."""

import os
import pathlib
import subprocess
import sys

import neuroshard
import pytest

INPUTS = pathlib.Path(__file__).parents[2] / "Inputs"
PACKAGES = str(pathlib.Path(neuroshard.__file__).parents[1])


@pytest.mark.parametrize("kind", ["tables", "devices"])
def test_judging_a_plan(kind, tmp_path):
    done = subprocess.run(
        [sys.executable, str(INPUTS / "growth.py"), "--sizes", "4000", "16000", "--mib", "4096",
         "--", sys.executable, str(INPUTS / "large_problem.py"), kind, "{}", str(tmp_path)],
        capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=PACKAGES))
    assert done.returncode == 0, done.stdout + done.stderr
