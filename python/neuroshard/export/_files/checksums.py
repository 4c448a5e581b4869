"""The files of an exported model, and the checksums that tie them together.

path.json has the SHA-256 of each other file and a checksum of itself, so that damaged files, or
files of another export, are found before they are read."""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Mapping

import torch

from neuroshard.export.errors import ExportError

SCHEMA = "neuroshard.export.v2"


def place_of(path: pathlib.Path, ending: str) -> pathlib.Path:
    return path.with_name(f"{path.name}.{ending}")


def require_path(path: pathlib.Path) -> None:
    if not path.name or path.name == "..":
        raise ExportError(f"expected a path whose last part names the files, found \"{path}\"")


def digest(path: pathlib.Path) -> str:
    made = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            made.update(block)
    return made.hexdigest()


def record_text(record: Mapping, files: Mapping[str, pathlib.Path]) -> str:
    """The text of path.json. files: those beside it, by ending."""
    whole = {"schema": SCHEMA, "torch": torch.__version__,
             "files": {ending: digest(path) for ending, path in files.items()}, **record}
    return json.dumps({**whole, "checksum": _checksum(whole)}, indent=1) + "\n"


def _checksum(record: Mapping) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def read_record(path: pathlib.Path) -> dict:
    """The contents of path.json. Raises unless it has this version and is undamaged."""
    place = place_of(path, "json")
    try:
        record = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExportError(f"there is no \"{place}\"; expected the path that save() was given, "
                          "without an ending") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ExportError(f"cannot read \"{place}\": {error}") from error
    schema = record.get("schema") if isinstance(record, dict) else None
    if schema != SCHEMA:
        raise ExportError(f"\"{place}\": expected a file of the version \"{SCHEMA}\", found "
                          f"{str(schema)[:80]!r}; save the model again with this version")
    checksum = record.pop("checksum", None)
    if checksum != _checksum(record):
        raise ExportError(f"\"{place}\" is not what save() wrote; copy all files of the export "
                          "again, or save it again")
    return record


def require_files(path: pathlib.Path, record: Mapping) -> None:
    """Raises unless the files beside path.json have the checksums in it."""
    files = record["files"]
    if missing := [one for one in ("mlir", "ids.pt2", "dense.pt2") if one not in files]:
        raise ValueError(f"files: expected \"{missing[0]}\" among {sorted(files)}")
    for ending, expected in files.items():
        _require_file(place_of(path, ending), expected, place_of(path, "json"))


def _require_file(place: pathlib.Path, expected: str, by: pathlib.Path) -> None:
    try:
        found = digest(place)
    except OSError as error:
        raise ExportError(f"cannot read \"{place}\", which \"{by.name}\" names: "
                          f"{error.strerror}") from error
    if found != expected:
        raise ExportError(f"\"{place}\" is damaged, or of another export than \"{by.name}\"; copy "
                          "all files of the export again, or save it again")
