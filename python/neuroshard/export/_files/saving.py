"""Writes an exported model to files."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from neuroshard.export._files.checksums import place_of, record_text, require_path
from neuroshard.export._files.record import describe
from neuroshard.export._files.torch_programs import Input, write_program
from neuroshard.export.errors import ExportError

if TYPE_CHECKING:
    from neuroshard.export._signature import Value
    from neuroshard.export._split_model import SplitModel


def save(model: SplitModel, path: pathlib.Path, weights: bool) -> list[pathlib.Path]:
    """See Exported.save. Writes all files or none: on an error an older save stays unchanged."""
    require_path(path)
    if weights:
        _require_weights(model)
    writers = _writers(model, weights)
    places = {ending: place_of(path, ending) for ending in [*writers, "json"]}
    for place in places.values():
        if place.is_dir():
            raise ExportError(f"cannot write \"{place}\": it is a folder")
    try:
        record = describe(model, weights)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            made = {ending: pathlib.Path(folder, place.name) for ending, place in places.items()}
            for ending, write in writers.items():
                write(made[ending])
            last = made.pop("json")  # last, as it has the checksums of the others
            last.write_text(record_text(record, made), encoding="utf-8")
            for ending, one in [*made.items(), ("json", last)]:
                one.replace(places[ending])
    except ExportError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        raise ExportError(f"cannot write \"{path}\": {error}") from error
    return list(places.values())


def _writers(model: SplitModel, weights: bool) -> dict[str, Callable[[pathlib.Path], object]]:
    """The function that writes each file, by the ending of its name; path.json excepted."""
    ids, dense, example = model.ids, model.dense, model.example()
    sizes = {one.name: one.of for one in model.arguments.sizes.sizes if one.position == 0}

    def inputs(names: Sequence[str]) -> list[Input]:
        return [(example[name], not isinstance(sizes.get(name, 0), int)) for name in names]

    def rows() -> list[Input]:
        return [(one, lookup.shape[0] is None)
                for one, lookup in zip(model.example_rows(), model.lookups)]

    writers = {
        "mlir": lambda place: place.write_text(model.mlir, encoding="utf-8"),
        "ids.pt2": lambda place: write_program(
            ids.module, [*inputs(ids.inputs), *_own(model, ids.parameters)], place),
        "dense.pt2": lambda place: write_program(
            dense.module, [*rows(), *inputs([one.name for one in dense.inputs]),
                           *_own(model, dense.parameters)], place)}
    if weights:
        try:
            from safetensors.torch import save_file
        except ImportError as error:
            raise ExportError("weights=True needs the package safetensors, which cannot be "
                              f"imported: {error}") from error
        writers["safetensors"] = lambda place: save_file(_tensors(model), place)
    return writers


def _require_weights(model: SplitModel) -> None:
    own = [*(("table", one.name, one.parameter) for one in model.tables),
           *(("parameter", one.parameter, one.parameter) for one in model.parameters)]
    for kind, name, parameter in own:
        if model.state[parameter].is_meta:
            raise ExportError(f"{kind} \"{name}\" is on the meta device and has no weights "
                              f"to save; expected weights=False, or a {kind} with values")


def _own(model: SplitModel, values: Sequence[Value]) -> list[Input]:
    return [(torch.nn.Parameter(model.state[one.parameter].detach(), requires_grad=False), False)
            for one in values]


def _tensors(model: SplitModel) -> dict[str, torch.Tensor]:
    """The tensors by their names in the state_dict, each copied out of shared memory."""
    names = [*(one.parameter for one in model.tables),
             *(one.parameter for one in model.parameters)]
    return {name: model.state[name].detach().contiguous().clone()
            for name in dict.fromkeys(names)}
