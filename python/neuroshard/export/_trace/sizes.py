"""The sizes of arguments that a program is valid for, and their check in a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import sympy
import torch

from neuroshard.export.errors import ExportError


def size_of(size: int | torch.SymInt) -> int | sympy.Expr:
    """The size as a number or as an expression of sizes of the arguments."""
    if isinstance(size, int):
        return size
    return int(size.node.expr) if size.node.expr.is_number else size.node.expr


class Size(NamedTuple):
    """The size of an argument at a position. of: a number, or an expression of sizes."""

    name: str
    position: int
    of: int | sympy.Expr

    def __str__(self) -> str:
        return f"{self.name}.shape[{self.position}]"


@dataclass(frozen=True)
class Condition:
    """A condition on sizes that held for the example, and the line that branched on it."""

    expression: sympy.Basic
    text: str
    place: str


class Sizes:
    """The sizes of the arguments, and the conditions on them."""

    def __init__(self, sizes: Iterable[Size], conditions: Iterable[Condition]) -> None:
        lines = [(one, _line(one.of)) for one in sizes]
        # Sizes that determine one symbol first, then those of several.
        lines.sort(key=lambda pair: (pair[1] is None, not isinstance(pair[0].of, sympy.Symbol)))
        self._lines = lines
        self.conditions = list(conditions)

    @property
    def sizes(self) -> list[Size]:
        return [one for one, _ in self._lines]

    def check(self, values: Mapping[str, torch.Tensor]) -> None:
        """Raises an ExportError if the program is not valid for arguments of these sizes."""
        known: dict[sympy.Symbol, int] = {}
        for one, line in self._lines:
            size = values[one.name].shape[one.position]
            expected = _expected(one, line, size, known)
            if expected != size:
                reason = ("as in the example" if isinstance(one.of, int) else
                          "by the sizes of other arguments")
                raise ExportError(f"argument \"{one.name}\": expected {expected} for size "
                                  f"{one.position}, {reason}, found {size}")
        for one in self.conditions:
            if one.expression.subs(known) != True:  # noqa: E712, of sympy
                raise ExportError(
                    f"the program is for {one.text}, as in the example{one.place}, found "
                    f"{self._found(values)}; export it for each such case, or write the model "
                    "without the branch")

    def _found(self, values: Mapping[str, torch.Tensor]) -> dict[str, int]:
        return {str(one): values[one.name].shape[one.position] for one in self.sizes
                if not isinstance(one.of, int)}


# (s, a, b) of a * s + b with a > 0, such as lengths of keys x batch.
_Line = tuple[sympy.Symbol, int, int]


def _expected(one: Size, line: _Line | None, size: int, known: dict[sympy.Symbol, int]) -> object:
    """The size that an argument should have. A symbol that is still unknown is derived from it."""
    if isinstance(one.of, int):
        return one.of
    if line is None:
        return one.of.subs(known)
    symbol, slope, offset = line
    if symbol not in known:
        value, rest = divmod(size - offset, slope)
        if rest or value < 0:
            return one.of.subs(symbol, sympy.Symbol("batch"))
        known[symbol] = value
    return slope * known[symbol] + offset


def _line(expression: object) -> _Line | None:
    symbols = getattr(expression, "free_symbols", ())
    if len(symbols) != 1:
        return None
    (symbol,) = symbols
    offset = expression.subs(symbol, 0)
    slope = expression.subs(symbol, 1) - offset
    if slope <= 0 or sympy.expand(expression - slope * symbol - offset) != 0:
        return None
    return symbol, int(slope), int(offset)
