"""Tests on the example whether the dense part treats every sample independently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from neuroshard.export._run.batch_split import local_sizes, split_jagged
from neuroshard.export._run.ids import Jagged, zero_rows
from neuroshard.export._signature import Value
from neuroshard.export.errors import ExportError

if TYPE_CHECKING:
    from neuroshard.export._split_model import SplitModel


def why_not_shared(model: SplitModel) -> str:
    """Why devices cannot share the samples of the dense part; "" if they can. Tried once."""
    if model.sharing is None:
        try:
            check_per_sample(model)
            model.sharing = ""
        except ExportError as error:
            model.sharing = str(error)
    return model.sharing


def check_per_sample(model: SplitModel) -> None:
    """Raises an ExportError if the dense part gives other results on parts of the example than on
    all of it, as it would on devices that share a batch."""
    if not any(one.shape[:1] == (None,) for one in model.dense.tensors):
        return  # neuroshard-compile refuses it
    jagged = model.jagged(model.example())
    samples = (len(jagged[0].offsets) - 1) // len(model.inputs[0].features)
    for parts in sorted({2, min(3, samples), samples}):
        _check_parts(model, jagged, parts)


def _check_parts(model: SplitModel, jagged: Sequence[Jagged], count: int) -> None:
    generator = torch.Generator().manual_seed(count)
    example = {one.name: _varied(model.example()[one.name], one, generator)
               for one in model.dense.inputs}
    parts = list(zip(*(split_jagged(one, len(input_.features), count)
                       for one, input_ in zip(jagged, model.inputs))))
    counts = [[one.shape[0] for one in zero_rows(model.lookups, model.inputs, part)]
              for part in parts]
    sizes = local_sizes((len(jagged[0].offsets) - 1) // len(model.inputs[0].features), count)
    rows = [torch.randn(one.shape, generator=generator).to(one.dtype)
            for one in model.example_rows()]
    whole = _results(model, rows, [example[one.name] for one in model.dense.inputs])
    pieces = []
    for number in range(count):
        inputs = [example[one.name].split(sizes)[number] if one.per_sample else example[one.name]
                  for one in model.dense.inputs]
        pieces.append(_results(model, [
            one.split([rows_of[place] for rows_of in counts])[number]
            for place, one in enumerate(rows)], inputs))
    for value, one, *cut in zip(model.dense.tensors, whole, *pieces):
        if value.shape[:1] != (None,):
            continue
        if not torch.allclose(torch.cat(cut).double(), one.double(), rtol=1e-3, atol=1e-4,
                              equal_nan=True):
            raise ExportError(
                f"{value.name} of a sample depends on other samples of the batch, of which each "
                "device sees its own; open it on one device, or leave the dense part to torch "
                "with dense=\"external\"")


def _varied(value: torch.Tensor, input_: Value, generator: torch.Generator) -> torch.Tensor:
    """Rows that differ even if those of the example are equal: floats with noise, other types in
    another order."""
    if not input_.per_sample:
        return value
    value = value[torch.randperm(value.shape[0], generator=generator)]
    if not value.is_floating_point():
        return value
    scale = value.float().std(correction=0).nan_to_num() + 0.1
    noise = torch.randn(value.shape, generator=generator) * scale
    return (value + noise).to(value.dtype)


def _results(model: SplitModel, rows: list[torch.Tensor],
             inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    parameters = model.own(model.dense.parameters)
    try:
        with torch.no_grad():
            made = model.dense.module(*rows, *inputs, *parameters)
    except RuntimeError as error:
        raise ExportError("the dense part does not run on a part of the batch, as each device has "
                          f"it: {error}; open it on one device, or leave the dense part to torch "
                          "with dense=\"external\"") from error
    return [one for one in made if isinstance(one, torch.Tensor)]
