"""Training of tables on disk, killed at random moments, goes on from a checkpoint with the same bits."""

import json
import os
import subprocess
import sys
from pathlib import Path

from support import matrix

KILLS = 50 if os.environ.get("NEUROSHARD_ALL") else 6


def test_kills(tmp_path):
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("tier_kills.py"), str(KILLS), str(matrix.seed()),
         str(tmp_path)],
        env={**os.environ, "NEUROSHARD_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1",
             "NEUROSHARD_TIER_DIRECTORY": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=60 * KILLS)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    results = json.loads((tmp_path / "results.json").read_text())
    assert len(results) == KILLS and all(one["same"] for one in results), f"{results}\n{said}"
    assert any(one["killed"] and one["began"] for one in results), results
    # The files of killed processes are gone.
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("neuroshard-")]
