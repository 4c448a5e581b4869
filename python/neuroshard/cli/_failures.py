"""Error messages of the command for exceptions."""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from typing import NamedTuple

from neuroshard._printable import of_error
from neuroshard.errors import Error, InputError, PlanningError


class Failure(NamedTuple):
    """kind: the type of the exception. limit: the binding limit, when there is no plan."""

    kind: str
    message: str
    limit: str | None = None


class UserCodeError(InputError):
    """A function of the user raised an exception."""


def fail(error: Exception, as_json: bool) -> int:
    """Prints an error; returns the exit code."""
    if os.environ.get("NEUROSHARD_TRACEBACK"):
        raise error
    failure = describe(error)
    if as_json:
        print(json.dumps({"error": failure._asdict()}, indent=1))
    else:
        print(f"error: {of_error(failure.message)}", file=sys.stderr)
    return 1


def is_of_output(error: Exception) -> bool:
    """Whether standard output takes no more, or is closed: errors of files that we open have their
    names."""
    return isinstance(error, OSError) and error.filename is None and (
        error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF))


def describe(error: Exception) -> Failure:
    kind = type(error).__name__
    if isinstance(error, PlanningError):
        return Failure(kind, str(error), error.limit)
    if is_of_output(error):
        return Failure(kind, f"cannot write the output: {error.strerror}")
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return Failure(kind, f"{place}{error.strerror}")
    if isinstance(error, (Error, OSError, ValueError, TypeError, ImportError)):
        return Failure(kind, str(error) or kind)
    return Failure(kind, f"{kind}: {error} ({place_of(error)}; this should not happen: "
                         "NEUROSHARD_TRACEBACK=1 shows how it came about)")


def place_of(error: BaseException, file: str | None = None) -> str:
    """File and line where it was raised; with `file`, the innermost line in that file, or the file where it was raised
    in calling it."""
    frames = traceback.extract_tb(error.__traceback__)
    if file:
        frames = [one for one in frames if os.path.abspath(one.filename) == file]
    if not frames:
        return os.path.basename(file) if file else "unknown place"
    frame = frames[-1]
    return f"{os.path.basename(frame.filename)}, line {frame.lineno}"
