"""The embedding part without sharding: nn.EmbeddingBag and the optimizers of PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable

import torch
from torch import nn

import neuroshard as ns

from movielens.data import Batch, MovieLens
from movielens.model import Vectors

Tensors = dict[str, torch.Tensor]



class UnshardedTables:
    """Starts from whole tables and from optimizer states after a number of steps."""

    def __init__(self, data: MovieLens, weights: Tensors, optimizer: ns.Optimizer,
                 learning_rate: float, states: dict[str, Tensors] | None = None,
                 steps: int = 0) -> None:
        self.features = data.features
        self.bags = {
            name: nn.EmbeddingBag.from_pretrained(weight.clone(), freeze=False,
                                                  mode=data.tables[name].pooling,
                                                  sparse=optimizer.kind == "adam")
            for name, weight in weights.items()}
        parameters = [bag.weight for bag in self.bags.values()]
        self.optimizer = make_optimizer(optimizer, parameters, learning_rate)
        # A number for the one, a tensor for the other, as they make it themselves.
        count = torch.tensor(float(steps)) if optimizer.kind == "adagrad" else steps
        for name, state in (states or {}).items():
            self.optimizer.state[self.bags[name].weight] = {
                "step": copy.copy(count),
                **{key: value.clone() for key, value in state.items()}}

    def start(self, batch: Batch) -> Callable[[], Vectors]:
        return lambda: self._look_up(batch)

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()

    def step(self) -> None:
        self.optimizer.step()

    def weights(self) -> Tensors:
        return {name: bag.weight.detach() for name, bag in self.bags.items()}

    def states(self) -> dict[str, Tensors]:
        """The optimizer's states of each table; none for SGD."""
        return {name: {key: value for key, value in self.optimizer.state[bag.weight].items()
                       if key != "step"} for name, bag in self.bags.items()}

    def _look_up(self, batch: Batch) -> Vectors:
        size = len(batch.labels)
        pooled = {}
        for index, (feature, table) in enumerate(self.features.items()):
            bounds = batch.offsets[index * size:(index + 1) * size + 1]
            ids = batch.ids[bounds[0]:bounds[-1]]
            pooled[feature] = self.bags[table](ids, bounds[:-1] - bounds[0])
        return pooled


def make_optimizer(optimizer: ns.Optimizer, parameters: Iterable[nn.Parameter],
                   learning_rate: float) -> torch.optim.Optimizer:
    """PyTorch's optimizer, updating only the rows of the batch, as NeuroShard's do. Dense
    gradients, which are faster, serve for all but Adam, since others leave a row with a zero
    gradient unchanged."""
    if optimizer.kind == "sgd":
        return torch.optim.SGD(parameters, lr=learning_rate)
    if optimizer.kind == "adagrad":
        return torch.optim.Adagrad(parameters, lr=learning_rate, eps=optimizer.eps)
    if optimizer.kind == "adam":
        return torch.optim.SparseAdam(parameters, lr=learning_rate, eps=optimizer.eps,
                                      betas=(optimizer.beta1, optimizer.beta2))
    return RowwiseAdagrad(parameters, learning_rate, optimizer.eps)


class RowwiseAdagrad(torch.optim.Optimizer):
    """Adagrad with one sum per row: of the means of the squares of its gradients, by FBGEMM's
    formula. PyTorch has none."""

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float,
                 eps: float) -> None:
        super().__init__(parameters, {"lr": learning_rate, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                self._update(weight, group["lr"], group["eps"])

    def _update(self, weight: nn.Parameter, learning_rate: float, eps: float) -> None:
        state = self.state[weight]
        if "sum" not in state:
            state["sum"] = torch.zeros(len(weight))
        state["sum"] += weight.grad.square().mean(dim=1)
        weight -= (learning_rate / (state["sum"].sqrt() + eps)).unsqueeze(1) * weight.grad
