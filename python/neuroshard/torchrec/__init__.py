"""NeuroShard inside TorchRec: a planner for DistributedModelParallel, and plans there and back.

    from neuroshard.torchrec import NeuroShardPlanner

    planner = NeuroShardPlanner(topology, batch_size=512, constraints=constraints)
    model = DistributedModelParallel(model, plan=planner.collective_plan(model, sharders, pg))

It needs torch and torchrec 1.9; import neuroshard alone imports neither. docs/torchrec.md
explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

try:
    from torchrec.distributed.types import ShardingPlan
except ModuleNotFoundError as error:
    raise ImportError("neuroshard.torchrec needs torch and torchrec 1.9 "
                      f"(pip install neuroshard[torchrec]): {error}") from error

from neuroshard.plans import Plan
from neuroshard.problem import Semantics
from neuroshard.torchrec import _planner_checks as checks
from neuroshard.torchrec._comparison import (PlannerComparison, PlannerEntry, compare_planners, quiet,
                                             torchrec_topology)
from neuroshard.torchrec._counters import counter_optimizer
from neuroshard.torchrec._planner import NeuroShardPlanner

__all__ = ["NeuroShardPlanner", "PlannerComparison", "PlannerEntry", "compare_planners", "counter_optimizer",
           "from_torchrec", "quiet", "to_torchrec", "torchrec_topology"]


def to_torchrec(plan: Plan, modules: Mapping[str, Sequence[str]], *, device: str = "cuda",
                local_ranks: int | None = None, unpooled: Collection[str] = ()) -> ShardingPlan:
    """The plan for TorchRec's DistributedModelParallel.

    modules: of each module's path in the model, the names of its tables; the plan's tables are
    path.name. device: "cuda", "cpu". local_ranks: ranks of each host, None: all on one.
    unpooled: which of the modules are EmbeddingCollections. A plan made for target torchrec-1.9
    can always be converted. Raises Unsupported for other plans that TorchRec has no form for or
    computes wrong results with."""
    checks.expect(plan, "plan", Plan, "a neuroshard.Plan")
    return plan.to_torchrec(modules, device=device, local_ranks=local_ranks, unpooled=unpooled)


def from_torchrec(plan: ShardingPlan, tables: Callable[[str, str], tuple[int, int]],
                  device_count: int, *,
                  optimizer_semantics: Semantics | None = None) -> Plan:
    """A plan of TorchRec as one of ours; its tables are named path.name.

    tables: (module path, table name) -> (rows, dim). optimizer_semantics: "exact" for optimizers
    that are not row-wise, or without column shards, of which TorchRec keeps a state each; None:
    "per_shard" where a table is cut by columns. Raises Unsupported for kinds and kernels that
    NeuroShard does not have, and ValueError for invalid shards or ranks beyond device_count."""
    return Plan.from_torchrec(plan, tables, device_count, optimizer_semantics=optimizer_semantics)
