"""Padding of rows.

Artifacts run on GPUs without the compiled module neuroshard._planner, so this is a copy of what
include/neuroshard/Model/RowLayout.h says; test/python/planner/test_vocabulary.py compares the
two."""

# Bytes to which rows are padded, and that kernels store at a time.
ALIGNMENT = 16


def padded(columns: int, element_bytes: int) -> int:
    """Elements from one row to the next: columns, padded to a multiple of ALIGNMENT bytes."""
    return -(-columns * element_bytes // ALIGNMENT) * ALIGNMENT // element_bytes
