"""Machine code for the usual shapes of rows within the limits of tools/gpu/check_sass.py: above all,
nothing of a thread's own in memory, but for two weaknesses. Each dim, type and optimizer is a
program by itself, since bodies of one kernel share its registers."""

import itertools
import os
import sys
from pathlib import Path

import pytest

from support import artifact, matrix
from support.model import DTYPES, Input, Lookup, Model, Optimizer, Plan, Shard, Table

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tools" / "gpu"))
import check_sass  # noqa: E402

OPTIMIZERS = ("sgd", "ftrl", "adagrad", "rowwise_adagrad", "adam", "momentum", "adamw",
              "partial_rowwise_adam", "rowwise_rmsprop", "lars_sgd", "lamb", "partial_rowwise_lamb",
              "rowwise_adagrad_with_counter")
POOLINGS = (("sum", True), ("sum", False), ("unpooled", False))
DIMS = (4, 8, 16, 32, 48, 64, 96, 100, 128, 192, 256, 512, 1024)
GRID = list(itertools.product(DIMS, DTYPES, OPTIMIZERS, POOLINGS))
CASES = GRID if os.environ.get("NEUROSHARD_ALL") else matrix.sample(GRID, 6, "gpu registers")
# What the two weaknesses that docs/cuda.md states keep in memory.
KNOWN_STACK_BYTES = 8


# Of updates: of rows whose lanes are all busy and read once (they have a body for short runs), of
# other rows whose lanes are all busy; check_sass.LIMITS is for idle lanes.
BUSY_DIMS, BUSY_STACK_BYTES = (4, 8, 16, 32, 64, 128), 48
WIDE_DIMS, WIDE_STACK_BYTES = (256, 512, 1024), 8


# Addresses more: of the first moments beside the state per row; with a trust ratio, of what a second
# pass over the row reads and writes again.
MORE_STACK_BYTES = {"partial_rowwise_adam": 8, "lars_sgd": 8, "lamb": 40, "partial_rowwise_lamb": 40}


def most_stack_bytes(kernel, dim, optimizer):
    if kernel.base_name in ("nsg_update", "nsg_reduce"):
        more = MORE_STACK_BYTES.get(optimizer, 0)
        if dim in BUSY_DIMS:
            return BUSY_STACK_BYTES + more
        if dim in WIDE_DIMS:
            return WIDE_STACK_BYTES + more
    return check_sass.LIMITS[kernel.base_name].stack_bytes + KNOWN_STACK_BYTES


def is_known(kernel, dim, element, optimizer, pooling):
    known = {"nsg_lookup": dim in (256, 1024) and element == "f32"
             and pooling == ("sum", False)}
    return (known.get(kernel.base_name, False) and 0 < kernel.stack_bytes <= KNOWN_STACK_BYTES
            and kernel.registers <= check_sass.LIMITS[kernel.base_name].registers)


@pytest.mark.parametrize("dim,element,optimizer,pooling", CASES)
def test_limits_hold(dim, element, optimizer, pooling, tmp_path):
    kind, weighted = pooling
    model = Model([Table("t", 1000, dim, element, Optimizer(optimizer))],
                  [Input("x", ("f",), (Lookup("f", "t", kind, weighted),), "i64", weighted)])
    plan = Plan(1, [Shard("t", (0, 1000), (0, dim), (0,))])
    folder = artifact.compile_text(model.text(plan), tmp_path / "model", "--training", "-O", "0",
                                   "--gpu", "sm_80,sm_90")
    cubins = sorted(folder.glob("*.cubin"))
    assert len(cubins) == 2
    kernels = [kernel for cubin in cubins for kernel in check_sass.inspect(cubin)]
    assert [kernel for kernel in kernels
            if kernel.stack_bytes > most_stack_bytes(kernel, dim, optimizer)] == []
    assert [text for kernel in kernels
            if not is_known(kernel, dim, element, optimizer, pooling)
            for text in check_sass.violations(kernel)] == []
