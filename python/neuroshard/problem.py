"""Sharding problems: tables, features, topology, batch, constraints and target."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from neuroshard import _fields, _planner
from neuroshard._html import html_table
from neuroshard._printable import counted, printable_line
from neuroshard._vocabulary import MEMORY_MODELS, MODES, SEMANTICS, TARGETS
from neuroshard.constraints import Constraints, constraints_of_plain
from neuroshard.errors import Diagnostic, InvalidProblem
from neuroshard.tables import (Batch, Feature, Optimizer, Snapshot, Table, snapshot_of_plain,
                               table_of_plain)
from neuroshard.topology import Topology, as_topology, topology_of_plain

SCHEMA = "neuroshard.workload.v1"

Target = Literal["native", "torchrec-1.9"]
Mode = Literal["training", "inference"]
MemoryModel = Literal["full", "weights_only"]
Semantics = Literal["exact", "per_shard"]


@dataclass(frozen=True, kw_only=True)
class ShardingProblem(_fields.Record):
    """Tables, the features that read them, a batch, devices, rules.

    constraints: the rules. source: where the figures come from, for people.
    batch: a Batch, or the number of samples over all devices. topology: a Topology or a text
    such as "8xH200"; None for the tables alone (plan() needs one). target: what runs the plan.
    mode: of "inference" a step has lookups and their exchanges alone, and tables have no optimizers; served() makes
    such a problem. memory_model: "full" counts every term, "weights_only" the weights alone.
    optimizer_semantics: "exact" keeps one row-wise state per row however a table is cut,
    "per_shard" one per shard. cache_load_factor: share of the rows of a table in host memory
    that a software cache in device memory holds. snapshots: when there are any, a plan's cost
    is the weighted mean over them, and its memory must suffice in the worst.

    Everything is checked here: InvalidProblem lists all that is wrong.
    """

    tables: tuple[Table, ...]
    features: tuple[Feature, ...]
    batch: Batch
    topology: Topology | None = None
    constraints: Constraints = Constraints()
    snapshots: tuple[Snapshot, ...] = ()
    target: Target = "native"
    mode: Mode = "training"
    memory_model: MemoryModel = "full"
    optimizer_semantics: Semantics = "exact"
    cache_load_factor: float = 0
    source: str = ""

    if TYPE_CHECKING:
        def __init__(self, *, tables: Iterable[Table], features: Iterable[Feature],
                     batch: Batch | int, topology: Topology | str | None = None,
                     constraints: Constraints = Constraints(),
                     snapshots: Iterable[Snapshot] = (), target: Target = "native",
                     mode: Mode = "training", memory_model: MemoryModel = "full", optimizer_semantics: Semantics = "exact",
                     cache_load_factor: float = 0, source: str = "") -> None:
            ...

    def __post_init__(self) -> None:
        self._records("tables", Table)
        self._records("features", Feature)
        if not isinstance(self.batch, Batch):
            self._set("batch", Batch(_fields.whole(self.batch, "ShardingProblem.batch")))
        if self.topology is not None:
            self._set("topology", as_topology(self.topology, "ShardingProblem.topology"))
        self._record("constraints", Constraints)
        self._records("snapshots", Snapshot)
        self._choice("target", TARGETS)
        self._choice("mode", MODES)
        self._choice("memory_model", MEMORY_MODELS)
        self._choice("optimizer_semantics", SEMANTICS)
        self._number("cache_load_factor")
        self._text("source")
        self._native  # Checks everything.

    @cached_property
    def _native(self) -> _planner.Problem:
        """The problem in the planner. It fills in what snapshots leave open from the features, so
        that a copy with other features takes theirs."""
        plain = {"schema": SCHEMA, **_fields.to_plain(self)}
        try:
            return _planner.Problem.parse(json.dumps(plain))
        except InvalidProblem as error:
            raise InvalidProblem(map(self._with_source, error.diagnostics)) from None

    def _with_source(self, found: Diagnostic) -> Diagnostic:
        """Names the feature of which a snapshot has its p99_pooling."""
        match = re.fullmatch(r"snapshots\[(\d+)\]\.features\[(\d+)\]\.p99_pooling", found.where)
        if not match:
            return found
        one = self.snapshots[int(match[1])].features[int(match[2])]
        if one.p99_pooling is not None:
            return found
        return found._replace(message=f"{found.message}, which is that of feature "
                              f"'{one.feature}', as the snapshot gives none")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_native", None)
        return state

    def _headline(self) -> str:
        devices = f", {self.topology}" if self.topology else ""
        return f"{counted(len(self.tables), 'table')}, {counted(len(self.features), 'feature')}, batch " \
               f"{self.batch.global_size:,}{devices}"

    def __repr__(self) -> str:
        """In short; to_json() has everything."""
        return printable_line(f"ShardingProblem({self._headline()})")

    def _repr_html_(self) -> str:
        features: dict[str, list[Feature]] = {}
        for one in self.features:
            features.setdefault(one.table, []).append(one)
        return html_table(self._headline(), ("table", "rows", "columns", "type", "optimizer", "features", "ids per sample, of all features"),
                     [(one.name, f"{one.rows:,}", one.dim, one.type, one.optimizer.kind,
                       ", ".join(feature.name for feature in features.get(one.name, ())),
                       f"{sum(feature.mean_pooling * feature.presence for feature in features.get(one.name, ())):g}")
                      for one in self.tables])

    def served(self) -> ShardingProblem:
        """The problem of serving the same tables: mode "inference", without optimizers."""
        return self.replace(tables=[table.replace(optimizer=Optimizer()) for table in self.tables],
                            batch=self.batch.replace(backwards=1), mode="inference")

    def replace(self, **changes: Any) -> ShardingProblem:
        """A copy with some fields changed. changes: the fields by name. A text for topology may name the device classes
        of this problem's topology."""
        if isinstance(changes.get("topology"), str) and self.topology is not None:
            changes["topology"] = Topology.parse(changes["topology"], self.topology.device_classes)
        return super().replace(**changes)

    def table(self, name: str) -> Table:
        """The table of this name; KeyError when there is none."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    def to_json(self) -> str:
        """The workload as text, schema neuroshard.workload.v1 (docs/formats.md)."""
        text = self._native.to_json()
        if not any(one.inherits for snapshot in self.snapshots for one in snapshot.features):
            return text
        plain = json.loads(text)
        for written, snapshot in zip(plain["snapshots"], self.snapshots, strict=True):
            if snapshot.features:
                written["features"] = _fields.to_plain(snapshot.features)
        return json.dumps(plain, indent=1) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes to_json() to the file `path`: to a temporary beside it, then renamed. Raises an OSError if it cannot
        be written."""
        _planner.write_file(_fields.path(path, "ShardingProblem.save"), self.to_json())

    @classmethod
    def from_json(cls, text: str) -> ShardingProblem:
        """Reads a workload's text; InvalidProblem says what is wrong, and where."""
        _fields.text(text, "ShardingProblem.from_json")
        return _of_native(_planner.Problem.parse(text), text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ShardingProblem:
        """Reads a workload's file from `path`; InvalidProblem says what is wrong, and where."""
        return _of_native(*_planner.Problem.read(_fields.path(path, "ShardingProblem.load")))


def _of_native(native: _planner.Problem, text: str) -> ShardingProblem:
    """The problem from its text. native: the same, checked and complete; snapshots are taken from
    the text, which shows what they leave open."""
    plain = json.loads(native.to_json())
    if "snapshots" in plain:
        plain["snapshots"] = json.loads(text.removeprefix("\ufeff"))["snapshots"]
    topology = plain.get("topology")
    return ShardingProblem(
        tables=tuple(map(table_of_plain, plain["tables"])),
        features=tuple(Feature(**feature) for feature in plain["features"]),
        batch=Batch(**plain["batch"]),
        topology=topology_of_plain(topology) if topology else None,
        constraints=constraints_of_plain(plain.get("constraints", {})),
        snapshots=tuple(map(snapshot_of_plain, plain.get("snapshots", ()))),
        target=plain["target"],
        mode=plain.get("mode", "training"),
        memory_model=plain["memory_model"],
        optimizer_semantics=plain["optimizer_semantics"],
        cache_load_factor=plain.get("cache_load_factor", 0),
        source=plain.get("source", ""))
