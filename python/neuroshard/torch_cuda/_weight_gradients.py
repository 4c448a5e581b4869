"""Gradients of the sample weights of a step."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuroshard.errors import TensorError
from neuroshard.torch_cuda._layout import ShardColumns
from neuroshard.torch_cuda._step import Step, expect_count


class WeightGradients:
    """Gradients of sample weights: each lookup writes one value per id, and ids that several
    lookups or shards read get the sum."""

    def __init__(self, step: Step, totals: Sequence[torch.Tensor]) -> None:
        weighted = [(number, given.weights) for number, given in enumerate(step.inputs)
                    if given.weights is not None]
        expect_count("weight_gradients", totals, len(weighted))
        self.totals = {}
        for (number, weights), total in zip(weighted, totals):
            check_like("gradient of the weights", total, weights)
            self.totals[number] = total.zero_()  # ids that no weighted lookup reads keep 0
        self.more: list[tuple[int, torch.Tensor]] = []
        self.written: set[tuple[int, int]] = set()

    def target(self, one: ShardColumns) -> torch.Tensor | None:
        result = one.result
        if not result.weighted:
            return None
        total, feature = self.totals[result.exchange], (result.exchange, result.feature)
        if feature not in self.written:
            self.written.add(feature)
            return total
        self.more.append((result.exchange, torch.zeros_like(total)))
        return self.more[-1][1]

    def finish(self) -> None:
        for exchange, part in self.more:
            self.totals[exchange] += part


def check_like(name: str, tensor: torch.Tensor, other: torch.Tensor) -> None:
    if (tensor.shape, tensor.dtype, tensor.device) != (other.shape, other.dtype, other.device):
        raise TensorError(f"{name}: expected {tuple(other.shape)} {other.dtype} on "
                          f"{other.device}, found {tuple(tensor.shape)} {tensor.dtype} on "
                          f"{tensor.device}")
