"""The folder of a checkpoint: its files and names, how it is read, written and replaced.

It is a folder of torch.distributed.checkpoint. In addition .metadata has a checksum of every
entry, and neuroshard.json a checksum of .metadata. While a save runs, and after a crash until the
next save, there may be NAME.partial (incomplete) and NAME.replaced (the complete former NAME).
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta

from neuroshard.distributed._checkpoint.plain_data import read_records
from neuroshard.errors import CheckpointError

SCHEMA = "neuroshard.checkpoint.v1"
MARKER = "neuroshard.json"
METADATA = ".metadata"
PARTIAL = ".partial"
REPLACED = ".replaced"
CHUNK_BYTES = 1 << 20
MAX_LISTED = 5

_OWN_FILES = re.compile(r"__[0-9]+_[0-9]+\.distcp|\.metadata(\.tmp)?|neuroshard\.json(\.tmp)?")


class Writer(FileSystemWriter):
    """Adds a checksum of every entry to .metadata; other readers ignore it."""

    def write_data(self, plan: Any, planner: Any) -> Any:
        with disk_errors(self.path):
            written = super().write_data(plan, planner)
        by_file: dict[str, list[Any]] = {}
        for result in written.value():
            by_file.setdefault(result.storage_data.relative_path, []).append(result.storage_data)
        for name, entries in by_file.items():
            with open(self.path / name, "rb") as file:
                for entry in entries:
                    entry.crc32 = checksum(file, entry.offset, entry.length)
        return written

    def finish(self, metadata: Any, results: Any) -> None:
        with disk_errors(self.path):
            super().finish(metadata, results)


class Reader(FileSystemReader):
    """Compares every entry that it reads with its checksum, and .metadata if there is a marker;
    reads .metadata as data."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        marker = read_marker(self.path)
        with open(self.path / METADATA, "rb") as file:
            if marker and marker["metadata_crc32"] != checksum(file, 0):
                raise ValueError(f"{self.path / METADATA} is damaged: its checksum is not that in "
                                 f"{MARKER}")
            file.seek(0)
            found = read_records(file)
        if found.storage_meta is None:
            found.storage_meta = StorageMeta()
        found.storage_meta.load_id = self.load_id
        return found

    def _slice_file(self, file: Any, sinfo: Any) -> IO[bytes]:
        expected = getattr(sinfo, "crc32", None)
        if expected is not None and checksum(file, sinfo.offset, sinfo.length) != expected:
            raise ValueError(f"{self.path / sinfo.relative_path} is damaged: {sinfo.length} bytes "
                             f"at {sinfo.offset} do not have the checksum of {METADATA}")
        return super()._slice_file(file, sinfo)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raises the operating system's error and path, which torch.save() hides behind its own."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause and not (isinstance(cause, OSError) and cause.errno):
            cause = cause.__cause__ or cause.__context__
        if not cause:
            raise
        raise OSError(cause.errno, cause.strerror, str(cause.filename or path)) from error


def checksum(file: IO[bytes], offset: int, length: int | None = None) -> int:
    """CRC-32 of a part of a file, up to the end of the file if that comes first."""
    file.seek(offset)
    result = 0
    while length is None or length > 0:
        data = file.read(CHUNK_BYTES if length is None else min(CHUNK_BYTES, length))
        if not data:
            break
        result = zlib.crc32(data, result)
        length = None if length is None else length - len(data)
    return result


def beside(path: Path, suffix: str) -> Path:
    return path.parent / f"{path.name}{suffix}"  # Not with_name(): '/' has no name.


def is_checkpoint(path: Path) -> bool:
    """Whether a folder is a complete checkpoint that save() wrote."""
    return (path / METADATA).is_file() and (path / MARKER).is_file()


def complete(path: Path) -> Path | None:
    """The complete checkpoint of this name: NAME, or NAME.replaced if a save was killed between
    the two renames. None if there is neither."""
    return next((one for one in (path, beside(path, REPLACED)) if is_checkpoint(one)), None)


