"""A torch.optim.Optimizer for tables that their backward updates: it holds the learning rate."""

from __future__ import annotations

import torch

from neuroshard import _fields


class FusedOptimizer(torch.optim.Optimizer):
    """Holds the learning rate of a collection's tables in param_groups[0]["lr"].

    The backward updates the tables, so step() and zero_grad() do nothing. Schedulers and training
    loops can use it like any optimizer. Checkpoints save its state with the tables."""

    _checked: float | None = None  # the last rate that was valid

    def __init__(self, anchor: torch.Tensor, learning_rate: float) -> None:
        super().__init__([anchor], {"lr": _fields.learning_rate(learning_rate)})
        # Keeps schedulers from warning that step() was not called.
        self._opt_called = True

    @property
    def learning_rate(self) -> float:
        rate = self.param_groups[0]["lr"]
        if type(rate) is float and rate == self._checked:
            return rate
        self._checked = _fields.learning_rate(rate)
        return self._checked

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self.param_groups[0]["lr"] = _fields.learning_rate(rate)

    def step(self, closure=None):
        """Does nothing: the backward has updated the tables."""
        return closure() if closure else None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Does nothing: gradients of tables are not kept."""


class Learning:
    """A module with a FusedOptimizer."""

    _optimizer: FusedOptimizer

    def _require_open(self) -> None:
        """Raises a TensorError if the tables are closed."""
        raise NotImplementedError

    @property
    def optimizer(self) -> FusedOptimizer:
        """The optimizer that holds the learning rate, for schedulers."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        return self._optimizer.learning_rate

    def set_learning_rate(self, rate: float) -> None:
        """Sets the learning rate of all following updates, also of earlier lookups."""
        self._require_open()
        self._optimizer.learning_rate = rate
