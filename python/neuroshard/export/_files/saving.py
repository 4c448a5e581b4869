"""Writes an exported model to files."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from neuroshard.export.errors import ExportError
from neuroshard.export._files.files import place_of, record_text, require_path
from neuroshard.export._files.record import describe
from neuroshard.export._files.torch_programs import write_program

if TYPE_CHECKING:
    from neuroshard.export._parts import Parts
    from neuroshard.export._program import Value


def save(parts: Parts, path: pathlib.Path, weights: bool) -> list[pathlib.Path]:
    """See Exported.save. All files or none: an older save stays as it was on an error."""
    require_path(path)
    if weights:
        _require_weights(parts)
    writers = _writers(parts, weights)
    places = {ending: place_of(path, ending) for ending in [*writers, "json"]}
    for place in places.values():
        if place.is_dir():
            raise ExportError(f"cannot write \"{place}\": it is a folder")
    try:
        record = describe(parts, weights)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            made = {ending: pathlib.Path(folder, place.name) for ending, place in places.items()}
            for ending, write in writers.items():
                write(made[ending])
            last = made.pop("json")  # last, as it says what the others are
            last.write_text(record_text(record, made), encoding="utf-8")
            for ending, one in [*made.items(), ("json", last)]:
                one.replace(places[ending])
    except ExportError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        raise ExportError(f"cannot write \"{path}\": {error}") from error
    return list(places.values())


def _writers(parts: Parts, weights: bool) -> dict[str, Callable[[pathlib.Path], object]]:
    """What writes each file but path.json, by the ending of its name."""
    ids, dense, example = parts.ids, parts.dense, parts.example()
    writers = {
        "mlir": lambda place: place.write_text(parts.mlir, encoding="utf-8"),
        "ids.pt2": lambda place: write_program(
            ids.module, [*(example[name] for name in ids.inputs),
                         *_own(parts, ids.parameters)], place),
        "dense.pt2": lambda place: write_program(
            dense.module, [*_rows(parts), *(example[one.name] for one in dense.inputs),
                           *_own(parts, dense.parameters)], place)}
    if weights:
        try:
            from safetensors.torch import save_file
        except ImportError as error:
            raise ExportError("weights=True needs the package safetensors, which cannot be "
                              f"imported: {error}") from error
        writers["safetensors"] = lambda place: save_file(_tensors(parts), place)
    return writers


def _rows(parts: Parts) -> list[torch.Tensor]:
    """Those of an example, two or more where torch would take their number for a constant."""
    return [torch.zeros(2, *one.shape[1:], dtype=one.dtype)
            if one.shape[0] < 2 and lookup.shape[0] is None else one
            for one, lookup in zip(parts.example_rows(), parts.lookups)]


def _require_weights(parts: Parts) -> None:
    own = [*(("table", one.name, one.parameter) for one in parts.tables),
           *(("parameter", one.parameter, one.parameter) for one in parts.parameters)]
    for kind, name, parameter in own:
        if parts.state[parameter].is_meta:
            raise ExportError(f"{kind} \"{name}\" is on the meta device and has no weights "
                              f"to save; expected weights=False, or a {kind} with values")


def _own(parts: Parts, values: Sequence[Value]) -> list[torch.Tensor]:
    """Parameters keep their sizes whatever the batch is."""
    return [torch.nn.Parameter(parts.state[one.parameter].detach(), requires_grad=False)
            for one in values]


def _tensors(parts: Parts) -> dict[str, torch.Tensor]:
    """By the names of the state_dict; those on the same memory once."""
    names = [*(one.parameter for one in parts.tables),
             *(one.parameter for one in parts.parameters)]
    return {name: parts.state[name].detach().contiguous().clone()
            for name in dict.fromkeys(names)}
