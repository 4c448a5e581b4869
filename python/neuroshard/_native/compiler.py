"""Finds and runs neuroshard-compile and the tools beside it."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
from functools import cache

from neuroshard._native import binaries
from neuroshard.errors import CompileError, MissingLibrary


@cache
def compiler_path() -> pathlib.Path:
    """NEUROSHARD_COMPILE, or bin/ of this package, of its build or installation, or PATH."""
    if named := os.environ.get("NEUROSHARD_COMPILE"):
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise MissingLibrary(f"NEUROSHARD_COMPILE names {named}, which is not a program")
        return pathlib.Path(named)
    if found := binaries.tool(binaries.COMPILER) or shutil.which(binaries.COMPILER):
        return pathlib.Path(found)
    raise MissingLibrary(
        f"{binaries.COMPILER} is neither in bin/ of this package, its build or installation, nor "
        "in PATH, nor named by NEUROSHARD_COMPILE; give artifact= a folder that it has written "
        f"elsewhere, or build it: {binaries.BUILD_WITH_COMPILER} (docs/install.md)")


def run(*command: str | os.PathLike, scratch: pathlib.Path | None = None) -> None:
    """Runs a tool. Raises a CompileError with its stderr if it fails. scratch: a folder whose files nobody else knows;
    errors in them are told without their place."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise CompileError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode:
        raise CompileError(_told(done.stderr, scratch).strip() or
                           f"{command[0]} ended with status {done.returncode}")


def _told(text: str, scratch: pathlib.Path | None) -> str:
    """The first error of a text, if it has no place or one in scratch; else the text."""
    files = "|".join(["<unknown>", *([rf"{re.escape(os.fspath(scratch))}/[^:\n]+"] if scratch else [])])
    found = re.search(rf"^(?:{files}):\d+(?::\d+)?: error: (.*)$", text, re.MULTILINE)
    return found.group(1) if found else text
