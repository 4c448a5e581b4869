"""A ShardingPlanner of TorchRec that searches with NeuroShard."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.planner.types import Topology as TorchRecTopology
from torchrec.distributed.sharding_plan import get_default_sharders
from torchrec.distributed.types import ModuleSharder, ShardingPlan, ShardingPlanner

import neuroshard
from neuroshard._group.agreement import attempt, rank_of, size_of
from neuroshard._model_names import table_name
from neuroshard._vocabulary import NORMS_PER_ROW
from neuroshard.constraints import Constraints, Reserves
from neuroshard.errors import GroupError
from neuroshard.problem import ShardingProblem
from neuroshard.results import PlanResult
from neuroshard.tables import Optimizer
from neuroshard.torchrec import _planner_checks as checks
from neuroshard.torchrec._modules import Found, find_tables
from neuroshard.torchrec._topology import cluster_of
from neuroshard.topology import Topology


class NeuroShardPlanner(ShardingPlanner):
    """Plans a model for TorchRec's DistributedModelParallel.

    topology: TorchRec's own, or NeuroShard's, or its text ("2x8xH200"); None: the ranks of
    torch.distributed, on hosts of LOCAL_WORLD_SIZE ranks (which torchrun sets), with this machine's kind
    of device. constraints: TorchRec's own. batch_size: samples per rank, as in TorchRec's planners.
    device_class: the devices whose speed the cost model predicts (neuroshard.device_classes()), where a
    NeuroShard topology does not say it; None: "H200". optimizer: None takes the one that sharders and
    parameters name.

    A table cut by columns has a state per shard in TorchRec's row-wise optimizers, and trains
    differently than whole. Such cuts are made with per_shard_state=True only, with a warning.

    A replicated table (data_parallel) is not updated by the fused optimizer but by one of the
    dense part, so it is made where a table's constraints name that type only.

    reserves: bytes that tables leave free on each device. options: those of neuroshard.plan. After plan(), `result` has the search's answer and
    `problem` what was searched."""

    def __init__(self, topology: TorchRecTopology | Topology | str | None = None, batch_size: int = 512,
                 constraints: Mapping[str, ParameterConstraints] | None = None, *,
                 device_class: str | None = None, optimizer: Optimizer | str | None = None,
                 per_shard_state: bool = False, reserves: Reserves = Reserves(),
                 **options: object) -> None:
        checks.check_topology(topology)
        self._cluster, self._topology = cluster_of(topology, checks.check_class(device_class))
        self._batch_size = checks.count(batch_size, "batch_size")
        self._constraints = checks.check_constraints(constraints)
        self._optimizer = Optimizer(optimizer) if isinstance(optimizer, str) else optimizer
        checks.expect(self._optimizer, "optimizer", Optimizer | None,
                      "an Optimizer, the name of one or None")
        checks.expect(per_shard_state, "per_shard_state", bool, "True or False")
        checks.expect(reserves, "reserves", Reserves, "a Reserves")
        self._per_shard_state = per_shard_state
        self._reserves = reserves
        self._options = options
        self.result: PlanResult | None = None
        self.problem: ShardingProblem | None = None

    def __repr__(self) -> str:
        state = f"planned: {self.result.cost_ms:.3f} ms" if self.result else "nothing planned yet"
        return f"NeuroShardPlanner({self._topology}, batch_size={self._batch_size}; {state})"

    def plan(self, module: torch.nn.Module,
             sharders: Sequence[ModuleSharder]) -> ShardingPlan:
        """Plans a module in this process alone. sharders: TorchRec's, of its kinds of modules. Raises neuroshard.PlanningError with the binding limit, and
        Unsupported for models that cannot be planned."""
        checks.expect(module, "module", torch.nn.Module, "a torch.nn.Module")
        sharders = checks.check_sharders(sharders)
        cluster = self._cluster
        found = find_tables(module, sharders, self._constraints, cluster, self._optimizer)
        self._check_constraints(found)
        self.problem = self._make_problem(found)
        self.result = self._search()
        self.result.plan.verify(self.problem)
        self._warn_of_states()
        plan = self.result.plan.to_torchrec(found.modules, device=cluster.device,
                                            local_ranks=cluster.local, unpooled=found.unpooled)
        self._pass_on(plan, found)
        return plan

    def collective_plan(self, module: torch.nn.Module,
                        sharders: Sequence[ModuleSharder] | None = None,
                        pg: dist.ProcessGroup | None = None) -> ShardingPlan:
        """plan() on rank 0; every rank gets the plan or the error. module, sharders: as for plan(). pg: None: the
        default group. ValueError if the group has
        other ranks than the topology."""
        if not dist.is_initialized():
            raise ValueError("collective_plan: torch.distributed is not initialized; call "
                             "init_process_group() before, or plan() in one process")
        if sharders is None:
            sharders = get_default_sharders()
        plan = error = None
        if rank_of(pg) == 0:
            plan, error = attempt(lambda: self._plan_for(pg, module, sharders))
        # By torch's own collective, since planning does not need libneuroshard_torch.so.
        payload = [plan, f"{type(error).__name__}: {error}" if error else None]
        dist.broadcast_object_list(payload, group=pg, group_src=0)
        plan, message = payload
        if error:
            raise error
        if message is not None:
            raise GroupError(f"rank 0: planning failed: {message}")
        return plan

    def _plan_for(self, pg: dist.ProcessGroup | None, module: torch.nn.Module,
                  sharders: Sequence[ModuleSharder]) -> ShardingPlan:
        if self._cluster.ranks != size_of(pg):
            raise ValueError(f"topology: it has {self._cluster.ranks} ranks and the process "
                             f"group {size_of(pg)}; expected equal numbers (a model that is sharded "
                             "over a part of the group and replicated cannot be planned)")
        return self.plan(module, sharders)

    def _check_constraints(self, found: Found) -> None:
        names = {name for tables in found.modules.values() for name in tables}
        unknown = sorted(set(self._constraints) - names)
        if unknown:
            warnings.warn("constraints for tables that the model does not have: "
                          f"{', '.join(unknown)}", stacklevel=3)

    def _make_problem(self, found: Found) -> ShardingProblem:
        return ShardingProblem(
            tables=found.tables, features=found.features,
            batch=self._batch_size * self._cluster.ranks, topology=self._topology,
            constraints=Constraints(tables=found.rules, reserves=self._reserves),
            target="torchrec-1.9",
            optimizer_semantics="per_shard" if self._per_shard_state else "exact")

    def _search(self) -> PlanResult:
        try:
            return neuroshard.plan(self.problem, **self._options)
        except neuroshard.PlanningError as error:
            if self._per_shard_state or "optimizer_semantics" not in str(error):
                raise
            raise neuroshard.PlanningError(
                error.limit, error.message, error.details,
                f"{error.advice}; per_shard_state=True allows column cuts".lstrip("; ")) from None

    def _warn_of_states(self) -> None:
        cut = [table.name for table in self.problem.tables
               if NORMS_PER_ROW[table.optimizer.kind] and any(
                   shard.width < table.dim for shard in self.result.plan.shards_of(table.name))]
        if cut:
            warnings.warn(f"tables cut by columns have norms of rows for each shard, and train "
                          f"differently than whole ones: {', '.join(cut)}", stacklevel=3)

    def _pass_on(self, plan: ShardingPlan, found: Found) -> None:
        """Copies to the plan those settings of the constraints that are for TorchRec's kernels."""
        for path, tables in plan.plan.items():
            for name, sharding in tables.items():
                limits = found.constraints[table_name(path, name)]
                for one in ("cache_params", "enforce_hbm", "stochastic_rounding",
                            "bounds_check_mode", "output_dtype"):
                    setattr(sharding, one, getattr(limits, one))
