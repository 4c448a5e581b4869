"""TorchRec's own planner and ours on one model and one cluster, each plan priced by both ratings."""

from __future__ import annotations

import contextlib
import logging
import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.constants import MIN_CW_DIM
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator, get_partition_by_type
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError, Shard, ShardingOption
from torchrec.distributed.planner.types import Topology as TorchRecTopology
from torchrec.distributed.sharding_plan import get_default_sharders
from torchrec.distributed.types import ModuleSharder, ShardingPlan

import neuroshard
from neuroshard import _fields, _planner
from neuroshard._html import html_table
from neuroshard._model_names import table_name
from neuroshard._torchrec_plans import KINDS
from neuroshard._vocabulary import NORMS_PER_ROW
from neuroshard.constraints import Constraints
from neuroshard.errors import Error, PlanningError, Unsupported
from neuroshard.planning import inspect_as_if_allowed
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem
from neuroshard.topology import Topology
from neuroshard.torchrec import _planner_checks as checks
from neuroshard.torchrec._ids_per_sample import with_ids_per_sample
from neuroshard.torchrec._planner import NeuroShardPlanner
from neuroshard.torchrec._sharding_types import why_not

TORCHREC, SAME_RULES, OURS = "TorchRec's planner", "TorchRec's planner, same rules", "NeuroShard"
COLUMNS = ("plan of", "our costs, ms", "TorchRec's rating, ms", "fullest device", "shards", "planned in, s")


@dataclass(frozen=True, kw_only=True)
class PlannerEntry(_fields.Record):
    """The plan of one planner, which has a name and took so many seconds. plan: None if it has none, or one that
    NeuroShard has no form for, for the reason in failure. cost_ms: milliseconds per step by our cost models;
    torchrec_ms: TorchRec's rating, of the slowest rank, by its perf estimator; None where they cannot be told.
    peak_bytes: of the fullest device, as we count. broken: the rules of the problem that the plan breaks, a sentence
    each, such as a device without room."""

    name: str
    plan: Plan | None
    cost_ms: float | None
    torchrec_ms: float | None
    peak_bytes: int | None
    seconds: float
    broken: tuple[str, ...] = ()
    failure: str = ""

    def _cells(self) -> tuple[str, ...]:
        def ms(value: float | None) -> str:
            return "" if value is None else f"{value:.3f}"
        peak = "" if self.peak_bytes is None else _planner.format_bytes(self.peak_bytes)
        shards = "" if self.plan is None else str(len(self.plan.shards))
        return self.name, ms(self.cost_ms), ms(self.torchrec_ms), peak, shards, f"{self.seconds:.2f}"

    def _sentences(self) -> list[str]:
        return [*([f"{self.name}: {self.failure}"] if self.failure else []),
                *(f"{self.name}: {one}" for one in _once(self.broken))]


def _once(broken: Sequence[str]) -> list[str]:
    """What is said of several tables in one line, by the first of them."""
    tables: dict[str, list[str]] = {}  # by what is said of them; a line on no table has none
    for line in broken:
        of_table = re.match(r"breaks a rule: table '(.+?)': ", line)
        tables.setdefault(line[of_table.end():] if of_table else line, []).extend(of_table.groups() if of_table else ())
    return [f"breaks a rule: {_tables(names)}: {line}" if names else line for line, names in tables.items()]


def _tables(names: Sequence[str]) -> str:
    """At most the first three."""
    if len(names) == 1:
        return f"table '{names[0]}'"
    shown = [f"'{name}'" for name in names[:3]] + ([f"{len(names) - 3} more"] if len(names) > 3 else [])
    return f"each of the tables {', '.join(shown[:-1])} and {shown[-1]}"


