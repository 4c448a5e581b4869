"""The files that are named on the command line: those to read must exist, those to write
must not be inputs, nor the same file twice."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import combinations

import neuroshard as ns
from neuroshard import _fields
from neuroshard.cli._failures import InputError


def load_plan(path: str) -> ns.Plan:
    return ns.Plan.load(existing(path, "a plan"))


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str | None]) -> None:
    """Raises if a result could not be written, before planning, which may take minutes. outputs:
    all those of the command, by option."""
    given = {option: path for option, path in outputs.items() if path is not None}
    for option, path in given.items():
        if any(one is not None and os.path.exists(one) and same_file(one, path) for one in inputs):
            raise InputError(f"{path} is an input; name another file to write")
        ns._planner.check_writable(_fields.path(path, option))
    for (first, one), (second, other) in combinations(given.items(), 2):
        if same_file(one, other):
            raise InputError(f"{first} {one} and {second} {other} are the same file; name another "
                             "for one of them")


def same_file(one: str, other: str) -> bool:
    """Whether two paths name one file, which need not exist yet."""
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def existing(path: str, what: str) -> str:
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; expected the file of {what}")
    if not os.path.exists(path):
        raise InputError(f"there is no file {path}; expected {what}")
    return path
