"""Sharding plans: the shards of every table, their devices, and the plan's provenance."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from neuroshard import _fields, _planner
from neuroshard._html import html_table
from neuroshard._printable import counted, printable, printable_line
from neuroshard._vocabulary import SEMANTICS
from neuroshard.errors import Diagnostic, InvalidPlan
from neuroshard.problem import Semantics, ShardingProblem
from neuroshard.shards import Shard, named, shard_of_plain

SCHEMA = "neuroshard.plan.v1"


@dataclass(frozen=True, kw_only=True)
class Setting(_fields.Record):
    """A setting of the search that made a plan: the name of an option, and its value as text."""

    name: str
    value: str

    def __post_init__(self) -> None:
        self._text("name", "value")


@dataclass(frozen=True, kw_only=True)
class Provenance(_fields.Record):
    """How a plan was made. algorithm, objective, cost_model, seed: of the search, and settings: its other options
    that were not at their defaults. predicted_cost_ms, lower_bound_ms: milliseconds per step."""

    algorithm: str
    objective: str
    cost_model: str
    predicted_cost_ms: float | None = None
    lower_bound_ms: float | None = None
    seed: int = 0
    settings: tuple[Setting, ...] = ()

    def __post_init__(self) -> None:
        self._text("algorithm", "objective", "cost_model")
        for name in ("predicted_cost_ms", "lower_bound_ms"):
            if getattr(self, name) is not None:
                self._number(name)
        self._whole("seed")
        self._records("settings", Setting)


@dataclass(frozen=True, kw_only=True)
class Plan(_fields.Record):
    """Where every table lies: shards that cover each table exactly once, or replicate it, on device_count devices.

    optimizer_semantics: what a row-wise state means in a table that is cut by columns; see
    ShardingProblem. table_fingerprint: of the tables that the plan was made for; empty when
    unknown. provenance: None for a plan written by hand. Whether a plan answers a problem is
    for verify() to say.
    """

    shards: tuple[Shard, ...]
    device_count: int
    optimizer_semantics: Semantics = "exact"
    table_fingerprint: str = ""
    provenance: Provenance | None = None

    if TYPE_CHECKING:
        def __init__(self, *, shards: Iterable[Shard], device_count: int,
                     optimizer_semantics: Semantics = "exact", table_fingerprint: str = "",
                     provenance: Provenance | None = None) -> None:
            ...

    def __post_init__(self) -> None:
        self._records("shards", Shard)
        self._set("shards", named(self.shards))
        self._whole("device_count")
        self._choice("optimizer_semantics", SEMANTICS)
        self._text("table_fingerprint")
        self._record("provenance", Provenance, optional=True)
        self._native  # Checks everything that can be checked without a problem.

    @cached_property
    def _native(self) -> _planner.Plan:
        plain = {"schema": SCHEMA, **_fields.to_plain(self)}
        return _planner.Plan.parse(json.dumps(plain))

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_native", None)
        return state

    @property
    def chosen_wire_type(self) -> str:
        """The type in which results and gradients travel, if the search had the choice
        (plan(wire_types=...)); else "", and it is the problem's."""
        return self._native.chosen_wire_type()

    def complete(self, problem: ShardingProblem) -> ShardingProblem:
        """The problem with what the search chose for this plan, such as the wire type."""
        chosen = self.chosen_wire_type
        if not chosen or chosen == problem.batch.wire_type:
            return problem
        return problem.replace(batch=problem.batch.replace(wire_type=chosen))

    def shards_of(self, table: str) -> tuple[Shard, ...]:
        """The shards of a table."""
        return tuple(shard for shard in self.shards if shard.table == table)

    def shards_on(self, device: int) -> tuple[Shard, ...]:
        """The shards that a device holds, replicas included."""
        return tuple(shard for shard in self.shards if device in shard.devices)

    def __str__(self) -> str:
        """Which shards each device holds, in a table."""
        headline, rows = described(self)
        lines = [headline, f"{'device':>6} {'shards':>7} {'elements':>15}  tables"]
        lines += [f"{device:>6} {shards:>7} {elements:>15,}  {names}".rstrip()
                  for device, shards, elements, names in rows[:MAX_DEVICES]]
        if len(rows) > MAX_DEVICES:
            lines.append(f"   ... {counted(len(rows) - MAX_DEVICES, 'more device')}")
        return printable("\n".join(lines))

    def __repr__(self) -> str:
        """In short; to_json() has everything."""
        return printable_line(f"Plan({headline_of(self)})")

    def _repr_html_(self) -> str:
        headline, rows = described(self)
        return html_table(headline, ("device", "shards", "elements", "tables"),
                     [(device, shards, f"{elements:,}", names) for device, shards, elements, names in rows])

    def check(self, problem: ShardingProblem) -> tuple[Diagnostic, ...]:
        """Everything wrong with the plan as an answer to the problem; empty when valid."""
        if not isinstance(problem, ShardingProblem):
            raise TypeError("Plan.check: expected a ShardingProblem, got: "
                            f"{_fields.shown(problem)}")
        if problem.topology is None:
            return (Diagnostic("topology", "the problem has none, so no plan can be checked"),)
        problem = self.complete(problem)
        return tuple(Diagnostic(*one) for one in self._native.verify(problem._native))

    def verify(self, problem: ShardingProblem) -> None:
        """Raises InvalidPlan, which lists all that check() finds, unless the plan answers the problem.

        The verifier shares no code with any search: every element of every table is covered
        exactly once, memory suffices, constraints and the target's rules are kept.
        """
        found = self.check(problem)
        if found:
            raise InvalidPlan(found)

    def to_json(self) -> str:
        """The plan as text, schema neuroshard.plan.v1 (docs/formats.md)."""
        return self._native.to_json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes to_json() to the file `path`: to a temporary beside it, then renamed. Raises an OSError if it
        cannot be written."""
        _planner.write_file(_fields.path(path, "Plan.save"), self.to_json())

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Reads a plan's text; InvalidPlan says what is wrong, and where."""
        return plan_of_native(_planner.Plan.parse(_fields.text(text, "Plan.from_json")))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Reads a plan's file from `path`; InvalidPlan says what is wrong, and where."""
        return plan_of_native(_planner.Plan.read(_fields.path(path, "Plan.load")))

    def to_torchrec(self, modules: Mapping[str, Sequence[str]], **options: Any) -> Any:
        """The plan for TorchRec's DistributedModelParallel; see neuroshard.torchrec.to_torchrec.

        modules: of each module's path in the model, the names of its tables. options: those of that function."""
        from neuroshard._torchrec_plans import sharding_plan_of

        return sharding_plan_of(self.shards, self.device_count, modules, **options)

    @classmethod
    def from_torchrec(cls, plan: Any, tables: Callable[[str, str], tuple[int, int]],
                      device_count: int, *,
                      optimizer_semantics: Semantics | None = None) -> Plan:
        """A plan of TorchRec as one of ours; see neuroshard.torchrec.from_torchrec.

        plan: TorchRec's. tables: (module path, table name) -> (rows, dim). device_count: ranks of the job.
        optimizer_semantics: None: "per_shard" if a table is cut by columns."""
        from neuroshard._torchrec_plans import shards_of_plan

        shards, by_columns = shards_of_plan(plan, tables, device_count)
        return cls(shards=shards, device_count=device_count, optimizer_semantics=optimizer_semantics
                   or ("per_shard" if by_columns else "exact"))


