"""A small DLRM with a replaceable embedding part, and one training step of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from movielens.data import Batch

BOTTOM, TOP = (64,), (128, 64)
# Adam would divide by the size of tiny gradients, and so turn rounding into visible differences.
DENSE_LEARNING_RATE, MOMENTUM = 0.1, 0.9

Vectors = Mapping[str, torch.Tensor]


class Embeddings(Protocol):
    """An embedding part: looks a batch up, and updates its tables."""

    def start(self, batch: Batch) -> Callable[[], Vectors]:
        """Begins the lookup; the result waits for it: feature -> [batch, dim]."""

    def zero_grad(self) -> None:
        """Before a backward pass."""

    def step(self) -> None:
        """After a backward pass, unless that has updated the tables already."""


class Dlrm(nn.Module):
    """The dense part: bottom MLP, dot products between all pairs of vectors, top MLP."""

    def __init__(self, features: list[str], dim: int, dense_width: int, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.bottom = mlp(dense_width, *BOTTOM, dim)
            vectors = len(features) + 1
            self.top = mlp(vectors * (vectors - 1) // 2 + dim, *TOP, 1, last_relu=False)
        self.features = features
        pairs = torch.triu_indices(vectors, vectors, offset=1)
        # Not a buffer, since DDP broadcasts buffers from the first rank at each step.
        self.pairs = pairs[0] * vectors + pairs[1]

    def forward(self, dense: torch.Tensor, wait: Callable[[], Vectors]) -> torch.Tensor:
        """Logits [batch]. The bottom MLP runs before the vectors are waited for."""
        bottom = self.bottom(dense)
        pooled = wait()
        vectors = torch.stack([bottom, *(pooled[name] for name in self.features)], dim=1)
        dots = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)[:, self.pairs]
        return self.top(torch.cat([bottom, dots], dim=1)).squeeze(1)


def mlp(*widths: int, last_relu: bool = True) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*(layers if last_relu else layers[:-1]))


class Trainer:
    """An embedding part with a dense part of its own, which DDP keeps equal on all ranks when
    distributed. With the mean over the local batch as loss both divide their gradients by the
    number of ranks, so that a step is that of the mean over the global batch."""

    def __init__(self, embeddings: Embeddings, dense: Dlrm, distributed: bool) -> None:
        self.embeddings = embeddings
        self.dense = dense
        self.optimizer = torch.optim.SGD(dense.parameters(), lr=DENSE_LEARNING_RATE,
                                         momentum=MOMENTUM)
        self.forward = (DistributedDataParallel(dense, gradient_as_bucket_view=True)
                        if distributed else dense)

    def step(self, batch: Batch) -> float:
        """One update of everything; the loss before it."""
        self.optimizer.zero_grad()
        self.embeddings.zero_grad()
        logits = self.forward(batch.dense, self.embeddings.start(batch))
        loss = nn.functional.binary_cross_entropy_with_logits(logits, batch.labels)
        loss.backward()
        self.embeddings.step()
        self.optimizer.step()
        return loss.item()

    def logits(self, batch: Batch) -> torch.Tensor:
        with torch.no_grad():
            return self.dense(batch.dense, self.embeddings.start(batch))
