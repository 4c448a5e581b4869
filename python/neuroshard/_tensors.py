"""Element types, optimizer states and alignment of artifacts, as tensors of PyTorch have them.

Artifacts run on GPUs without the compiled module neuroshard._planner, so these are copies of what
include/neuroshard/Model says; test/python/planner/test_vocabulary.py compares the two."""

from __future__ import annotations

import torch

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
ELEMENT_TYPES = {dtype: name for name, dtype in DTYPES.items()}
ID_DTYPES = {"i32": torch.int32, "i64": torch.int64}
# Bytes to which rows are padded, and that kernels store at a time.
ALIGNMENT = 16

# The f32 state arrays of each optimizer, in the order in which the runtime keeps them.
STATE_NAMES = {"sgd": (), "adagrad": ("sum",), "rowwise_adagrad": ("sum",),
               "adam": ("exp_avg", "exp_avg_sq")}
# Optimizers whose state is one value per row.
ROW_WISE = ("rowwise_adagrad",)


def padded(columns: int, element_bytes: int) -> int:
    """Elements from one row to the next: columns, padded to a multiple of ALIGNMENT bytes."""
    return -(-columns * element_bytes // ALIGNMENT) * ALIGNMENT // element_bytes