def write_marker(path: Path, about: dict[str, Any]) -> None:
    """Writes the last file of a checkpoint, and flushes the folder to the disk."""
    with open(path / METADATA, "rb") as file:
        plain = {"schema": SCHEMA, "metadata_crc32": checksum(file, 0), **about}
    with disk_errors(path), open(path / MARKER, "w", encoding="utf-8") as file:
        json.dump(plain, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    sync(path)


def read_marker(path: Path) -> dict[str, Any] | None:
    """The contents of neuroshard.json; None if save() did not write the checkpoint."""
    try:
        text = (path / MARKER).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        marker = json.loads(text)
        if marker["schema"] == SCHEMA and isinstance(marker["metadata_crc32"], int):
            return marker
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise ValueError(f"{path / MARKER} is damaged, or not of schema {SCHEMA}")


def check_files(path: Path) -> None:
    """Raises if a file that .metadata names is missing or too short, as when ranks wrote to
    folders of the same name on different disks."""
    ends: dict[str, int] = {}
    for entry in Reader(path).read_metadata().storage_data.values():
        end = entry.offset + entry.length
        ends[entry.relative_path] = max(end, ends.get(entry.relative_path, 0))
    for name, end in ends.items():
        file = path / name
        if not file.is_file():
            raise FileNotFoundError(f"{file} was written by another rank, but is missing "
                                    "here; all ranks must save to a file system that they share")
        if file.stat().st_size < end:
            raise OSError(f"{file} has {file.stat().st_size} bytes, expected {end}")


def sync(path: Path) -> None:
    """Flushes the entries of a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_parent(path: Path) -> None:
    """Flushes the name of a folder to the disk."""
    sync(path.parent)


def remove(path: Path) -> None:
    """Removes the folder of a checkpoint, complete or not. Raises if it holds other files."""
    foreign = sorted(entry.name for entry in path.iterdir()
                     if not _OWN_FILES.fullmatch(entry.name))
    if foreign:
        raise FileExistsError(f"{path} holds a file that is not part of a checkpoint "
                              f"({foreign[0]}); remove it or save elsewhere")
    for entry in path.iterdir():
        entry.unlink()
    path.rmdir()


def put_in_place(partial: Path, path: Path) -> None:
    """Renames a complete partial folder to `path`. At any moment either `path` is complete, or it
    is missing and its former contents are NAME.replaced."""
    old = beside(path, REPLACED)
    if path.exists():
        path.rename(old)
        sync_parent(path)
    partial.rename(path)
    sync_parent(path)
    if old.exists():
        remove(old)


def clean(path: Path) -> None:
    """Cleans up after killed saves of this name with any number: removes incomplete folders, and
    finishes or undoes replacements."""
    for old in _leftovers(path, REPLACED):
        name = old.with_name(old.name.removesuffix(REPLACED))
        if name.exists():
            remove(old)
        else:
            old.rename(name)
    for partial in _leftovers(path, PARTIAL):
        remove(partial)


def _leftovers(path: Path, suffix: str) -> list[Path]:
    own = beside(path, suffix)
    found = numbered(path.parent, stem(path), suffix)
    return [*found, own] if own.exists() and own not in found else found


def stem(path: Path) -> str:
    """A name without the number at its end: step- of step-100."""
    return path.name.rstrip("0123456789")


def number(path: Path) -> int | None:
    """The number at the end of a name: 100 of step-100."""
    digits = path.name[len(stem(path)):]
    return int(digits) if digits else None


def numbered(folder: Path, name: str, suffix: str = "") -> list[Path]:
    """Folders called <name><number><suffix>, by number."""
    pattern = re.compile(re.escape(name) + r"([0-9]+)" + re.escape(suffix))
    found = {entry: int(match[1]) for entry in folder.iterdir()
             if (match := pattern.fullmatch(entry.name)) and entry.is_dir()}
    return sorted(found, key=found.__getitem__)


def remove_older(path: Path, keep: int) -> None:
    """Removes all but the newest `keep` checkpoints up to this one, by number."""
    if number(path) is None:
        return
    older = [one for one in numbered(path.parent, stem(path))
             if number(one) <= number(path) and is_checkpoint(one)]
    for one in older[:-keep]:
        partial = beside(one, PARTIAL)
        one.rename(partial)
        remove(partial)


def prepare(path: Path) -> None:
    """Makes PATH.partial for a save. Refuses a path where something else lies."""
    if not path.name:
        raise CheckpointError("expected a folder of its own for the checkpoint, and this is the "
                              "root of the file system; save to a folder in it")
    for above in path.parents:
        if os.path.lexists(above) and not above.is_dir():
            raise CheckpointError(f"{above} is not a folder; remove it or save elsewhere")
    path.parent.mkdir(parents=True, exist_ok=True)
    clean(path)
    if path.is_symlink():  # Links are resolved before, as far as they lead anywhere.
        raise CheckpointError("it is a symbolic link that leads back to itself; remove it or save "
                              "elsewhere")
    if path.exists() and not is_checkpoint(path):
        raise CheckpointError("it exists and is not a checkpoint of neuroshard; remove it or save "
                              "elsewhere")
    beside(path, PARTIAL).mkdir()


def complete_save(partial: Path, path: Path, ranks: int) -> None:
    """Puts the written folder of a save in place."""
    check_files(partial)
    write_marker(partial, {"ranks": ranks, "torch": torch.__version__})
    put_in_place(partial, path)


def locate(path: Path) -> Path:
    """The folder that a load of this path reads: a complete checkpoint, or a folder that
    torch.distributed.checkpoint wrote."""
    found = complete(path) or (path if (path / METADATA).is_file() else None)
    if found:
        return found
    if not path.is_dir():
        raise CheckpointError("there is no such folder")
    inside = [one.name for one in path.iterdir() if is_checkpoint(one)]
    hint = f"; it holds {', '.join(sorted(inside)[:MAX_LISTED])}" if inside else ""
    raise CheckpointError(f"it is not a complete checkpoint: it has no "
                          f"{METADATA}{hint}")