@dataclass(frozen=True, kw_only=True)
class PlannerComparison(_fields.Record):
    """Both planners on one model. entries: of TorchRec's planner, of it with the sharding types that our rules allow,
    and of ours. problem: what plans are verified and priced against. notes: what both ratings assume."""

    problem: ShardingProblem
    entries: tuple[PlannerEntry, ...]
    notes: tuple[str, ...] = ()

    def entry(self, name: str) -> PlannerEntry:
        """That of a name: "TorchRec's planner", "TorchRec's planner, same rules" or "NeuroShard"."""
        return next(one for one in self.entries if one.name == name)

    def _sentences(self) -> list[str]:
        return [line for one in self.entries for line in one._sentences()] + list(self.notes)

    def __str__(self) -> str:
        rows = [COLUMNS, *(one._cells() for one in self.entries)]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(cell.ljust(width) if index == 0 else cell.rjust(width)
                           for index, (cell, width) in enumerate(zip(row, widths))) for row in rows]
        return "\n".join([*lines, *(f"  {line}" for line in self._sentences())])

    def __repr__(self) -> str:
        """In short; printing it shows a table."""
        prices = ", ".join(f"{one.name} {one._cells()[1] or 'none'} ms" for one in self.entries)
        return f"PlannerComparison({prices})"

    def _repr_html_(self) -> str:
        return html_table(f"{len(self.problem.tables)} tables on {self.problem.topology}", COLUMNS,
                          [one._cells() for one in self.entries], self._sentences())


def compare_planners(model: torch.nn.Module, topology: Topology | str, batch_size: int, *,
                     sharders: Sequence[ModuleSharder] | None = None,
                     constraints: Mapping[str, ParameterConstraints] | None = None,
                     mean_pooling: float | Mapping[str, float] | None = None,
                     profiled: ShardingProblem | None = None,
                     cost_model: object = "auto", **options: object) -> PlannerComparison:
    """Runs TorchRec's EmbeddingShardingPlanner, with its defaults and with sharding types limited to those that
    NeuroShardPlanner may choose, and NeuroShardPlanner on `model`.

    topology: NeuroShard's, or its text such as "8xH200", from which TorchRec's is built: with the same memory and
    the same bandwidths. batch_size: samples per rank. sharders: None for TorchRec's default ones. constraints:
    TorchRec's own, for all planners. mean_pooling: ids per sample, for all features, or by name; profiled: a problem
    of the model with them, such as `neuroshard profile` writes; both stand in place of the constraints'
    pooling_factors and num_poolings. cost_model, options: those of NeuroShardPlanner.

    A plan of TorchRec that breaks a rule of ours is priced all the same, as if there were room. Raises Unsupported
    for models that cannot be planned, and for clusters that TorchRec has no Topology for; ValueError for features
    that the model does not have.
    """
    checks.expect(model, "model", torch.nn.Module, "a torch.nn.Module")
    sharders = checks.check_sharders(get_default_sharders() if sharders is None else sharders)
    facts = with_ids_per_sample(checks.check_constraints(constraints), model, sharders, mean_pooling, profiled)
    planner = NeuroShardPlanner(topology, batch_size, facts, cost_model=cost_model, **{"progress": False, **options})
    started = time.perf_counter()
    ours: ShardingPlan | None = None
    failure = ""
    try:
        ours = planner.plan(model, sharders)
    except PlanningError as error:
        failure = f"no plan: {error}".splitlines()[0]
    seconds = time.perf_counter() - started
    problem = planner.problem
    assert problem is not None
    pricer = Pricer(model, sharders, problem, batch_size, cost_model, facts)
    entries = [pricer.of_torchrec(TORCHREC, facts), pricer.under_our_rules(),
               pricer.entry(OURS, ours, seconds, failure)]
    are_known = profiled is not None or (mean_pooling is not None and not isinstance(mean_pooling, Mapping))
    return PlannerComparison(problem=problem, entries=tuple(entries), notes=pricer.notes(are_known))


def torchrec_topology(topology: Topology) -> TorchRecTopology:
    """TorchRec's Topology of the same devices, memories and bandwidths as topology has: GB/s are bytes per ms times
    1e6. The rate to host memory is left at TorchRec's default. Raises Unsupported unless devices and hosts are
    alike."""
    devices, levels = topology.devices, topology.levels
    classes = {one.device_class for one in devices}
    memories, local = {one.memory_bytes for one in devices}, {*levels[-1].groups}
    if len(classes) != 1 or len(memories) != 1 or len(local) != 1:
        raise Unsupported("topology: TorchRec plans for devices of one class and memory in hosts of one size")
    known, per_host, memory = topology.class_named(classes.pop()), local.pop(), memories.pop()
    outer = levels[0].bandwidth_gb_per_s if len(levels) > 1 else known.network_bandwidth_gb_per_s
    on_host = known.kind == "cpu"
    with quiet():
        return TorchRecTopology(
            world_size=len(devices), local_world_size=per_host, compute_device="cpu" if on_host else "cuda",
            hbm_cap=None if on_host else memory,
            ddr_cap=memory if on_host else min(one.memory_bytes for one in topology.hosts) // per_host,
            hbm_mem_bw=known.memory_bandwidth_gb_per_s * 1e6,
            intra_host_bw=levels[-1].bandwidth_gb_per_s * 1e6, inter_host_bw=outer * 1e6)


