"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def combined(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function
    return add


class Number(click.FloatRange):
    """A finite number in a range. click's own types let nan pass, which compares as in every range,
    and FLOAT infinities."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None
                ) -> float:
        converted = super().convert(value, param, context)
        if not math.isfinite(converted):
            self.fail(f"expected a finite number, got: {value}", param, context)
        return converted


class Pair(click.ParamType):
    """Two texts with = between them: the first has none in it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None
                ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        first, sign, second = value.partition("=")
        if not (first and sign and second):
            self.fail(f"expected {self.name}, got: {value}", param, context)
        return first, second


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
