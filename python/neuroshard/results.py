"""Results of planning: costs, memory, migration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neuroshard import _fields, _planner, _plots
from neuroshard._html import html_table
from neuroshard.plans import Plan, plan_of_plain
from neuroshard.problem import ShardingProblem

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class DeviceCost(_fields.Record):
    """Milliseconds of one device per step, and the bytes that it sends to others and receives from them.

    forward_ms, backward_ms: lookups, and updates. input_ms: exchange of ids. forward_communication_ms,
    backward_communication_ms: exchange of results, and of gradients and norms; forward_bytes and
    backward_bytes are theirs. fetch_ms: waiting for rows of tables below device memory."""

    forward_ms: float
    backward_ms: float
    input_ms: float
    forward_communication_ms: float
    backward_communication_ms: float
    fetch_ms: float
    forward_bytes: float
    backward_bytes: float

    @property
    def exchange_ms(self) -> float:
        """All communication."""
        return self.input_ms + self.forward_communication_ms + self.backward_communication_ms

    @property
    def parts(self) -> dict[str, float]:
        """What the device does in a step, in milliseconds."""
        return {"forward": self.forward_ms, "backward": self.backward_ms, "exchange": self.exchange_ms,
                "fetch": self.fetch_ms}


@dataclass(frozen=True, kw_only=True)
class SnapshotCost(_fields.Record):
    """Cost under one snapshot of the statistics, in cost_ms per step, and its share of the mean. name: of the
    snapshot."""

    name: str
    share: float
    cost_ms: float


@dataclass(frozen=True, kw_only=True)
class CacheCost(_fields.Record):
    """Distinct rows that a batch uses of a shard with a row cache. hits: those of them that are there."""

    shard: str
    rows: float
    hits: float


@dataclass(frozen=True, kw_only=True)
class PredictionInterval(_fields.Record):
    """Nine of ten measured times lie between low and high times the predicted one."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Breakdown(_fields.Record):
    """The parts of a cost, in milliseconds; with snapshots the weighted mean over them.

    Under objective="step" input_ms, fetch_ms, max_forward_ms, exposed_forward_communication_ms,
    dense_ms, backward_communication_ms, max_backward_ms and fixed_ms add up to cost_ms. fetch_ms: what
    the step waits for rows of tables below device memory. fixed_ms: of a machine file, what host and
    PyTorch take whatever the plan. low_ms, high_ms: between them lie nine of ten measured steps, where a
    machine file says it; else 0. worst_ms: the largest of the snapshots' costs.
    compute_interval: of a device's forward and backward together, communication_interval: of its time
    in one exchange, where the cost model's file says it. devices, caches, snapshots: what the cost is
    made of, by device, shard and snapshot.
    """

    cost_ms: float
    worst_ms: float
    input_ms: float
    fetch_ms: float
    max_forward_ms: float
    exposed_forward_communication_ms: float
    dense_ms: float
    backward_communication_ms: float
    max_backward_ms: float
    fixed_ms: float
    low_ms: float
    high_ms: float
    devices: tuple[DeviceCost, ...]
    caches: tuple[CacheCost, ...] = ()
    snapshots: tuple[SnapshotCost, ...] = ()
    compute_interval: PredictionInterval | None = None
    communication_interval: PredictionInterval | None = None

    @property
    def exchange_ms(self) -> float:
        """Communication, as far as nothing else runs meanwhile."""
        return (self.input_ms + self.exposed_forward_communication_ms
                + self.backward_communication_ms)

    @property
    def parts(self) -> dict[str, float]:
        """The parts of a step, in milliseconds; under objective="step" they add up to cost_ms."""
        return {"forward": self.max_forward_ms, "backward": self.max_backward_ms, "exchange": self.exchange_ms,
                "fetch": self.fetch_ms, "dense": self.dense_ms, "fixed": self.fixed_ms}


@dataclass(frozen=True, kw_only=True)
class DeviceMemory(_fields.Record):
    """Bytes that a plan occupies on one device, by kind; docs/memory.md has the terms.

    weights_bytes and optimizer_state_bytes: of the shards. ids_bytes: of a batch's ids. forward_bytes and
    backward_bytes are alive in their phase only; peak_bytes counts the larger of the two. communicator_bytes,
    dense_reserve_bytes, fragmentation_reserve_bytes: kept free (Reserves).
    """

    weights_bytes: int
    optimizer_state_bytes: int
    ids_bytes: int
    forward_bytes: int
    backward_bytes: int
    communicator_bytes: int
    dense_reserve_bytes: int
    fragmentation_reserve_bytes: int
    peak_bytes: int

    @property
    def reserved_bytes(self) -> int:
        """What tables must leave free, of peak_bytes."""
        return (self.communicator_bytes + self.dense_reserve_bytes
                + self.fragmentation_reserve_bytes)

    @property
    def step_bytes(self) -> int:
        """What a step takes beside the tables, of peak_bytes."""
        return self.ids_bytes + max(self.forward_bytes, self.backward_bytes)

    @property
    def parts(self) -> dict[str, int]:
        """Bytes by what they are for; they add up to peak_bytes."""
        return {"weights": self.weights_bytes, "optimizer state": self.optimizer_state_bytes,
                "step data": self.step_bytes, "reserves": self.reserved_bytes}


