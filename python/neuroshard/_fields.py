"""Checks and conversions of what is passed to the constructors of the dataclasses.

The dataclasses are frozen and check each field in __post_init__. Where a constructor accepts more
types than the field has (a list for a tuple, a text for bytes), an __init__ for type checkers
declares them. The planner checks the ranges of values, once for every front end, when a
ShardingProblem is made.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

# Larger than any valid number: the planner checks the range of each.
MAX_WHOLE = 10**29
MAX_UPDATES = 2**62
MAX_SHOWN = 200


class Record:
    """The base class of all dataclasses of this package."""

    def replace(self: T, **changes: Any) -> T:
        """A copy with some fields changed. changes: their values. Raises what the constructor does."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _fail(self, name: str, expected: str, got: Any) -> None:
        raise TypeError(f"{type(self).__name__}.{name}: expected {expected}, "
                        f"got: {shown(got)}")

    def _text(self, *names: str) -> None:
        for name in names:
            text(getattr(self, name), f"{type(self).__name__}.{name}")

    def _choice(self, name: str, choices: Sequence[str]) -> None:
        value = getattr(self, name)
        if not isinstance(value, str) or value not in choices:
            listed = ", ".join(choices)
            raise ValueError(
                f"{type(self).__name__}.{name}: expected one of {listed}, "
                f"got: {shown(value)}")

    def _whole(self, *names: str, optional: bool = False) -> None:
        for name in names:
            value = getattr(self, name)
            if value is None and optional:
                continue
            self._set(name, whole(value, f"{type(self).__name__}.{name}"))

    def _number(self, *names: str) -> None:
        for name in names:
            self._set(name, number(getattr(self, name), f"{type(self).__name__}.{name}"))

    def _flag(self, *names: str) -> None:
        for name in names:
            if not isinstance(getattr(self, name), bool):
                self._fail(name, "True or False", getattr(self, name))

    def _record(self, name: str, kind: type, optional: bool = False) -> None:
        value = getattr(self, name)
        if not isinstance(value, kind) and not (optional and value is None):
            self._fail(name, _named(kind), value)

    def _records(self, name: str, kind: type) -> None:
        values = items(getattr(self, name), f"{type(self).__name__}.{name}", kind.__name__)
        for index, value in enumerate(values):
            if not isinstance(value, kind):
                self._fail(f"{name}[{index}]", _named(kind), value)
        self._set(name, values)


def _named(kind: type) -> str:
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return f"{article} {kind.__name__}"


def shown(value: Any) -> str:
    """The beginning of repr(), or the type where repr() fails, as for numbers of thousands of
    digits."""
    try:
        result = repr(value)
    except ValueError:
        return f"a value of type {type(value).__name__} that cannot be printed"
    return result if len(result) <= MAX_SHOWN else f"{result[:MAX_SHOWN]}..."


def text(value: Any, where: str, expected: str = "a text") -> str:
    """A text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise TypeError(f"{where}: expected {expected}, got: {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where}: expected a text that UTF-8 can hold, without lone "
                         f"surrogates, got: {shown(value)}") from None
    return value


def path(value: Any, where: str) -> str:
    """The path that a text or a path object names."""
    named = os.fspath(value) if isinstance(value, os.PathLike) else value
    result = text(named, where, "a path, as a text or a pathlib.Path")
    if "\0" in result:
        raise ValueError(f"{where}: expected a path without NUL, got: {shown(result)}")
    return result


def whole(value: Any, where: str) -> int:
    """An int from any integer type, such as numpy's."""
    try:
        result = operator.index(value)
    except TypeError:
        result = None
    if result is None or isinstance(value, bool):
        raise TypeError(f"{where}: expected a whole number, got: {shown(value)}")
    if abs(result) > MAX_WHOLE:
        raise ValueError(f"{where}: expected a whole number of less than 30 digits, "
                         f"got one of {result.bit_length()} bits")
    return result


def number(value: Any, where: str) -> float:
    """A finite number; ints stay ints."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{where}: expected a number, got: {shown(value)}")
    try:
        if math.isfinite(value):
            return value if isinstance(value, int) else float(value)
    except OverflowError:
        pass
    raise ValueError(f"{where}: expected a finite number of at most 1.8e308, "
                     f"got: {shown(value)}")


def learning_rate(value: Any) -> float:
    """A number that is finite in f32 and not negative; also a tensor of one element."""
    rate = value.item() if getattr(value, "numel", lambda: 0)() == 1 else value
    rate = number(rate, "learning_rate")
    if not 0 <= rate <= 3.4e38:
        raise ValueError("learning_rate: expected a number from 0 to 3.4e38, got: "
                         f"{shown(value)}")
    return float(rate)


def update_count(value: Any, where: str) -> int:
    """A number of updates so far."""
    result = whole(value, where)
    if not 0 <= result <= MAX_UPDATES:
        raise ValueError(f"{where}: expected a whole number from 0 to 2^62, the number of updates, "
                         f"got: {result}")
    return result


def items(value: Any, where: str, kind: str) -> tuple[Any, ...]:
    """A tuple of any iterable that is neither a text nor a mapping."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"{where}: expected a list of {kind}, got: {shown(value)}")
    return tuple(value)


def texts(value: Any, where: str) -> tuple[str, ...]:
    values = items(value, where, "texts")
    for index, one in enumerate(values):
        if not isinstance(one, str):
            raise TypeError(f"{where}: expected a list of texts, got: {shown(one)} in it")
        text(one, f"{where}[{index}]")
    return values


def device_list(value: Any, where: str) -> tuple[int, ...]:
    """Device numbers; one number stands for a list of one."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return (whole(value, where),)
    return tuple(whole(one, where) for one in items(value, where, "device numbers"))


def span(value: Any, where: str) -> tuple[int, int]:
    """[begin, end)."""
    ends = items(value, where, "[begin, end)")
    if len(ends) != 2:
        raise ValueError(f"{where}: expected [begin, end), got: {value!r}")
    return whole(ends[0], where), whole(ends[1], where)


def byte_size(value: Any, where: str) -> int:
    """Bytes of a whole number or of a text such as "80GiB"."""
    if not isinstance(value, str):
        try:
            return whole(value, where)
        except TypeError:
            raise TypeError(
                f"{where}: expected bytes, as a whole number or a text such as '80GiB', "
                f"got: {shown(value)}") from None
    text(value, where)
    from neuroshard import _planner
    from neuroshard.errors import InvalidProblem
    try:
        return _planner.parse_byte_size(value)
    except InvalidProblem as error:
        message = error.diagnostics[0].message
        raise ValueError(f"{where}: {message}") from None


def to_plain(value: Any) -> Any:
    """The value in dicts, lists, texts and numbers, without fields at their defaults."""
    if isinstance(value, tuple):
        return [to_plain(one) for one in value]
    if hasattr(value, "definition"):  # A device class.
        return value.definition()
    if not dataclasses.is_dataclass(value):
        return value
    plain = {}
    for field in dataclasses.fields(value):
        one = getattr(value, field.name)
        if one is None or (one == field.default and not field.metadata.get("always")):
            continue
        key = field.metadata.get("key", field.name)
        plain[key] = to_plain(one)
    return plain
