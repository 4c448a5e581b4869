"""Guards on sizes that torch.export found while it traced the example."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import sympy
import torch
from torch.export.graph_signature import InputKind, TensorArgument

from neuroshard.export.errors import ExportError
from neuroshard.export._trace.locations import is_library, relative
from neuroshard.export._trace.sizes import Condition, Size, Sizes, size_of

_TORCH = os.path.join(os.path.realpath(os.path.dirname(torch.__file__)), "")


@contextmanager
def exact_guards() -> Iterator[None]:
    """Makes torch.export record guards on dynamic sizes of 0 and 1 too. Otherwise a branch on one
    sample, or none, would silently be that of the example."""
    with torch.fx.experimental._config.patch(backed_size_oblivious=True):
        yield


def sizes_of(program: torch.export.ExportedProgram) -> Sizes:
    """program: as torch.export made it; retracing it adds conditions of torch's own."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names = [spec.arg.name for spec in program.graph_signature.input_specs
             if spec.kind == InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument)]
    sizes: list[Size] = []
    environment = None
    for name in names:
        value = nodes[name].meta.get("val")
        for position, size in enumerate(getattr(value, "shape", ())):
            if isinstance(size, torch.SymInt):
                environment = size.node.shape_env
            sizes.append(Size(name, position, size_of(size)))
    return Sizes(sizes, [] if environment is None else _conditions(environment, sizes))


def _conditions(environment: object, sizes: Sequence[Size]) -> list[Condition]:
    names = {}
    # Sizes that are a single symbol first, then expressions.
    for one in sorted(sizes, key=lambda one: not isinstance(one.of, sympy.Symbol)):
        for symbol in getattr(one.of, "free_symbols", ()):
            plain = one.of == symbol
            names.setdefault(symbol, sympy.Symbol(str(one) if plain else "batch"))
    found = {}
    for guard in environment.guards:
        expression, place = environment.replace(guard.expr), guard.sloc.framework_loc
        if expression == True or _is_of_layout(expression, place):  # noqa: E712, of sympy
            continue
        text = str(expression.subs(names))
        if not expression.free_symbols <= set(names):
            raise ExportError(f"the model works for some sizes alone, {text}, which cannot be "
                              f"checked when it is called{_at(place)}; expected no branch on "
                              "a size there")
        found.setdefault(text, Condition(expression, text, _at(place)))
    return list(found.values())


def _is_of_layout(expression: sympy.Basic, place: object) -> bool:
    """Whether torch itself asked about sizes 0 and 1, for which strides do not matter."""
    asked = (isinstance(expression, sympy.Ne) and expression.rhs in (0, 1)
             or isinstance(expression, sympy.Ge) and expression.rhs == 2)
    return asked and os.path.realpath(getattr(place, "filename", "")).startswith(_TORCH)


def _at(place: object) -> str:
    """The user's line as " (file:line)", or ""."""
    name = getattr(place, "filename", None)
    return f" ({relative(name)}:{place.lineno})" if name and not is_library(name) else ""