class Pricer:
    """Prices plans of TorchRec for one model by both ratings."""

    def __init__(self, model: torch.nn.Module, sharders: Sequence[ModuleSharder], problem: ShardingProblem,
                 batch_size: int, cost_model: object, constraints: Mapping[str, ParameterConstraints]) -> None:
        self._model, self._sharders, self._problem = model, sharders, problem
        self._constraints = constraints
        self._batch_size, self._cost_model = batch_size, cost_model
        self._topology = torchrec_topology(problem.topology)
        # Plans of ours and of others have types that the constraints may not name.
        self._enumerator = EmbeddingEnumerator(self._topology, batch_size, constraints={
            name: replace(one, sharding_types=None, compute_kernels=None) for name, one in constraints.items()})
        self._sizes = {table.name: (table.rows, table.dim) for table in problem.tables}
        with quiet():
            options = self._enumerator.enumerate(model, list(sharders))
        # Any option of a table has its tensor and the lengths of its inputs.
        self._options = {table_name(one.path, one.name): one for one in options}

    def under_our_rules(self) -> PlannerEntry:
        """TorchRec's planner with the sharding types that the problem allows, and all rows in device memory."""
        types = self._allowed_types()
        bare = [name for name, allowed in types.items() if not allowed]
        if bare:
            return self.entry(SAME_RULES, None, 0, f"no plan: no sharding type is allowed for table '{bare[0]}'")
        limited = {}
        for name, allowed in types.items():
            limits = self._constraints.get(name, ParameterConstraints())
            kernels = [one for one in checks.IN_DEVICE_MEMORY
                       if one in (limits.compute_kernels or checks.IN_DEVICE_MEMORY)]
            limited[name] = replace(limits, sharding_types=allowed, compute_kernels=kernels)
        entry = self.of_torchrec(SAME_RULES, limited)
        # Its widths are part of its defaults, not of the rules.
        hint = f"; it cuts columns into shards of {MIN_CW_DIM} where constraints have no min_partition"
        return entry if entry.torchrec_ms is not None else entry.replace(failure=entry.failure + hint)

    def _allowed_types(self) -> dict[str, list[str]]:
        """By the table's name, as TorchRec's constraints have it: where modules share one, what all allow."""
        rules = {one.table: one for one in self._problem.constraints.tables}
        exact = self._problem.optimizer_semantics == "exact"
        types: dict[str, list[str]] = {}
        for table in self._problem.tables:
            kinds = set(rules[table.name].allowed_kinds)
            if exact and NORMS_PER_ROW[table.optimizer.kind]:
                kinds.discard("column_wise")
            name = self._options[table.name].name
            types[name] = [one for one in types.get(name, KINDS) if KINDS[one] in kinds]
        return types

    def of_torchrec(self, name: str, constraints: Mapping[str, ParameterConstraints]) -> PlannerEntry:
        started = time.perf_counter()
        plan, failure = None, ""
        try:
            with quiet():
                planner = EmbeddingShardingPlanner(topology=self._topology, batch_size=self._batch_size, stats=[],
                                                   constraints=dict(constraints))
                plan = planner.plan(self._model, list(self._sharders))
        except PlannerError as error:
            failure = f"no plan: {str(error).strip().splitlines()[0].strip(' .')}"
        return self.entry(name, plan, time.perf_counter() - started, failure)

    def entry(self, name: str, plan: ShardingPlan | None, seconds: float, failure: str) -> PlannerEntry:
        if plan is None:
            return PlannerEntry(name=name, plan=None, cost_ms=None, torchrec_ms=None, peak_bytes=None,
                                seconds=seconds, failure=failure)
        rating = self.rating(plan)
        try:
            own = Plan.from_torchrec(plan, lambda path, table: self._sizes[table_name(path, table)],
                                     self._problem.topology.device_count,
                                     optimizer_semantics=self._problem.optimizer_semantics)
        except Unsupported as error:
            return PlannerEntry(name=name, plan=None, cost_ms=None, torchrec_ms=rating, peak_bytes=None,
                                seconds=seconds, failure=f"NeuroShard has no costs for this plan: {error}")
        broken = self.broken(own, {table_name(path, table): KINDS[one.sharding_type] for path, module in
                                   plan.plan.items() for table, one in module.items()})
        result, failure = self.priced(own, bool(broken))
        return PlannerEntry(name=name, plan=own, torchrec_ms=rating, seconds=seconds, broken=broken, failure=failure,
                            cost_ms=result.cost_ms if result else None,
                            peak_bytes=result.memory.peak_bytes if result else None)

    def broken(self, plan: Plan, kinds: Mapping[str, str]) -> tuple[str, ...]:
        """The rules that a plan breaks, with the reasons of those on the kinds of tables. kinds: by table."""
        rules = self._problem.constraints
        loose = self._problem.replace(optimizer_semantics="per_shard")
        relabeled = plan.replace(optimizer_semantics="per_shard")
        # A rule of optimizer states that is broken ends the check before other rules.
        exact, others = plan.check(self._problem), relabeled.check(loose)
        unruled = relabeled.check(loose.replace(constraints=Constraints(reserves=rules.reserves)))
        lines = []
        for one in dict.fromkeys((*exact, *others)):
            if one not in others:
                lines.append(f"{one} (per_shard_state=True sets it)")
            elif one not in unruled:
                lines.append(f"{one}{self._reason(one.where, plan, kinds)}")
            else:
                lines.append(str(one))
        return tuple(f"breaks a rule: {line}" for line in lines)

    def _reason(self, where: str, plan: Plan, kinds: Mapping[str, str]) -> str:
        """Of a table whose kind is not allowed."""
        table = next((one.name for one in self._problem.tables if where == f"table '{one.name}'"), None)
        if table is None:
            return ""
        pooling = next(one.pooling for one in self._problem.features if one.table == table)
        limits = self._constraints.get(self._options[table].name, ParameterConstraints())
        whole = len(plan.shards_of(table)) == 1 and kinds[table] != "replicated"
        return f": {why_not('table_wise' if whole else kinds[table], pooling, limits)}"

    def priced(self, plan: Plan, as_if_allowed: bool) -> tuple[neuroshard.PlanResult | None, str]:
        """By our costs; as_if_allowed: also where the plan breaks rules of the problem. Shards of columns then have
        the states that TorchRec gives them: each its own."""
        try:
            if not as_if_allowed:
                return neuroshard.inspect(self._problem, plan, cost_model=self._cost_model), ""
            problem = self._problem.replace(optimizer_semantics="per_shard")
            return inspect_as_if_allowed(problem, plan.replace(optimizer_semantics="per_shard"),
                                         cost_model=self._cost_model), ""
        except Error as error:
            return None, f"NeuroShard has no costs for this plan: {str(error).splitlines()[0]}"

    def rating(self, plan: ShardingPlan) -> float:
        """TorchRec's rating, in milliseconds: the sum of the times of its shards on the slowest rank."""
        options = []
        for path, module in plan.plan.items():
            for name, one in module.items():
                known = self._options[table_name(path, name)]
                ranks = list(one.ranks or range(self._topology.world_size))
                spec = one.sharding_spec
                places = ([(list(each.shard_sizes), list(each.shard_offsets)) for each in spec.shards] if spec
                          else [(list(known.tensor.shape), [0, 0])] * len(ranks))
                options.append(ShardingOption(
                    name=name, tensor=known.tensor, module=known.module, input_lengths=known.input_lengths,
                    batch_size=known.batch_size, sharding_type=one.sharding_type,
                    partition_by=get_partition_by_type(one.sharding_type), compute_kernel=one.compute_kernel,
                    shards=[Shard(size=size, offset=offset, rank=rank)
                            for (size, offset), rank in zip(places, ranks)]))
        with quiet():
            self._enumerator.populate_estimates(options)
        return float(NoopPerfModel(self._topology).rate(options))

    def notes(self, ids_are_known: bool) -> tuple[str, ...]:
        """ids_are_known: whether the caller has said how many ids a sample has, of every feature."""
        ones = 0 if ids_are_known else sum(feature.mean_pooling == 1 for feature in self._problem.features)
        return ("our costs are those of whole steps; TorchRec's rating adds up the shards of the slowest rank, each "
                "alone: compare within a column",
                *((f"all take 1 id per sample for {ones} of {len(self._problem.features)} features; mean_pooling or a "
                   "profiled workload says otherwise",) if ones else ()))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silences TorchRec's log and warnings, which also take time."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
