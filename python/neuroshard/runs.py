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
TERMS = tuple(one.name.removesuffix("_ms") for one in dataclasses.fields(DeviceCost)
              if one.name.endswith("_ms"))


@dataclass(frozen=True, kw_only=True)
class CacheRun(_fields.Record):
    """The row cache of a shard, in the mean of its batches: rows that a batch used, those of them that
    were there, rows written back, and ms that steps waited for rows."""

    rows: float
    hits: float
    written: float
    wait_ms: float

    def __post_init__(self) -> None:
        self._number("rows", "hits", "written", "wait_ms")


@dataclass(frozen=True, kw_only=True)
class Run(_fields.Record):
    """steps: of which the means are. devices: of each, the ms of a step by the terms of a DeviceCost.
    caches: of shards with a row cache, by name."""

    steps: int
    devices: tuple[Mapping[str, float], ...]
    caches: Mapping[str, CacheRun]

    def save(self, path: str | os.PathLike[str]) -> None:
        text = json.dumps({"schema": SCHEMA, "steps": self.steps,
                           "devices": [dict(one) for one in self.devices],
                           "caches": {name: vars(one) for name, one in self.caches.items()}}, indent=1)
        _planner.write_file(os.fspath(path), text + "\n")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Run:
        """Raises a ValueError that says what is wrong with the file."""
        try:
            with open(path, encoding="utf-8") as file:
                plain = json.load(file)
        except OSError as error:
            raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: not JSON: {error}") from error
        if not isinstance(plain, dict) or plain.get("schema") != SCHEMA:
            raise ValueError(f"{path}: expected a file that save_run() of sharded tables wrote, with "
                             f"schema {SCHEMA}")
        try:
            return run_of_plain(plain)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: not a whole {SCHEMA}: {error}") from error


def run_of_plain(plain: Mapping[str, Any]) -> Run:
    devices = tuple({term: _fields.number(one[term], term) for term in TERMS}
                    for one in plain["devices"])
    return Run(steps=_fields.whole(plain["steps"], "steps"), devices=devices,
               caches={name: CacheRun(**one) for name, one in plain["caches"].items()})
