"""TorchRec's DistributedModelParallel on CPUs, whose steps are timed beside ours."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
import torchrec
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints
from torchrec.distributed.planner import Topology as TorchRecTopology
from torchrec.distributed.types import ShardingEnv, ShardingPlan
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.optim.optimizers import in_backward_optimizer_filter

from neuroshard._jagged import Jagged
from neuroshard.calibration._engines import RATE, Tables
from neuroshard.constraints import Constraints, TableRule
from neuroshard.errors import Unsupported
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem
from neuroshard.topology import Topology

# FBGEMM has no Adam for CPUs.
OPTIMIZERS = {"sgd": torchrec.optim.SGD, "adagrad": torchrec.optim.Adagrad,
              "rowwise_adagrad": torchrec.optim.RowWiseAdagrad}
# TorchRec's own optimizers but one are names for what FBGEMM fuses, and do nothing to the tables that
# data parallelism copies.
OPTIMIZERS_OF_COPIES = {**OPTIMIZERS, "sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}
SHARDERS = [EmbeddingBagCollectionSharder()]
# TorchRec's bandwidths are in bytes per millisecond.
BYTES_PER_MS = 1e6


def problem_for_torchrec(problem: ShardingProblem) -> ShardingProblem:
    """The same tables to be planned for TorchRec, which has one state for each column shard. An
    optimizer that it does not have becomes Adagrad."""
    kinds = ("replicated", "table_wise", "column_wise", "row_wise", "table_row_wise")
    tables = [table if table.optimizer.kind in OPTIMIZERS else table.replace(optimizer="adagrad")
              for table in problem.tables]
    rules = [TableRule(table.name, kinds) for table in tables]
    return problem.replace(tables=tables, target="torchrec-1.9", optimizer_semantics="per_shard",
                           constraints=Constraints(tables=rules))


def check(problem: ShardingProblem) -> str:
    """The optimizer of all tables. Raises Unsupported for what TorchRec does not run on CPUs."""
    kinds = sorted({table.optimizer.kind for table in problem.tables})
    if len(kinds) > 1 or kinds[0] not in OPTIMIZERS:
        raise Unsupported(f"TorchRec on CPUs with the optimizers {', '.join(kinds)}: expected one "
                          f"of {', '.join(OPTIMIZERS)} for all tables")
    return kinds[0]


def make_collection(problem: ShardingProblem, device: str = "meta") -> torchrec.EmbeddingBagCollection:
    """Without memory yet, unless on another device. Each table has one feature, which is summed."""
    optimizer = OPTIMIZERS[check(problem)]
    bags = torchrec.EmbeddingBagCollection(
        tables=[torchrec.EmbeddingBagConfig(
            name=feature.table, embedding_dim=problem.table(feature.table).dim,
            num_embeddings=problem.table(feature.table).rows, feature_names=[feature.name])
            for feature in problem.features], device=torch.device(device))
    apply_optimizer_in_backward(optimizer, bags.parameters(), {"lr": RATE})
    return bags


def topology_of(topology: Topology) -> TorchRecTopology:
    """A topology of one or two levels as TorchRec knows them; a link that a host's ranks share is
    divided among them."""
    outer, inner = topology.levels[0], topology.levels[-1]
    local = inner.groups[0]
    between = outer.group_bandwidth_gb_per_s / local or outer.bandwidth_gb_per_s
    return TorchRecTopology(topology.device_count, "cpu", local_world_size=local,
                            intra_host_bw=inner.bandwidth_gb_per_s * BYTES_PER_MS,
                            inter_host_bw=between * BYTES_PER_MS)


def plan_of_torchrec(problem: ShardingProblem, topology: TorchRecTopology | None = None,
                     sharding_types: list[str] | None = None) -> ShardingPlan:
    """What TorchRec's own planner plans, which knows the poolings; all ranks call it together.
    topology: of other devices than the problem's. sharding_types: TorchRec's; None: all."""
    constraints = {feature.table: ParameterConstraints(pooling_factors=[feature.mean_pooling],
                                                       sharding_types=sharding_types)
                   for feature in problem.features}
    planner = EmbeddingShardingPlanner(
        topology=topology or topology_of(problem.topology), constraints=constraints,
        batch_size=problem.batch.global_size // problem.topology.device_count)
    return planner.collective_plan(make_collection(problem), SHARDERS, dist.group.WORLD)


def plan_for_torchrec(plan: str, problem: ShardingProblem) -> ShardingPlan:
    """A plan of ours, JSON, for TorchRec's modules."""
    return Plan.from_json(plan).to_torchrec(
        {"": [table.name for table in problem.tables]}, device="cpu",
        local_ranks=problem.topology.levels[-1].groups[0])


def open_module(plan: ShardingPlan, problem: ShardingProblem) -> DistributedModelParallel:
    return DistributedModelParallel(
        make_collection(problem), env=ShardingEnv.from_process_group(dist.group.WORLD),
        device=torch.device("cpu"), plan=plan, sharders=SHARDERS)


def as_keyed(ids: Jagged, problem: ShardingProblem) -> torchrec.KeyedJaggedTensor:
    return torchrec.KeyedJaggedTensor(keys=[feature.name for feature in problem.features],
                                      values=ids.ids, lengths=ids.offsets.diff())


def update_of_copies(module: DistributedModelParallel, problem: ShardingProblem
                     ) -> Callable[[], None]:
    """Updates the tables that data parallelism copies, after a backward."""
    copies = [parameter for _, parameter in in_backward_optimizer_filter(module.named_parameters())]
    if not copies:
        return lambda: None
    optimizer = OPTIMIZERS_OF_COPIES[check(problem)](copies, lr=RATE)

    def update() -> None:
        optimizer.step()
        optimizer.zero_grad()

    return update


def open_torchrec(plan: ShardingPlan, problem: ShardingProblem) -> Tables:
    """TorchRec's module for the model."""
    module = open_module(plan, problem)
    update = update_of_copies(module, problem)

    def step(batch: object) -> None:
        values = module(batch).wait().values()
        values.backward(torch.ones_like(values))
        update()

    return Tables(lambda ids: as_keyed(ids, problem), step, dict, lambda: None, lambda: None)