MAX_DEVICES, MAX_LISTED = 32, 6


def headline_of(plan: Plan) -> str:
    tables = len({shard.table for shard in plan.shards})
    return f"{counted(tables, 'table')} in {counted(len(plan.shards), 'shard')} on " \
           f"{counted(plan.device_count, 'device')}{origin(plan.provenance)}"


def described(plan: Plan) -> tuple[str, list[tuple[int, int, int, str]]]:
    """A headline, and of each device its number, shards, elements, and largest shards."""
    whole: dict[str, tuple[int, int]] = {}
    held: dict[int, list[Shard]] = {device: [] for device in range(plan.device_count)}
    for shard in plan.shards:
        rows, cols = whole.get(shard.table, (0, 0))
        whole[shard.table] = max(rows, shard.rows[1]), max(cols, shard.cols[1])
        for device in shard.devices:
            held[device].append(shard)
    result = []
    for device, shards in held.items():
        shards.sort(key=lambda one: -one.row_count * one.width)
        names = [piece(shard, *whole[shard.table]) for shard in shards[:MAX_LISTED]]
        if len(shards) > MAX_LISTED:
            names.append(f"{len(shards) - MAX_LISTED} more")
        result.append((device, len(shards), sum(shard.row_count * shard.width for shard in shards),
                       ", ".join(names)))
    return headline_of(plan), result


def origin(provenance: Provenance | None) -> str:
    if provenance is None:
        return ""
    cost = provenance.predicted_cost_ms
    said = "" if cost is None else f", {cost:.4g} ms predicted by {provenance.cost_model}"
    return f", by {provenance.algorithm}{said}"


def piece(shard: Shard, rows: int, cols: int) -> str:
    """A short text for a shard of a table with this many rows and columns."""
    text = shard.table
    if shard.row_count < rows:
        text += f" rows {shard.rows[0]}-{shard.rows[1] - 1}"
    if shard.width < cols:
        text += f" columns {shard.cols[0]}-{shard.cols[1] - 1}"
    if shard.replicated:
        drift = f", averaged every {shard.sync_every} steps" if shard.sync_every else ""
        text += f" (a copy of {len(shard.devices)}{drift})"
    text += {"hbm": "", "dram": " in host memory", "ssd": " on disk"}[shard.tier]
    return text + (f", {shard.cache_rows:,} rows cached" if shard.cache_rows else "")


def plan_of_native(native: _planner.Plan) -> Plan:
    return plan_of_plain(json.loads(native.to_json()))


def plan_of_plain(plain: dict[str, Any]) -> Plan:
    """A plan from the contents of its file."""
    provenance = plain.get("provenance")
    if provenance:
        settings = tuple(Setting(**one) for one in provenance.get("settings", ()))
        provenance = Provenance(**{**provenance, "settings": settings})
    return Plan(
        shards=tuple(map(shard_of_plain, plain["shards"])),
        device_count=plain["device_count"],
        optimizer_semantics=plain["optimizer_semantics"],
        table_fingerprint=plain.get("table_fingerprint", ""),
        provenance=provenance)
