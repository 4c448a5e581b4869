"""The tensors of one step: their checks, their form as arguments of operators, and the sizes of
the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from neuroshard.errors import TensorError
from neuroshard._jagged import LARGEST_POOLING, Jagged
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


# Checks. Those of types and shapes also work on tensors without values (meta, fake).


def check_tensors(step: Step, place: torch.device) -> None:
    for spec, given in zip(step.layout.exchanges, step.inputs):
        where = f"input \"{spec.name}\""
        check(f"{where}: ids", given.ids, spec.id_dtype, place)
        if given.offsets is not None:
            check(f"{where}: offsets", given.offsets, torch.int64, place)
        if given.weights is not None:
            check(f"{where}: weights", given.weights, torch.float32, place)


def check(name: str, tensor: torch.Tensor, dtype: torch.dtype, place: torch.device) -> None:
    if tensor.device != place:
        raise TensorError(f"{name}: expected a tensor on {place}, where the tables are, found "
                          f"{tensor.device}")
    if tensor.dtype != dtype:
        raise TensorError(f"{name}: expected {dtype}, found {tensor.dtype}")
    if tensor.dim() != 1:
        raise TensorError(f"{name}: expected one dimension, found shape {tuple(tensor.shape)}")
    if not tensor.is_contiguous():
        raise TensorError(f"{name}: expected a contiguous tensor, found stride "
                          f"{tensor.stride()}; call contiguous()")


def check_sizes(step: Step) -> None:
    batches = []
    for number, (spec, given) in enumerate(zip(step.layout.exchanges, step.inputs)):
        where, features, ids = f"input \"{spec.name}\"", len(spec.features), given.ids.shape[0]
        if given.offsets is not None:
            found = given.offsets.shape[0]
            if found < 1 or (found - 1) % features != 0:
                raise TensorError(f"{where}: expected {features} features x batch + 1 offsets, "
                                  f"found {found}")
        elif not 0 < given.pooling <= LARGEST_POOLING:
            raise TensorError(f"{where}: expected offsets, or the ids of every bag as pooling, "
                              f"found pooling {given.pooling}")
        elif ids % (features * given.pooling) != 0:
            raise TensorError(f"{where}: expected {features} features x batch x {given.pooling} "
                              f"ids, as it has no offsets, found {ids}")
        if given.weights is not None and given.weights.shape[0] != ids:
            raise TensorError(f"{where}: expected a weight for each of {ids} ids, found "
                              f"{given.weights.shape[0]}")
        batches.append(step.batch(number))
    for group in step.layout.groups:
        if len({batches[result.exchange] for result in group.results if result.pooled}) > 1:
            raise TensorError(f"expected one batch for all inputs, as results share a tensor, "
                              f"found {batches}")


def check_offsets(step: Step) -> None:
    """Checks the values of offsets, which kernels trust. Waits for the GPU."""
    for spec, given in zip(step.layout.exchanges, step.inputs):
        if given.offsets is None:
            continue
        where, ids = f"input \"{spec.name}\"", given.ids.shape[0]
        first, last = int(given.offsets[0]), int(given.offsets[-1])
        if first != 0 or last != ids:
            raise TensorError(f"{where}: expected offsets from 0 to {ids}, the number of ids, "
                              f"found {first} to {last}")
        falling = (given.offsets.diff() < 0).nonzero()
        if len(falling) > 0:
            at = int(falling[0])
            raise TensorError(f"{where}: expected ascending offsets, found "
                              f"{int(given.offsets[at])} at {at} before "
                              f"{int(given.offsets[at + 1])}")
        if given.feature_begin is not None:
            features = len(spec.features)
            expected = given.offsets[torch.arange(features + 1, device=given.offsets.device)
                                     * ((given.offsets.shape[0] - 1) // features)].tolist()
            if list(given.feature_begin) != expected:
                raise TensorError(f"{where}: expected feature_begin {expected}, as the offsets "
                                  f"say, found {list(given.feature_begin)}")
