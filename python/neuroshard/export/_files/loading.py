"""Reads an exported model from the files that Exported.save wrote."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from neuroshard import _fields
from neuroshard.export._exported import Exported
from neuroshard.export._files.checksums import place_of, read_record, require_files, require_path
from neuroshard.export._files.record import constants_of, dense_of, ids_of, model_of, state_shapes
from neuroshard.export._files.torch_programs import read_program, require_operators
from neuroshard.export.errors import ExportError

if TYPE_CHECKING:
    from torch.fx import GraphModule


def load_export(path: str | os.PathLike) -> Exported:
    """What neuroshard.export gave before it was saved as `path`, without the code of the model.

    Saved without weights, its tables and parameters are on the meta device: opened, tables are
    zero until program.load(state_dict). The files hold programs: load only files that you trust.
    Raises an ExportError for files that are missing, damaged, of another version or of another
    export, and for dataclasses and operators that are not defined here."""
    path = pathlib.Path(_fields.path(path, "load_export"))
    require_path(path)
    record = read_record(path)
    try:
        require_files(path, record)
        require_operators(record["operators"])
        model = model_of(record, _programs(path, record), _state(path, record))
        exported = Exported(**vars(model))
        same = exported.mlir == place_of(path, "mlir").read_bytes().decode()
    except ExportError:
        raise
    except Exception as error:  # torch's errors have many types
        raise ExportError(f"cannot load \"{path}\", which torch {record.get('torch')} wrote and "
                          f"torch {torch.__version__} reads: {error}") from error
    if not same:
        raise ExportError(f"\"{path}.json\" does not describe \"{path}.mlir\"; save the model "
                          "again with this version")
    return exported


def _programs(path: pathlib.Path, record: Mapping) -> dict[str, GraphModule]:
    ids, dense, lookups = ids_of(record, None), dense_of(record, None), len(record["lookups"])
    return {"ids": read_program(place_of(path, "ids.pt2"), len(ids.inputs) + len(ids.parameters),
                                record["ids"]["results"]),
            "dense": read_program(place_of(path, "dense.pt2"),
                                  lookups + len(dense.inputs) + len(dense.parameters),
                                  dense.results)}


def _state(path: pathlib.Path, record: Mapping) -> dict[str, torch.Tensor]:
    """The model's own tensors; on the meta device if no file has them."""
    expected = state_shapes(record)
    place = place_of(path, "safetensors")
    if "safetensors" not in record["files"]:
        return {**expected, **constants_of(record)}
    from safetensors.torch import load_file

    found = load_file(place)
    if (wrong := sorted(set(expected) ^ set(found))):
        raise ExportError(f"\"{place}\": expected the tensors that \"{path.name}.json\" names; "
                          f"\"{wrong[0]}\" is in one of them alone")
    for name, one in found.items():
        wanted = expected[name]
        if (one.shape, one.dtype) != (wanted.shape, wanted.dtype):
            raise ExportError(f"\"{place}\": expected \"{name}\" as {tuple(wanted.shape)} of "
                              f"{wanted.dtype}, found {tuple(one.shape)} of {one.dtype}")
    # Tables stay in the mapped file until they are read. Other tensors are copied to addresses that
    # torch chooses, since kernels may round differently at other alignments.
    tables = {one["parameter"] for one in record["tables"]}
    return {name: one if name in tables else one.clone() for name, one in found.items()}
