"""Plans of NeuroShard as plans of TorchRec, and back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from torchrec.distributed.types import ShardingPlan

from neuroshard.plans import Plan
from neuroshard.problem import Semantics
from neuroshard.torchrec import _checks as checks


def to_torchrec(plan: Plan, modules: Mapping[str, Sequence[str]], *, device: str = "cuda",
                local_ranks: int | None = None, unpooled: Collection[str] = ()) -> ShardingPlan:
    """The plan as TorchRec's DistributedModelParallel takes it.

    modules: of each module's path in the model, the names of its tables; the plan's tables are
    path.name. device: "cuda", "cpu". local_ranks: ranks of each host, None: all on one.
    unpooled: which of the modules are EmbeddingCollections. A plan made for target torchrec-1.9
    can always be said; any other is Unsupported if TorchRec would run it wrong."""
    checks.expect(plan, "plan", Plan, "a neuroshard.Plan")
    return plan.to_torchrec(modules, device=device, local_ranks=local_ranks, unpooled=unpooled)


def from_torchrec(plan: ShardingPlan, tables: Callable[[str, str], tuple[int, int]],
                  device_count: int, *,
                  optimizer_semantics: Semantics | None = None) -> Plan:
    """A plan of TorchRec as one of ours; its tables are named path.name.

    tables: (module path, table name) -> (rows, dim). optimizer_semantics: "exact" for optimizers
    that are not row-wise, or without column shards, of which TorchRec keeps a state each; None:
    "per_shard" where a table is cut by columns. Unsupported for kinds and kernels that we have no
    word for; ValueError for shards that are none, or on ranks that device_count devices have
    not."""
    return Plan.from_torchrec(plan, tables, device_count, optimizer_semantics=optimizer_semantics)
