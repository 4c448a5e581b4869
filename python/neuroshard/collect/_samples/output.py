"""The files of results: checked before the work, written beside their place and renamed."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from neuroshard.collect._errors import CollectError


def check_output(path: str, inputs: Iterable[str] = ()) -> None:
    """Raises a CollectError if no file can be written there, or if it would replace an input or
    something other than a file, such as a device."""
    file = Path(os.path.realpath(path))
    if not path:
        raise CollectError("--out: expected the name of a file, got an empty text")
    if file.exists() and not file.is_file():
        raise CollectError(f"{path}: expected a file, found something else there")
    if not file.parent.is_dir():
        raise CollectError(f"{path}: there is no folder {Path(path).parent}")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise CollectError(f"{path}: its folder cannot be written to")
    if any(Path(os.path.realpath(one)) == file for one in inputs):
        raise CollectError(f"{path}: is an input; name another file to write")


def write_beside(path: str, write: Callable[[str], None]) -> None:
    """write: writes a file, given its name. An interrupted call leaves the earlier file."""
    check_output(path)
    temporary = f"{path}.part"
    try:
        write(temporary)
        os.replace(temporary, path)
    except Exception as error:
        Path(temporary).unlink(missing_ok=True)
        raise CollectError(f"{path}: cannot be written: {error}") from None
