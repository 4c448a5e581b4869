"""Settings of the comparisons with torch: the seed of the sample is printed."""

import pytest
import torch

from support import matrix

torch.set_num_threads(1)
torch.sparse.check_sparse_tensor_invariants.enable()


def pytest_report_header():
    return f"NEUROSHARD_SEED={matrix.seed()}"


@pytest.fixture
def generator(request):
    """Random numbers that depend on the seed and on the test alone."""
    text = f"{matrix.seed()} {request.node.nodeid}"
    return torch.Generator().manual_seed(sum(map(ord, text)) * 7919 % 2**31)
