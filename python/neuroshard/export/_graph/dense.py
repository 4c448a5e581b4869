"""The dense part of a model: all that it computes from the rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch
from torch.export.graph_signature import InputKind, InputSpec
from torch.fx import Node

from neuroshard.export._graph.embeddings import Found, batch_size
from neuroshard.export._graph.linalg import to_linalg
from neuroshard.export._graph.split import DensePart, checks_in
from neuroshard.export._run.ids import Jagged, zero_rows
from neuroshard.export._signature import VALUE_TYPES, Dense, Input, Lookup, Value
from neuroshard.export._trace.arguments import Arguments
from neuroshard.export._trace.locations import describe, location
from neuroshard.export._trace.sizes import size_of
from neuroshard.export.errors import ExportError


def make_dense(program: torch.export.ExportedProgram, found: Sequence[Found]) -> Dense:
    part = DensePart(program, found)
    batches = {batch_size(one) for one in found} - {None}
    by_name = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names, parameters = split_inputs(program, part.inputs)
    inputs = [_value(by_name[name], name, batches) for name in names]
    results = [_value(node, f"result_{number}", batches) if isinstance(node, Node) else node
               for number, node in enumerate(part.results)]
    dense = Dense(part.module, inputs, parameters, results)
    if not dense.tensors:
        raise ExportError("the model returns no tensor")
    return dense


def split_inputs(program: torch.export.ExportedProgram,
                 names: Sequence[str]) -> tuple[list[str], list[Value]]:
    """Splits inputs of the program into arguments of the model and the model's own tensors."""
    kinds = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    by_name = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    arguments = [name for name in names if kinds[name].kind == InputKind.USER_INPUT]
    own = [replace(_value(by_name[name], name, ()), parameter=kinds[name].target,
                   constant=_is_constant(kinds[name]))
           for name in names if kinds[name].kind != InputKind.USER_INPUT]
    return arguments, own


def _is_constant(spec: InputSpec) -> bool:
    """Whether it is a non-persistent buffer, or a tensor that the forward creates."""
    return spec.kind == InputKind.CONSTANT_TENSOR or spec.persistent is False


def _value(node: Node, name: str, batches: Collection[object]) -> Value:
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor) or value.dtype not in VALUE_TYPES:
        found = value.dtype if isinstance(value, torch.Tensor) else type(value).__name__
        raise ExportError(f"{name} is a {found}; expected a tensor of floats or integers")
    sizes = [size_of(size) for size in value.shape]
    shape = tuple(size if isinstance(size, int) else None for size in sizes)
    per_sample = shape[:1] == (None,) and sizes[0] in batches
    return Value(name, shape, VALUE_TYPES[value.dtype], per_sample, location(node, name))


def lower_dense(dense: Dense, lookups: Sequence[Lookup], inputs: Sequence[Input],
                jagged: Sequence[Jagged], arguments: Arguments,
                state: Mapping[str, torch.Tensor]) -> str:
    """The dense part as linalg, which every device must be able to run on its own samples."""
    for value in [*dense.inputs, *dense.results]:
        if not isinstance(value, Value):
            raise ExportError(f"the model returns {value!r}, which is not a tensor; with "
                              "dense=\"torch-mlir\" all results must be")
        if any(size is None for size in value.shape[1:]) or (
                value.shape and value.shape[0] is None and not value.per_sample):
            raise ExportError(
                f"\"{value.name}\" of shape {value.shape} has no row for each sample, so that "
                "devices could not share the dense part; dense=\"external\" leaves it to torch")
    for node in checks_in(dense.module.graph):
        raise ExportError(f"{describe(node)} checks values that depend on rows, which cannot be "
                          "compiled; dense=\"external\" leaves it to torch")
    free = {0: torch.export.Dim.AUTO}
    rows = zero_rows(lookups, inputs, jagged)
    example = [*rows, *(arguments.example[one.name] for one in dense.inputs),
               *(state[one.parameter].detach() for one in dense.parameters)]
    shapes = [free] * len(rows) + [free if one.per_sample else None for one in dense.inputs]
    return to_linalg(dense.module, example, shapes + [None] * len(dense.parameters))
