"""What is done when a GPU's memory is exhausted while torch keeps some for later tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch

from neuroshard import cuda


def with_torch_memory(call: Callable[[], None], capturing: bool) -> None:
    """Calls the library. If the GPU runs out of memory, gives back the memory that torch keeps
    for later tensors and calls again, except while a graph is captured."""
    try:
        call()
    except cuda.OutOfMemory:
        if capturing:
            raise
        torch.cuda.empty_cache()
        call()
