"""The files that are named on the command line: those to read must exist, those to write
must not be inputs."""

from __future__ import annotations

import os
from collections.abc import Iterable

import neuroshard as ns
from neuroshard.cli._failures import InputError


def load_plan(path: str) -> ns.Plan:
    return ns.Plan.load(existing(path, "a plan"))


def check_output(path: str | None, inputs: Iterable[str | None]) -> None:
    """Raises if a result could not be written, before planning, which may take minutes."""
    if path is None:
        return
    if any(one is not None and os.path.exists(one) and os.path.exists(path)
           and os.path.samefile(one, path) for one in inputs):
        raise InputError(f"{path} is an input; name another file to write")
    ns._planner.check_writable(path)


def existing(path: str, what: str) -> str:
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; expected the file of {what}")
    if not os.path.exists(path):
        raise InputError(f"there is no file {path}; expected {what}")
    return path
