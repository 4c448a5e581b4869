"""Whether a dense part acts on every sample by itself, tried on the example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from neuroshard.export.errors import ExportError
from neuroshard.export.ids import local_sizes, split_jagged, zero_rows

if TYPE_CHECKING:
    from neuroshard.export.exported import Exported


def check_per_sample(exported: Exported) -> None:
    """Raises an ExportError if halves of the example give other results than all of it: devices
    that share a batch would, too."""
    if not any(one.shape[:1] == (None,) for one in exported.dense.tensors):
        return  # neuroshard-compile says why not
    example = exported.example()
    jagged = exported.jagged(example)
    parts = list(zip(*(split_jagged(one, len(input_.features), 2)
                       for one, input_ in zip(jagged, exported.inputs))))
    counts = [[one.shape[0] for one in zero_rows(exported.lookups, exported.inputs, part)]
              for part in parts]
    sizes = local_sizes((len(jagged[0].offsets) - 1) // len(exported.inputs[0].features), 2)
    generator = torch.Generator().manual_seed(1)
    rows = [torch.randn(one.shape, generator=generator).to(one.dtype)
            for one in exported.example_rows()]
    whole = _results(exported, rows, [example[one.name] for one in exported.dense.inputs])
    halves = []
    for number in range(2):
        inputs = [example[one.name].split(sizes)[number] if one.per_sample else example[one.name]
                  for one in exported.dense.inputs]
        halves.append(_results(exported, [
            one.split([count[place] for count in counts])[number]
            for place, one in enumerate(rows)], inputs))
    for value, one, *cut in zip(exported.dense.tensors, whole, *halves):
        if value.shape[:1] != (None,):
            continue
        if not torch.allclose(torch.cat(cut).double(), one.double(), rtol=1e-3, atol=1e-4,
                              equal_nan=True):
            raise ExportError(
                f"{value.name} of a sample depends on other samples of the batch, of which each "
                "device sees its own; open it on one device, or leave the dense part to torch "
                "with dense=\"external\"")


def _results(exported: Exported, rows: list[torch.Tensor],
             inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    parameters = [exported.state[one.parameter] for one in exported.dense.parameters]
    with torch.no_grad():
        made = exported.dense.module(*rows, *inputs, *parameters)
    return [one for one in made if isinstance(one, torch.Tensor)]
