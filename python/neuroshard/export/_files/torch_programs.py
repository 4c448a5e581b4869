"""The parts that torch runs, as files of torch.export.

A file has the graph that the part has in memory. Its own checks of sizes, torch's guess from the
example, are left out: Sizes knows which there are."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import torch
from torch.export.graph_signature import ExportGraphSignature, InputKind

from neuroshard.export.errors import ExportError
from neuroshard.export._trace.guards import exact_guards
from neuroshard.export._program import Value
from neuroshard.export._trace.trees import require_module

# Packages that define operators, by the namespace of these.
_PACKAGES = {"fbgemm": "fbgemm_gpu"}


def write_program(module: torch.fx.GraphModule, example: Sequence[torch.Tensor],
                  path: pathlib.Path) -> None:
    """The tensors that it gives, for any number of samples, as torch.export.save writes it."""
    free = {0: torch.export.Dim.AUTO}
    shapes = tuple(free if one.dim() and not isinstance(one, torch.nn.Parameter) else None
                   for one in example)
    with exact_guards():
        program = torch.export.export(_of_tensors(module), tuple(map(_held, example)),
                                      dynamic_shapes=shapes)
    _require_plain(program.graph_signature)
    program.example_inputs = None  # among them the parameters
    torch.export.save(program, path)


def _of_tensors(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Without results that are no tensors, of which torch writes some that it cannot read."""
    graph = torch.fx.Graph()
    results = graph.graph_copy(module.graph, {})
    graph.output(tuple(one for one in results if isinstance(one, torch.fx.Node)))
    return torch.fx.GraphModule(module, graph)


def _held(value: torch.Tensor) -> torch.Tensor:
    """Operators refuse tensors of two devices."""
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
    """Operators that others than torch define."""
    targets = {str(node.target) for module in modules for part in module.modules()
               if isinstance(part, torch.fx.GraphModule) for node in part.graph.nodes
               if isinstance(node.target, torch._ops.OpOverload)
               and node.target.namespace not in ("aten", "prims", "_c10d_functional")}
    return sorted(targets)


def require_operators(names: Sequence[str]) -> None:
    """Those that a file has must be there before torch reads it."""
    for name in names:
        namespace, operator = name.split(".")[:2]
        if namespace in _PACKAGES:
            require_module(_PACKAGES[namespace], f"operators {name}")
        if not hasattr(getattr(torch.ops, namespace), operator):
            raise ExportError(f"the model calls {name}, which nothing here defines; import the "
                              "package that does before this call")


def read_program(path: pathlib.Path, inputs: int,
                 results: Sequence[object]) -> torch.fx.GraphModule:
    """inputs: how many it has to have. results: a Value for each tensor, and the others."""
    program = torch.export.load(path)
    _require_plain(program.graph_signature)
    tensors = sum(isinstance(one, Value) for one in results)
    found = len(program.graph_signature.input_specs), len(program.graph_signature.output_specs)
    if found != (inputs, tensors):
        raise ValueError(f"expected {inputs} inputs and {tensors} results, found {found[0]} and "
                         f"{found[1]}")
    module = program.graph_module
    output = module.graph.output_node()
    made = iter(output.args[0])
    output.args = (tuple(next(made) if isinstance(one, Value) else one for one in results),)
    module.recompile()
    return module
