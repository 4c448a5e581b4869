"""Compiled embedding tables on a GPU as operators and a module of PyTorch.

    import neuroshard.torch_cuda as torch_cuda

    tables = torch_cuda.EmbeddingTables("artifact", learning_rate=0.01)
    pooled = tables(torch_cuda.Jagged(ids, offsets))       # {"user": [batch, dim], ...}
    loss(pooled).backward()                                 # also updates the tables
    tables.check()                                          # raises cuda.BadId

torch.ops.neuroshard.embedding_forward and embedding_backward are what it runs. It needs torch
and libneuroshard_cuda.so, and is imported by its name only. docs/torch-cuda.md explains it.
"""

from neuroshard.errors import TensorError
from neuroshard._jagged import Jagged
from neuroshard.torch_cuda._tables import EmbeddingTables

__all__ = ["EmbeddingTables", "Jagged", "TensorError"]
