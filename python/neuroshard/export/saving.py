"""Writes an exported model to files."""

from __future__ import annotations

import json
import pathlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import torch

from neuroshard.export.errors import ExportError
from neuroshard.export.program import Value

if TYPE_CHECKING:
    from neuroshard.export.exported import Exported


def save(exported: Exported, path: pathlib.Path, weights: bool) -> list[pathlib.Path]:
    """See Exported.save. All files or none: an older save stays as it was on an error."""
    if not path.name or path.name == "..":
        raise ExportError(f"expected a path whose last part names the files, found \"{path}\"")
    if weights:
        _require_weights(exported)
    writers = _writers(exported, weights)
    places = [path.with_name(f"{path.name}.{ending}") for ending in writers]
    for place in places:
        if place.is_dir():
            raise ExportError(f"cannot write \"{place}\": it is a folder")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            made = [pathlib.Path(folder, place.name) for place in places]
            for one, write in zip(made, writers.values()):
                write(one)
            for one, place in zip(made, places):
                one.replace(place)
    except (OSError, RuntimeError, ValueError) as error:
        raise ExportError(f"cannot write \"{path}\": {error}") from error
    return places


def _writers(exported: Exported, weights: bool) -> dict[str, Callable[[pathlib.Path], object]]:
    """What writes each file, by the ending of its name."""
    ids, dense, example = exported.ids, exported.dense, exported.example()
    description = json.dumps(_description(exported), indent=1) + "\n"
    writers = {
        "mlir": lambda place: place.write_text(exported.mlir, encoding="utf-8"),
        "json": lambda place: place.write_text(description, encoding="utf-8"),
        "ids.pt2": lambda place: _save_program(
            ids.module, [*(example[name] for name in ids.inputs),
                         *_own(exported, ids.parameters)], place)}
    if dense.linalg is None:
        writers["dense.pt2"] = lambda place: _save_program(
            dense.module, [*exported.example_rows(), *(example[one.name] for one in dense.inputs),
                           *_own(exported, dense.parameters)], place)
    if weights:
        from safetensors.torch import save_file

        writers["safetensors"] = lambda place: save_file(_tensors(exported), place)
    return writers


def _require_weights(exported: Exported) -> None:
    for table in exported.tables:
        if exported.state[table.parameter].is_meta:
            raise ExportError(f"table \"{table.name}\" is on the meta device and has no weights "
                              "to save; expected weights=False, or a table with values")


def _own(exported: Exported, values: Sequence[Value]) -> list[torch.Tensor]:
    return [exported.state[one.parameter] for one in values]


def _description(exported: Exported) -> dict:
    """What the files are and in which order their programs take tensors."""
    def named(values: Sequence[Value]) -> list:
        return [one.parameter or one.name for one in values]

    ids, dense = exported.ids, exported.dense
    return {"schema": "neuroshard.export.v1",
            "tables": [asdict(one) for one in exported.tables],
            "inputs": [asdict(one) for one in exported.inputs],
            "ids": {"arguments": ids.inputs, "parameters": named(ids.parameters)},
            "dense": {"rows": len(exported.lookups), "arguments": named(dense.inputs),
                      "parameters": named(dense.parameters), "linalg": dense.linalg is not None},
            "sizes": exported.conditions, "counts": exported.counts}


def _save_program(module: torch.fx.GraphModule, example: Sequence[torch.Tensor],
                  path: pathlib.Path) -> None:
    """For any number of samples, as torch.export.save writes it."""
    free = {0: torch.export.Dim.AUTO}
    shapes = tuple(free if one.dim() and not isinstance(one, torch.nn.Parameter) else None
                   for one in example)
    program = torch.export.export(module, tuple(example), dynamic_shapes=shapes)
    program.example_inputs = None  # among them the parameters
    torch.export.save(program, path)


def _tensors(exported: Exported) -> dict[str, torch.Tensor]:
    """By the names of the state_dict; those on the same memory once."""
    names = [*(one.parameter for one in exported.tables),
             *(one.parameter for one in [*exported.ids.parameters, *exported.dense.parameters])]
    return {name: exported.state[name].detach().contiguous().clone()
            for name in dict.fromkeys(names)}
