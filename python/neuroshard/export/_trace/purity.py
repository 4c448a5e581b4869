"""Makes a traced program pure or refuses it: no writes in place, no random numbers, no training
mode."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from neuroshard.export.errors import ExportError
from neuroshard.export._trace.locations import describe

_MODES = ("train", "training", "use_input_stats")
_CHANCES = ("p", "dropout", "dropout_p")


def without_writes(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program with new values in place of writes, also of writes through views, so that it can
    be cut along its values."""
    if not any(map(_writes, _calls(program))):
        return program
    program = program.run_decompositions({})  # decomposes nothing else, so that embeddings stay
    for node in filter(_writes, _calls(program)):
        raise ExportError(f"{describe(node)} writes in place with {node.target}, which cannot be "
                          "exported; expected an operator that returns the new value")
    return program


def _calls(program: torch.export.ExportedProgram) -> Iterator[Node]:
    """All calls of operators, also in nested graphs."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from (node for node in module.graph.nodes
                        if isinstance(node.target, torch._ops.OpOverload))


def _writes(node: Node) -> bool:
    return node.target._schema.is_mutable


def check_pure(program: torch.export.ExportedProgram) -> None:
    """Raises an ExportError that names the first impure operator, input or output."""
    for node in _calls(program):
        _check_inference(node)
    signature = program.graph_signature
    for spec in signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT and not _renormalises(program):
            raise ExportError(f"the forward changes \"{spec.target}\" in place; the exported "
                              "program cannot: give model.eval(), or return the new value")
    for spec in signature.input_specs:
        if spec.kind not in (InputKind.USER_INPUT, InputKind.PARAMETER, InputKind.BUFFER,
                             InputKind.CONSTANT_TENSOR):
            raise ExportError(f"input \"{spec.arg.name}\" of kind {spec.kind.name} cannot be "
                              "exported; expected tensors")


def _renormalises(program: torch.export.ExportedProgram) -> bool:
    """Whether a max_norm changes a table, for which there is a more precise error."""
    return any("renorm" in str(node.target) for node in _calls(program))


def _check_inference(node: Node) -> None:
    given = arguments_of(node)
    modes = [given[name] for name in _MODES if name in given]
    chances = [given[name] for name in _CHANCES if name in given and (modes or name != "p")]
    # A normalisation without running statistics uses those of the batch in eval(), too.
    changes = any(chances) if chances else bool(modes) and given.get("running_mean", 0) is not None
    if changes and False not in modes:
        raise ExportError(f"{describe(node)} is as in training; call model.eval() before, as the "
                          "program is for inference")
    if is_random(node) and not modes and not chances:
        raise ExportError(f"{describe(node)} draws random numbers with {node.target}, which cannot "
                          "be exported; give them as an argument")


def arguments_of(node: Node) -> dict[str, object]:
    """The arguments of a call by name, with the operator's defaults."""
    named = node.target._schema.arguments
    given = {one.name: one.default_value for one in named if one.has_default_value()}
    return {**given, **dict(zip((one.name for one in named), node.args)), **node.kwargs}


def is_random(node: Node) -> bool:
    """Whether two calls with the same arguments give different values."""
    return (isinstance(node.target, torch._ops.OpOverload)
            and torch.Tag.nondeterministic_seeded in node.target.tags)
