"""Runs the ids program: from a model's arguments to jagged inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from neuroshard.export._signature import DTYPES, Input, Lookup, Source
from neuroshard.export.errors import ExportError


class Jagged(NamedTuple):
    """ids; offsets: i64 [features * batch + 1]; weights: f32, one for each id, or None."""

    ids: torch.Tensor
    offsets: torch.Tensor
    weights: torch.Tensor | None

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [one for one in self if one is not None]


def make_jagged(input_: Input, values: Sequence[torch.Tensor]) -> Jagged:
    """The jagged argument of the program, from results of the ids program."""
    def of(number: int | None) -> torch.Tensor | None:
        return None if number is None else values[number]

    if input_.keyed:
        source = input_.sources[0]
        ids, lengths, weights = of(source.ids), of(source.offsets), of(source.weights)
        parts = [(ids, _from_lengths(input_.name, lengths, ids), weights)]
        batch = lengths.shape[0] // len(input_.features)
        if batch * len(input_.features) != lengths.shape[0]:
            raise ExportError(f"input \"{input_.name}\": expected lengths of "
                              f"{len(input_.features)} keys x batch, found {lengths.shape[0]}")
    else:
        parts = [_separate(source, name, of(source.ids), of(source.offsets), of(source.weights))
                 for source, name in zip(input_.sources, input_.features)]
        _require_one_batch(input_, parts)
    return _join(input_, parts)


def _from_lengths(name: str, lengths: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    offsets = torch.nn.functional.pad(lengths.long().cumsum(0), (1, 0))
    if lengths.numel() and lengths.min() < 0:
        raise ExportError(f"input \"{name}\": expected lengths from 0, found "
                          f"{int(lengths.min())}")
    if offsets[-1] != ids.shape[0]:
        raise ExportError(f"input \"{name}\": expected lengths whose sum is the number of "
                          f"values, {ids.shape[0]}; found {int(offsets[-1])}")
    return offsets


def _separate(source: Source, name: str, ids: torch.Tensor, offsets: torch.Tensor | None,
              weights: torch.Tensor | None) -> tuple:
    if source.kind == "rows":
        per_sample = ids.shape[1:].numel()
        return ids.reshape(-1), torch.arange(ids.shape[0] + 1) * per_sample, weights
    offsets = offsets.long()
    if source.kind == "bags":
        offsets = torch.cat([offsets, offsets.new_tensor([ids.shape[0]])])
    elif not offsets.numel():
        raise ExportError(f"feature \"{name}\": expected offsets with the last one, "
                          f"[samples + 1], found none")
    if (offsets[0] != 0 or offsets[-1] != ids.shape[0]):
        raise ExportError(f"feature \"{name}\": offsets must go from 0 to the number of ids, "
                          f"{ids.shape[0]}; found {int(offsets[0])} to {int(offsets[-1])}")
    return ids, offsets, weights


def _require_one_batch(input_: Input, parts: Sequence[tuple]) -> None:
    sizes = {name: len(part[1]) - 1 for name, part in zip(input_.features, parts)}
    if len(set(sizes.values())) > 1:
        raise ExportError(f"input \"{input_.name}\": expected as many samples of every feature, "
                          f"found {sizes}")


def _join(input_: Input, parts: Sequence[tuple]) -> Jagged:
    begin, offsets = 0, []
    for ids, bounds, _ in parts:
        offsets.append(bounds[:-1] + begin)
        begin += ids.shape[0]
    offsets.append(torch.tensor([begin]))
    weights = [part[2].reshape(-1).float() for part in parts] if input_.weighted else None
    return Jagged(torch.cat([part[0] for part in parts]).to(DTYPES[input_.id_type]).contiguous(),
                  torch.cat(offsets).contiguous(),
                  None if weights is None else torch.cat(weights).contiguous())


def batch_of(jagged: Jagged, input_: Input) -> int:
    return (len(jagged.offsets) - 1) // len(input_.features)


def mean_pooling(inputs: Sequence[Input], jagged: Sequence[Jagged]) -> Mapping[tuple, float]:
    """Ids per sample by (number of input, feature)."""
    means = {}
    for number, (input_, value) in enumerate(zip(inputs, jagged)):
        batch = batch_of(value, input_)
        for position, feature in enumerate(input_.features):
            ids = value.offsets[(position + 1) * batch] - value.offsets[position * batch]
            means[number, feature] = int(ids) / max(batch, 1)
    return means


def zero_rows(lookups: Sequence[Lookup], inputs: Sequence[Input],
              jagged: Sequence[Jagged]) -> list[torch.Tensor]:
    """Zeros in the shapes of the lookups' rows in the model."""
    rows = []
    for one in lookups:
        input_, value = inputs[one.input], jagged[one.input]
        count = batch_of(value, input_)
        if one.pooling == "unpooled":
            first = input_.features.index(one.feature) * count
            count = int(value.offsets[first + count] - value.offsets[first])
        rows.append(one.shaped(torch.zeros(count, one.dim, dtype=DTYPES[one.type])))
    return rows
