"""Types of elements and ids of artifacts, as tensors of PyTorch have them.

Artifacts run on GPUs without the compiled module neuroshard._planner, so these are copies of what
include/neuroshard/Model/Types.h says; test/python/planner/test_vocabulary.py compares the two."""

from __future__ import annotations

import torch

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
ELEMENT_TYPES = {dtype: name for name, dtype in DTYPES.items()}
ID_DTYPES = {"i32": torch.int32, "i64": torch.int64}