@dataclass(frozen=True, kw_only=True)
class Memory(_fields.Record):
    """Bytes that a plan occupies. devices: of each device; host_bytes, disk_bytes: in the memory of each host and
    on its disks."""

    devices: tuple[DeviceMemory, ...]
    host_bytes: tuple[int, ...]
    disk_bytes: tuple[int, ...]

    @property
    def peak_bytes(self) -> int:
        """Of the fullest device."""
        return max(device.peak_bytes for device in self.devices)


@dataclass(frozen=True, kw_only=True)
class TableMove(_fields.Record):
    """A table that must be migrated, and the bytes of weights and optimizer state that move. what: from where to
    where, for people."""

    table: str
    bytes: int
    what: str


@dataclass(frozen=True, kw_only=True)
class Migration(_fields.Record):
    """Cost and gain of migrating from the previous plan.

    previous_cost_ms: the previous plan's cost for today's problem; None if it is invalid for it,
    for the reason in why_not_previous. move_ms: time of moving the bytes. moves: largest
    first.
    """

    previous_cost_ms: float | None
    why_not_previous: str
    bytes: int
    move_ms: float
    moves: tuple[TableMove, ...]


@dataclass(frozen=True, kw_only=True)
class Assumption(_fields.Record):
    """A number that the problem does not say, and what was taken in its place.

    about: "pooling", "peak pooling", "access", "memory", "links", "reserves", "device class", "dense".
    text: one sentence with what was assumed, of how many tables or features, and what measures it.
    """

    about: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, kw_only=True)
