"""What training under a plan took, beside what the planner predicts: schema neuroshard.run.v1
(docs/formats.md)."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuroshard import _fields, _planner
from neuroshard.results import DeviceCost

SCHEMA = "neuroshard.run.v1"
MOST = 1e15  # ms, or rows of a batch
TERMS = tuple(one.name.removesuffix("_ms") for one in dataclasses.fields(DeviceCost)
              if one.name.endswith("_ms"))


@dataclass(frozen=True, kw_only=True)
class CacheRun(_fields.Record):
    """The row cache of a shard, in the mean of its batches. rows: that a batch used; hits: those of them that
    were there; written: rows written back; wait_ms: ms that steps waited for rows."""

    rows: float
    hits: float
    written: float
    wait_ms: float

    def __post_init__(self) -> None:
        self._number("rows", "hits", "written", "wait_ms")
        for name, value in vars(self).items():
            _require(0 <= value <= MOST, f"CacheRun.{name}", f"a number from 0 to {MOST:g}", value)
        _require(self.hits <= self.rows, "CacheRun.hits", "at most the rows", self.hits)


@dataclass(frozen=True, kw_only=True)
class Run(_fields.Record):
    """What steps took under a plan, measured. steps: of which the means are. devices: of each, the ms of a step by the terms of a DeviceCost.
    caches: of shards with a row cache, by name. tables: those of the steps; empty in older files."""

    steps: int
    devices: tuple[Mapping[str, float], ...]
    caches: Mapping[str, CacheRun]
    tables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._whole("steps")
        _require(self.steps > 0, "Run.steps", "at least 1", self.steps)
        self._set("devices", tuple(_times(one, f"Run.devices[{number}]") for number, one in
                                   enumerate(_fields.items(self.devices, "Run.devices", "mapping"))))
        self._set("tables", _fields.texts(self.tables, "Run.tables"))
        if not isinstance(self.caches, Mapping) or not all(
                isinstance(one, CacheRun) for one in self.caches.values()):
            raise TypeError("Run.caches: expected a mapping of CacheRun, got: "
                            f"{_fields.shown(self.caches)}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the run to the file `path`, for load() and `neuroshard explain --run`. Raises an OSError if it cannot
        be written."""
        text = json.dumps({"schema": SCHEMA, "steps": self.steps, "tables": self.tables,
                           "devices": [dict(one) for one in self.devices],
                           "caches": {name: vars(one) for name, one in self.caches.items()}}, indent=1)
        _planner.write_file(_fields.path(path, "path"), text + "\n")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Run:
        """The run in the file `path`. Raises a ValueError that says what is wrong with the file."""
        name = _fields.path(path, "path")
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except (OSError, ValueError) as error:
            raise ValueError(f"{name}: cannot be read: {getattr(error, 'strerror', error)}") from error
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name}: not JSON: {error}") from error
        if not isinstance(plain, dict) or plain.get("schema") != SCHEMA:
            raise ValueError(f"{name}: expected a file that save_run() of sharded tables wrote, with "
                             f"schema {SCHEMA}")
        try:
            return run_of_plain(plain)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from error


def run_of_plain(plain: Mapping[str, Any]) -> Run:
    fields = ("schema", "steps", "devices", "caches")
    _require_fields(plain, (*fields, "tables") if "tables" in plain else fields, "the file")
    caches = plain["caches"]
    _require(isinstance(caches, dict), "caches", "an object", caches)
    names = tuple(one.name for one in dataclasses.fields(CacheRun))
    for name, one in caches.items():
        _require_fields(one, names, f"caches.{name}")
    return Run(steps=plain["steps"], devices=plain["devices"], tables=plain.get("tables", ()),
               caches={name: CacheRun(**one) for name, one in caches.items()})


def _times(given: Any, where: str) -> dict[str, float]:
    _require_fields(given, TERMS, where)
    times = {term: _fields.number(given[term], f"{where}.{term}") for term in TERMS}
    for term, value in times.items():
        _require(0 <= value <= MOST, f"{where}.{term}", f"a number from 0 to {MOST:g}", value)
    return times


def _require_fields(given: Any, names: tuple[str, ...], where: str) -> None:
    _require(isinstance(given, Mapping) and set(given) == set(names), where,
             f"an object with the fields {', '.join(names)}", given)


def _require(holds: bool, where: str, expected: str, got: Any) -> None:
    if not holds:
        raise ValueError(f"{where}: expected {expected}, got: {_fields.shown(got)}")
