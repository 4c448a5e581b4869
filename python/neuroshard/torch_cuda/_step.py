"""The tensors of one step: their form as arguments of operators, and the sizes of the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from neuroshard.errors import TensorError
from neuroshard._jagged import Jagged
from neuroshard.torch_cuda._layout import Group, Layout


@dataclass(frozen=True)
class Step:
    """The inputs of one step, a Jagged for each exchange."""

    layout: Layout
    inputs: tuple[Jagged, ...]

    def batch(self, exchange: int) -> int:
        given, features = self.inputs[exchange], len(self.layout.exchanges[exchange].features)
        if given.offsets is None:
            return given.ids.shape[0] // (features * given.pooling)
        return (given.offsets.shape[0] - 1) // features

    def rows(self, group: Group) -> int:
        """Rows of a group: samples, or ids of the feature if it is not pooled."""
        first = group.first
        if first.pooled:
            return self.batch(first.exchange)
        given = self.inputs[first.exchange]
        if given.feature_begin is not None:
            return given.feature_begin[first.feature + 1] - given.feature_begin[first.feature]
        return given.ids.shape[0] // len(self.layout.exchanges[first.exchange].features)

    def make_results(self, place: torch.device) -> list[torch.Tensor]:
        """Empty tensors for the results, rows padded where kernels need it."""
        results = []
        for group in self.layout.groups:
            result = torch.empty((self.rows(group), group.stride), dtype=group.first.dtype,
                                 device=place)
            results.append(result if group.stride == group.columns else result[:, :group.columns])
        return results

    def identity(self) -> tuple:
        """Is equal for two steps that read the same memory in the same way."""
        return tuple((address(given.ids), given.ids.shape[0], address(given.offsets),
                      address(given.weights), given.pooling) for given in self.inputs)


def address(tensor: torch.Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


# Between Step and the arguments of operators


def to_arguments(step: Step) -> tuple[list, list, list, list, list]:
    """(ids, offsets, sample_weights, poolings, feature_begin). Operators have no names for the
    inputs, so each list has an entry for those exchanges alone that need one."""
    begins = [step.inputs[number].feature_begin for number in range(len(step.inputs))
              if reads_begin(step.layout, number, step.inputs[number].pooling)]
    return ([given.ids for given in step.inputs],
            [given.offsets for given in step.inputs if given.offsets is not None],
            [given.weights for given, exchange in zip(step.inputs, step.layout.exchanges)
             if exchange.weighted],
            [given.pooling for given in step.inputs],
            [number for begin in begins for number in begin])


def reads_begin(layout: Layout, exchange: int, pooling: int) -> bool:
    return pooling == 0 and layout.needs_feature_begin(exchange)


def from_arguments(layout: Layout, ids: Sequence, offsets: Sequence, sample_weights: Sequence,
                   poolings: Sequence, feature_begin: Sequence) -> Step:
    """The reverse. Raises TensorError unless each list has one entry for each exchange that needs
    one."""
    exchanges = layout.exchanges
    expect_count("ids", ids, len(exchanges))
    expect_count("poolings", poolings, len(exchanges))
    expect_count("offsets", offsets, sum(pooling == 0 for pooling in poolings))
    expect_count("sample_weights", sample_weights, sum(spec.weighted for spec in exchanges))
    expect_count("feature_begin", feature_begin, sum(
        len(spec.features) + 1 for number, spec in enumerate(exchanges)
        if reads_begin(layout, number, poolings[number])))
    offsets, weights, inputs = iter(offsets), iter(sample_weights), []
    for number, spec in enumerate(exchanges):
        begin, count = None, len(spec.features) + 1
        if reads_begin(layout, number, poolings[number]):
            begin, feature_begin = feature_begin[:count], feature_begin[count:]
        inputs.append(Jagged(ids[number], next(offsets) if poolings[number] == 0 else None,
                             next(weights) if spec.weighted else None, poolings[number], begin))
    return Step(layout, tuple(inputs))


def expect_count(name: str, values: Sequence, expected: int) -> None:
    if len(values) != expected:
        raise TensorError(f"expected {expected} {name}, found {len(values)}")
