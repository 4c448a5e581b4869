"""Writes and reads the programs that torch runs, as files of torch.export.

A file has the same graph as the program in memory. The checks of sizes that torch guesses from the
example are left out, since Sizes has the real ones."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import torch
from torch.export.graph_signature import ExportGraphSignature, InputKind

from neuroshard.export._signature import Value
from neuroshard.export._trace.guards import exact_guards
from neuroshard.export._trace.trees import require_module
from neuroshard.export.errors import ExportError

# Packages that define operators, by the namespace of these.
_PACKAGES = {"fbgemm": "fbgemm_gpu"}


# An example, and whether the program is for any first size of it.
Input = tuple[torch.Tensor, bool]


def write_program(module: torch.fx.GraphModule, inputs: Sequence[Input],
                  path: pathlib.Path) -> None:
    """Writes a program with its tensor results alone."""
    shapes = tuple({0: torch.export.Dim.AUTO} if free else None for _, free in inputs)
    with exact_guards():
        program = torch.export.export(_of_tensors(module), tuple(_held(one) for one, _ in inputs),
                                      dynamic_shapes=shapes)
    _require_plain(program.graph_signature)
    program.example_inputs = None  # among them the parameters
    torch.export.save(program, path)


def _of_tensors(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The module without results that are not tensors: torch cannot read all that it writes."""
    graph = torch.fx.Graph()
    results = graph.graph_copy(module.graph, {})
    graph.output(tuple(one for one in results if isinstance(one, torch.fx.Node)))
    return torch.fx.GraphModule(module, graph)


def _held(value: torch.Tensor) -> torch.Tensor:
    """The tensor, or a CPU tensor of its shape in place of one on the meta device, since operators
    refuse tensors of two devices."""
    if not value.is_meta:
        return value
    one = torch.zeros((), dtype=value.dtype).expand(value.shape)
    own = isinstance(value, torch.nn.Parameter)
    return torch.nn.Parameter(one, requires_grad=False) if own else one


def _require_plain(signature: ExportGraphSignature) -> None:
    for one in signature.input_specs:
        if one.kind != InputKind.USER_INPUT:
            raise ValueError(f"a program has {one.target or one.arg.name} in it, of kind "
                             f"{one.kind.name}; expected arguments alone")


def operators_of(*modules: torch.fx.GraphModule) -> list[str]:
    """The operators that are not torch's own."""
    targets = {str(node.target) for module in modules for part in module.modules()
               if isinstance(part, torch.fx.GraphModule) for node in part.graph.nodes
               if isinstance(node.target, torch._ops.OpOverload)
               and node.target.namespace not in ("aten", "prims", "_c10d_functional")}
    return sorted(targets)


def require_operators(names: Sequence[str]) -> None:
    """Raises unless the operators of a file are defined, as torch needs them to read it."""
    for name in names:
        namespace, operator = name.split(".")[:2]
        if namespace in _PACKAGES:
            require_module(_PACKAGES[namespace], f"operators {name}")
        if not hasattr(getattr(torch.ops, namespace), operator):
            raise ExportError(f"the model calls {name}, which nothing here defines; import the "
                              "package that does before this call")


def read_program(path: pathlib.Path, inputs: int,
                 results: int | Sequence[object]) -> torch.fx.GraphModule:
    """Reads a program. inputs: the number it must have. results: the number of tensors that it
    must have, or a Value for each tensor, and the other results themselves."""
    program = torch.export.load(path)
    _require_plain(program.graph_signature)
    tensors = (results if isinstance(results, int)
               else sum(isinstance(one, Value) for one in results))
    found = len(program.graph_signature.input_specs), len(program.graph_signature.output_specs)
    if found != (inputs, tensors):
        raise ValueError(f"expected {inputs} inputs and {tensors} results, found {found[0]} and "
                         f"{found[1]}")
    module = program.graph_module
    if isinstance(results, int):
        return module
    output = module.graph.output_node()
    made = iter(output.args[0])
    output.args = (tuple(next(made) if isinstance(one, Value) else one for one in results),)
    module.recompile()
    return module
