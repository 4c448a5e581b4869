"""Settings of the comparisons with torch: the seed of the sample is printed. The Python
package is that of the build."""

import os
import re
import sys
from pathlib import Path

import pytest
import torch

from support import matrix

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
sys.path.insert(0, str(BUILD / "python"))

# A build with sanitizers has no Python module, as a plain interpreter cannot load them.
if re.search(r"^NEUROSHARD_SANITIZE:\w+=.", (BUILD / "CMakeCache.txt").read_text(), re.M):
    collect_ignore_glob = ["planner/test_planner_*", "checkpoint/*", "faults/*", "cli/*",
                           "export/*"]

torch.set_num_threads(1)
torch.sparse.check_sparse_tensor_invariants.enable()


def pytest_report_header():
    return f"NEUROSHARD_SEED={matrix.seed()}"


@pytest.fixture
def generator(request):
    """Random numbers that depend on the seed and on the test alone."""
    text = f"{matrix.seed()} {request.node.nodeid}"
    return torch.Generator().manual_seed(sum(map(ord, text)) * 7919 % 2**31)
