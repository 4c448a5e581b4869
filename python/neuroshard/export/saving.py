"""Writes an exported model to files."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import torch

from neuroshard.export.program import Value

if TYPE_CHECKING:
    from neuroshard.export.exported import Exported


def save(exported: Exported, path: pathlib.Path, weights: bool) -> list[pathlib.Path]:
    """See Exported.save."""
    written = []

    def place(ending: str) -> pathlib.Path:
        written.append(path.with_name(f"{path.name}.{ending}"))
        return written[-1]

    place("mlir").write_text(exported.mlir, encoding="utf-8")
    place("json").write_text(json.dumps(_description(exported), indent=1) + "\n", encoding="utf-8")
    ids, example = exported.ids, exported.example()
    _save_program(ids.module, [*(example[name] for name in ids.inputs),
                               *_own(exported, ids.parameters)], place("ids.pt2"))
    if exported.dense.linalg is None:
        _save_program(exported.dense.module, [
            *exported.example_rows(), *(example[one.name] for one in exported.dense.inputs),
            *_own(exported, exported.dense.parameters)], place("dense.pt2"))
    if weights:
        from safetensors.torch import save_file

        save_file(_tensors(exported), place("safetensors"))
    return written


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
