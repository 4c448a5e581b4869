"""Sizes that a program is for: what torch.export found of them while it traced the example."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import sympy
import torch
from torch.export.graph_signature import InputKind, TensorArgument

from neuroshard.export.errors import ExportError
from neuroshard.export.locations import is_library, relative

_TORCH = os.path.join(os.path.realpath(os.path.dirname(torch.__file__)), "")


@contextmanager
def exact_guards() -> Iterator[None]:
    """Within it torch.export takes nothing for granted of a dynamic size. Else a branch on one
    sample, or none, would be that of the example, and nothing would say so."""
    with torch.fx.experimental._config.patch(backed_size_oblivious=True):
        yield


def size_of(size: int | torch.SymInt) -> int | sympy.Expr:
    """A number, or the expression of sizes of the arguments that it is."""
    if isinstance(size, int):
        return size
    return int(size.node.expr) if size.node.expr.is_number else size.node.expr


class _Size(NamedTuple):
    """That of an argument at a position; of: a number, or an expression of sizes; line: see
    _line."""

    name: str
    position: int
    of: object
    line: tuple[sympy.Symbol, int, int] | None

    def __str__(self) -> str:
        return f"{self.name}.shape[{self.position}]"


@dataclass(frozen=True)
class _Condition:
    """What the model's path through the example says of sizes, and the line that asked."""

    expression: sympy.Basic
    text: str
    place: str


class Sizes:
    """conditions: what they must be, as text."""

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        """program: as torch.export made it; retracing it adds conditions of torch's own."""
        nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        names = [spec.arg.name for spec in program.graph_signature.input_specs
                 if spec.kind == InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument)]
        self._sizes: list[_Size] = []
        environment = None
        for name in names:
            value = nodes[name].meta.get("val")
            for position, size in enumerate(getattr(value, "shape", ())):
                if isinstance(size, torch.SymInt):
                    environment = size.node.shape_env
                self._sizes.append(_Size(name, position, size_of(size), _line(size_of(size))))
        # Those that say what a symbol is before those that need several.
        self._sizes.sort(key=lambda one: (one.line is None, not isinstance(one.of, sympy.Symbol)))
        self._conditions = [] if environment is None else self._conditions_of(environment)

    @property
    def conditions(self) -> list[str]:
        return [one.text for one in self._conditions]

    def _conditions_of(self, environment: object) -> list[_Condition]:
        names = {}
        for one in self._sizes:
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
            found.setdefault(text, _Condition(expression, text, _at(place)))
        return list(found.values())

    def check(self, values: Mapping[str, torch.Tensor]) -> None:
        """Raises an ExportError if the program is not for arguments of these sizes."""
        known: dict[sympy.Symbol, int] = {}
        for one in self._sizes:
            size = values[one.name].shape[one.position]
            expected = _expected(one, size, known)
            if expected != size:
                reason = ("as in the example" if isinstance(one.of, int) else
                          "by the sizes of other arguments")
                raise ExportError(f"argument \"{one.name}\": expected {expected} for size "
                                  f"{one.position}, {reason}, found {size}")
        for one in self._conditions:
            if one.expression.subs(known) != True:  # noqa: E712, of sympy
                raise ExportError(
                    f"the program is for {one.text}, as in the example{one.place}, found "
                    f"{self._found(values)}; export it for each such case, or write the model "
                    "without the branch")

    def _found(self, values: Mapping[str, torch.Tensor]) -> dict[str, int]:
        return {str(one): values[one.name].shape[one.position] for one in self._sizes
                if not isinstance(one.of, int)}


def _expected(one: _Size, size: int, known: dict[sympy.Symbol, int]) -> object:
    """What the size should be. A symbol that is not known yet becomes what the size says."""
    if isinstance(one.of, int):
        return one.of
    if one.line is None:
        return one.of.subs(known)
    symbol, slope, offset = one.line
    if symbol not in known:
        value, rest = divmod(size - offset, slope)
        if rest or value < 0:
            return one.of.subs(symbol, sympy.Symbol("batch"))
        known[symbol] = value
    return slope * known[symbol] + offset


def _line(expression: object) -> tuple[sympy.Symbol, int, int] | None:
    """(s, a, b) of a * s + b with a > 0, such as lengths of keys x batch."""
    symbols = getattr(expression, "free_symbols", ())
    if len(symbols) != 1:
        return None
    (symbol,) = symbols
    offset = expression.subs(symbol, 0)
    slope = expression.subs(symbol, 1) - offset
    if slope <= 0 or sympy.expand(expression - slope * symbol - offset) != 0:
        return None
    return symbol, int(slope), int(offset)


def _is_of_layout(expression: sympy.Basic, place: object) -> bool:
    """Whether torch itself asked for sizes 0 and 1, of which strides do not matter."""
    asked = (isinstance(expression, sympy.Ne) and expression.rhs in (0, 1)
             or isinstance(expression, sympy.Ge) and expression.rhs == 2)
    return asked and os.path.realpath(getattr(place, "filename", "")).startswith(_TORCH)


def _at(place: object) -> str:
    """The user's line, or nothing."""
    name = getattr(place, "filename", None)
    return f" ({relative(name)}:{place.lineno})" if name and not is_library(name) else ""
