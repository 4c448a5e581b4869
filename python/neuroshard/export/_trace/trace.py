"""Traces a model with torch.export so that its tables can be taken out."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch.utils import _pytree as pytree

from neuroshard.export._trace.arguments import dynamic_shapes, plain_arguments
from neuroshard.export.errors import ExportError
from neuroshard.export._trace.guards import exact_guards, sizes_of
from neuroshard.export._trace.keyed_lookups import traceable_collections
from neuroshard.export._trace.purity import check_pure, without_writes
from neuroshard.export._trace.sizes import Sizes


def trace(model: torch.nn.Module, args: Sequence, kwargs: Mapping,
          dynamic_batch: bool) -> tuple[torch.export.ExportedProgram, Sizes]:
    """The program of ATen operators and the sizes it is valid for. Parameters and buffers are its
    inputs."""
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"expected an nn.Module, found {type(model).__name__}")
    args, kwargs = plain_arguments(args, kwargs)
    _check_devices(model, (args, kwargs))
    try:
        arguments = inspect.signature(model.forward).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise ExportError(f"the example inputs do not fit {type(model).__name__}.forward: "
                          f"{error}") from None
    tries = dynamic_shapes(arguments) if dynamic_batch else [None]
    with traceable_collections(model), without_meta(model), exact_guards():
        for number, shapes in enumerate(tries, 1):
            try:
                program = torch.export.export(model, args, kwargs, dynamic_shapes=shapes)
                sizes = sizes_of(program)
                program = without_writes(program)
                break
            except Exception as error:  # torch does not document the types
                if number < len(tries):
                    continue
                if isinstance(error, ExportError):
                    raise
                raise ExportError(_explain(model, error)) from error
    check_pure(program)
    return program, sizes


def _check_devices(model: torch.nn.Module, arguments: object) -> None:
    """Raises unless the arguments are on the CPU, and the model there or on the meta device."""
    for name, values in [*model.named_parameters(), *model.named_buffers()]:
        if values.device.type not in ("cpu", "meta"):
            raise ExportError(f"\"{name}\" is on {values.device}; expected a model on the CPU, "
                              "or with tables on the meta device: model.cpu()")
    for value in pytree.tree_leaves(arguments):
        if isinstance(value, torch.Tensor) and value.device.type != "cpu":
            raise ExportError(f"an example input is on {value.device}; expected all on the CPU")


@contextmanager
def without_meta(model: torch.nn.Module) -> Iterator[None]:
    """Within this context parameters on the meta device, such as tables too large for one machine,
    are CPU tensors that repeat one value: operators refuse tensors of two devices."""
    replaced: list[tuple[torch.nn.Module, str, torch.nn.Parameter]] = []
    stand_ins: dict[torch.nn.Parameter, torch.nn.Parameter] = {}
    for module in model.modules():
        for name, values in module.named_parameters(recurse=False, remove_duplicate=False):
            if not values.is_meta:
                continue
            one = torch.zeros((), dtype=values.dtype, device="cpu").expand(values.shape)
            replaced.append((module, name, values))
            module._parameters[name] = stand_ins.setdefault(
                values, torch.nn.Parameter(one, requires_grad=values.requires_grad))
    try:
        yield
    finally:
        for module, name, values in replaced:
            module._parameters[name] = values


def _explain(model: torch.nn.Module, error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    first = lines[0].strip() if lines else type(error).__name__
    text = f"torch.export cannot trace {type(model).__name__}: {first}"
    if "data-dependent" in str(error) or "DataDependent" in type(error).__name__:
        place = next((line.strip() for line in lines if "File \"" in line), "")
        text += (f"\n{place}" if place else "") + (
            "\na branch or a size there depends on values of the inputs; write it with "
            "torch.where, or a mask")
    elif "onstraint" in str(error) and "batch" in str(error):
        text += ("\nthe model works for the example's number of samples alone; "
                 "dynamic_batch=False exports it for that")
    return text
