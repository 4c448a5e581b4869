"""Folders in which freezing works, beside the one that it writes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

PREFIX = ".freeze."
# Inside: the folder that is made, the one that was there before, and a file that is locked while the writer lives
# and has the path of the folder to write.
MADE, BEFORE, LOCK = "frozen", "before", "lock"


@contextlib.contextmanager
def writing(folder: pathlib.Path) -> Iterator[None]:
    """Names the folder to be written in errors of the system, in place of the files inside of the hidden one."""
    try:
        yield
    except OSError as error:
        raise OSError(f"freeze: cannot write {folder}: {error.strerror or error}") from error


@contextlib.contextmanager
def scratch_beside(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A hidden folder beside `folder`, on the same file system, that is gone in the end. Removes those of writers
    that were killed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder.parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=folder.parent) as name:
        scratch = pathlib.Path(name)
        with (scratch / LOCK).open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(os.fspath(folder))
            lock.flush()
            yield scratch


def put(scratch: pathlib.Path, folder: pathlib.Path) -> None:
    """Moves the folder that was made to its place."""
    if folder.exists():
        folder.rename(scratch / BEFORE)
    (scratch / MADE).rename(folder)


def _remove_abandoned(parent: pathlib.Path) -> None:
    for scratch in parent.glob(f"{PREFIX}*"):
        # Without a lock it has only just been made. Errors: another removes it, or it is not ours to remove.
        with contextlib.suppress(OSError), (scratch / LOCK).open(encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = pathlib.Path(lock.read())
            if (scratch / BEFORE).exists() and not folder.exists():  # it was killed between the two moves
                (scratch / BEFORE).rename(folder)
            shutil.rmtree(scratch)
