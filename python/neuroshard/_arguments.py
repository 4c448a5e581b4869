"""Command lines of modules: numbers in their range, decimal and finite, and errors without control
characters. C++ tools have tools/command-line for it."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable
from typing import NoReturn

from neuroshard._printable import printable


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {printable(message)}\n")


def whole(least: int, most: int) -> Callable[[str], int]:
    """Reads a whole number in [least, most]."""
    def read(text: str) -> int:
        if re.fullmatch("[+-]?[0-9]{1,30}", text) and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(
            f"expected a whole number in [{least}, {most}], got: {text!r}")
    return read


def real(least: float, most: float) -> Callable[[str], float]:
    """Reads a number in [least, most]."""
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if least <= value <= most:
            return value
        raise argparse.ArgumentTypeError(
            f"expected a number in [{least:g}, {most:g}], got: {text!r}")
    return read
