"""Checks of the tensors of a step on one GPU: device, type, contiguity and sizes, which also work
on tensors without values (meta, fake), and the values of offsets."""

from __future__ import annotations

import torch

from neuroshard.errors import TensorError
from neuroshard._jagged import LARGEST_POOLING
from neuroshard.torch_cuda._step import Step


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
