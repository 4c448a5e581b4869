"""Converts expressions of sizes to plain lists and back: ["Add", "s0", 1] is s0 + 1.

Lists need no parser and are never evaluated as code. Symbols are their names; whole numbers and
truth values stay themselves."""

from __future__ import annotations

import sympy
from torch.utils._sympy import functions

_NAMES = ("CeilDiv", "CeilToInt", "CleanDiv", "FloatPow", "FloatTrueDiv", "FloorDiv",
          "FloorToInt", "IntTrueDiv", "LShift", "Max", "Min", "Mod", "ModularIndexing",
          "PowByNatural", "PythonMod", "RShift", "RoundToInt", "ToFloat", "TruncToFloat",
          "TruncToInt", "Where")
_KINDS = {one.__name__: one for one in (
    sympy.Add, sympy.Mul, sympy.Pow, sympy.Eq, sympy.Ne, sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge,
    sympy.And, sympy.Or, sympy.Not, *(getattr(functions, name) for name in _NAMES))}


def expression_to_plain(expression: object) -> object:
    """The expression as lists. Raises a ValueError that names an unknown kind."""
    if isinstance(expression, (int, sympy.Integer)):
        return int(expression)
    if isinstance(expression, sympy.logic.boolalg.BooleanAtom):
        return bool(expression)
    if isinstance(expression, sympy.Symbol):
        return expression.name
    if isinstance(expression, sympy.Rational):
        return ["Rational", int(expression.p), int(expression.q)]
    if isinstance(expression, sympy.Float):
        return ["Float", float(expression).hex()]
    kind = type(expression).__name__
    if _KINDS.get(kind) is not type(expression):
        raise ValueError(f"{expression}, on which the model branches, has a {kind}, which no file "
                         "can hold; expected sums, products, divisions and comparisons of sizes")
    return [kind, *map(expression_to_plain, expression.args)]


def expression_of_plain(value: object) -> object:
    """The expression, or an int for a number. Raises a ValueError that names an unknown kind."""
    return int(made) if isinstance(made := _read(value), sympy.Integer) else made


def _read(value: object) -> sympy.Basic:
    if isinstance(value, (bool, int)):
        return sympy.sympify(value)
    if isinstance(value, str):
        return sympy.Symbol(value, integer=True, nonnegative=True)
    match value:
        case ["Rational", int(p), int(q)] if q:
            return sympy.Rational(p, q)
        case ["Float", str(text)]:
            return sympy.Float(float.fromhex(text))
        case [str(kind), *given] if kind in _KINDS:
            return _KINDS[kind](*map(_read, given))
    raise ValueError(f"{value!r} is not an expression of sizes")