class PlanResult(_fields.Record):
    """A plan with its predicted cost and memory, and how it was decided.

    breakdown: the cost and its parts. lower_bound_ms: no plan costs less; None: not known. stop_reason, evaluations, seconds: why
    the search ended, how many plans it priced, how long it took. explanation: one sentence per decision. tried: what was
    tried, with its cost. remarks: in which ways the problem lies outside the cost model's
    range. assumptions: what stands in place of numbers that the problem does not say. migration:
    with a warm start. buffers: by kind, the bytes that each device takes beside
    its tables for a step with as many ids as 99 % of the batches stay below (docs/memory.md);
    empty unless the target is native.
    """

    plan: Plan
    breakdown: Breakdown
    memory: Memory
    lower_bound_ms: float | None
    explanation: tuple[str, ...]
    tried: tuple[str, ...]
    remarks: tuple[str, ...]
    stop_reason: str
    evaluations: int
    seconds: float
    migration: Migration | None = None
    buffers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()

    @property
    def cost_ms(self) -> float:
        """The plan's predicted cost: milliseconds per step."""
        return self.breakdown.cost_ms

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan to the file `path`; Plan.load() reads it. Raises an OSError if it cannot be
        written."""
        self.plan.save(path)

    def plot(self, problem: ShardingProblem | None = None) -> Figure:
        """A matplotlib Figure (needs the extra "plot") of the parts of a step and of memory on each
        device. problem: that of the plan, whose usable memory is then marked.

        Notebooks show the figure; .savefig(path) writes it. Raises ImportError without matplotlib, and ValueError
        for a problem with other tables or devices."""
        limits: list[int] = []
        if problem is not None:
            if not isinstance(problem, ShardingProblem):
                raise TypeError(f"PlanResult.plot: expected a ShardingProblem, got: {_fields.shown(problem)}")
            devices = problem.topology.devices if problem.topology else ()
            if len(devices) != self.plan.device_count:
                raise ValueError(f"PlanResult.plot: expected the problem of the plan, with {self.plan.device_count} "
                                 f"devices, got one with {len(devices)}")
            sizes = {table.name: (table.rows, table.dim) for table in problem.tables}
            planned: dict[str, tuple[int, int]] = {}
            for shard in self.plan.shards:
                rows, columns = planned.get(shard.table, (0, 0))
                planned[shard.table] = max(rows, shard.rows[1]), max(columns, shard.cols[1])
            if odd := sorted(name for name in {*sizes, *planned} if sizes.get(name) != planned.get(name)):
                raise ValueError(f"PlanResult.plot: expected the problem of the plan, got one with another table "
                                 f"{odd[0]!r}: {_size(sizes.get(odd[0]))} in the problem, {_size(planned.get(odd[0]))} "
                                 "in the plan")
            limits = [one.memory_bytes for one in devices]
        return _plots.draw(self._headline(), [one.parts for one in self.breakdown.devices],
                           [one.parts for one in self.memory.devices], limits)

    def _headline(self) -> str:
        tables = len({shard.table for shard in self.plan.shards})
        return f"{tables} tables in {len(self.plan.shards)} shards on {self.plan.device_count} devices: " \
               f"{self.cost_ms:.3f} ms, {_bound(self.lower_bound_ms)}; fullest device " \
               f"{_planner.format_bytes(self.memory.peak_bytes)}"

    def _sentences(self) -> list[str]:
        return [*_periods(self.breakdown), *_moves(self.migration), *self.explanation, *self.remarks,
                *(f"assumed: {one}" for one in self.assumptions)]

    def __str__(self) -> str:
        return "\n".join([self._headline(), *(f"  {one}" for one in self._sentences())])

    def __repr__(self) -> str:
        """In short; printing it shows the decisions."""
        return f"PlanResult({self._headline()})"

    def _repr_html_(self) -> str:
        rows = [(number, len(self.plan.shards_on(number)), f"{cost.forward_ms:.3f}", f"{cost.exchange_ms:.3f}",
                 f"{cost.backward_ms:.3f}", _planner.format_bytes(memory.peak_bytes))
                for number, (cost, memory) in enumerate(zip(self.breakdown.devices, self.memory.devices))]
        return html_table(self._headline(), ("device", "shards", "forward, ms", "exchanges, ms", "backward, ms", "memory"),
                     rows, self._sentences())


def _size(table: tuple[int, int] | None) -> str:
    return f"{table[0]:,} x {table[1]}" if table else "none"


def _bound(lower_bound_ms: float | None) -> str:
    if lower_bound_ms is None:
        return "no lower bound is known"
    return f"no plan below {lower_bound_ms:.3f} ms"


def _periods(breakdown: Breakdown) -> list[str]:
    if not breakdown.snapshots:
        return []
    each = ", ".join(f"{one.name} {one.cost_ms:.3f} ms ({one.share:.1%})"
                     for one in breakdown.snapshots)
    return [f"snapshots (share of the mean): {each}; worst {breakdown.worst_ms:.3f} ms"]


def _moves(migration: Migration | None) -> list[str]:
    if migration is None:
        return []
    if migration.previous_cost_ms is None:
        before = f"the previous plan does not serve: {migration.why_not_previous}"
    else:
        before = f"the previous plan costs {migration.previous_cost_ms:.3f} ms"
    if not migration.moves:
        return [f"{before}; nothing moves"]
    return [f"{before}; {_planner.format_bytes(migration.bytes)} of {len(migration.moves)} "
            f"tables move, which takes {migration.move_ms:.3f} ms"]


def breakdown_of_plain(plain: dict[str, Any]) -> Breakdown:
    intervals = {name: PredictionInterval(**plain[name]) if plain[name] else None
                 for name in ("compute_interval", "communication_interval")}
    return Breakdown(**{
        **plain, **intervals,
        "devices": tuple(DeviceCost(**device) for device in plain["devices"]),
        "caches": tuple(CacheCost(**one) for one in plain["caches"]),
        "snapshots": tuple(SnapshotCost(**one) for one in plain["snapshots"])})


def result_of_plain(plain: dict[str, Any]) -> PlanResult:
    """What _planner.search() answers, read from JSON, as a PlanResult."""
    memory = Memory(
        devices=tuple(DeviceMemory(**device) for device in plain["memory"]["devices"]),
        host_bytes=tuple(plain["memory"]["host_bytes"]),
        disk_bytes=tuple(plain["memory"]["disk_bytes"]))
    migration = plain["migration"]
    if migration is not None:
        moves = tuple(TableMove(**move) for move in migration["moves"])
        migration = Migration(**{**migration, "moves": moves})
    return PlanResult(
        plan=plan_of_plain(plain["plan"]),
        breakdown=breakdown_of_plain(plain["breakdown"]),
        memory=memory,
        migration=migration,
        buffers={kind: tuple(devices) for kind, devices in plain["buffers"].items()},
        lower_bound_ms=plain["lower_bound_ms"],
        explanation=tuple(plain["explanation"]),
        tried=tuple(plain["tried"]),
        remarks=tuple(plain["remarks"]),
        assumptions=tuple(Assumption(**one) for one in plain.get("assumptions", ())),
        stop_reason=plain["stop_reason"],
        evaluations=plain["evaluations"],
        seconds=plain["seconds"])
