"""What `neuroshard.bench.replicas` runs side by side: our module, TorchRec's DistributedModelParallel
and DMPCollection, and training without sharding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torch.distributed.tensor import DTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.model_parallel import DMPCollection
from torchrec.distributed.planner import Topology as TorchRecTopology
from torchrec.distributed.types import ShardingPlan

import neuroshard as ns
from neuroshard._jagged import Jagged
from neuroshard.calibration import torchrec_engine
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

# TorchRec's fused optimizers do not update tables that data parallelism copies.
SHARDING_TYPES = ["table_wise", "column_wise", "row_wise", "table_row_wise"]


@dataclass(frozen=True)
class Piece:
    """Some rows and columns of a table on this rank, and their memory."""

    table: str
    rows: slice
    cols: slice
    weights: torch.Tensor


@dataclass(frozen=True)
class Engine:
    """step: of the ids of this rank; the loss is half the sum of squares of all results, in the mean
    over the ranks. sync: averages copies that have drifted apart; None if copies are always equal."""

    step: Callable[[Jagged], None]
    pieces: Callable[[], Iterator[Piece]]
    sync: Callable[[], None] | None
    close: Callable[[], None]


def open_ours(plan: str, problem: ShardingProblem) -> Engine:
    """plan: JSON, the same on all ranks."""
    module = ns.ShardedEmbeddingBagCollection(Plan.from_json(plan), problem, threads=1,
                                              learning_rate=torchrec_engine.RATE)

    def step(ids: Jagged) -> None:
        results = list(module(ids).values())
        torch.autograd.backward(results, [one.detach() for one in results])

    def pieces() -> Iterator[Piece]:
        for shard in module.local_shards():
            yield Piece(shard.table, slice(*shard.rows), slice(*shard.cols), shard.weights)

    return Engine(step, pieces, None, module.close)


def pieces_of(state: dict) -> Iterator[Piece]:
    """Of a state dict of TorchRec's modules."""
    for name, value in state.items():
        table = name.split(".")[-2]
        if isinstance(value, ShardedTensor):
            held = [(one.metadata.shard_offsets, one.tensor) for one in value.local_shards()]
        elif isinstance(value, DTensor):
            local = value.to_local()
            held = list(zip(local.local_offsets(), local.local_shards()))
        else:
            held = [((0, 0), value)]
        for (row, column), tensor in held:
            yield Piece(table, slice(row, row + tensor.shape[0]),
                        slice(column, column + tensor.shape[1]), tensor)


def open_torchrec(module: DistributedModelParallel, problem: ShardingProblem) -> Engine:
    def step(ids: Jagged) -> None:
        values = module(torchrec_engine.as_keyed(ids, problem)).wait().values()
        values.backward(values.detach())

    return Engine(step, lambda: pieces_of(module.state_dict()), getattr(module, "sync", None),
                  lambda: None)


def open_dmp(problem: ShardingProblem) -> Engine:
    plan = torchrec_engine.plan_of_torchrec(problem, sharding_types=SHARDING_TYPES)
    return open_torchrec(torchrec_engine.open_module(plan, problem), problem)


class CpuDMPCollection(DMPCollection):
    """On CPUs, which have no numbers in the places of shards."""

    def _remap_sharding_plan(self, plan: ShardingPlan, **arguments: object) -> None:
        super()._remap_sharding_plan(plan=plan, **arguments)
        for parameters in plan.plan.values():
            for parameter in parameters.values():
                for shard in parameter.sharding_spec.shards:
                    shard.placement = torch.distributed._remote_device(
                        f"rank:{shard.placement.rank()}/cpu")


def open_collection(problem: ShardingProblem, group_size: int, inside_hosts: bool) -> Engine:
    """Groups of so many ranks have all tables each, and are averaged. inside_hosts: the ranks of a
    group follow each other; else those of a host are in different groups."""
    given = torchrec_engine.topology_of(problem.topology)
    outer, inner = problem.topology.levels[0], problem.topology.levels[-1]
    slow = not inside_hosts and outer is not inner
    between = outer.group_bandwidth_gb_per_s or outer.bandwidth_gb_per_s
    bandwidth = (between if slow else inner.bandwidth_gb_per_s) * torchrec_engine.BYTES_PER_MS
    local = min(group_size, given.local_world_size)
    topology = TorchRecTopology(group_size, "cpu", local_world_size=local,
                                intra_host_bw=bandwidth, inter_host_bw=given.inter_host_bw)
    plan = torchrec_engine.plan_of_torchrec(problem, topology, SHARDING_TYPES)
    module = CpuDMPCollection(torchrec_engine.make_collection(problem), torch.device("cpu"), plan,
                              dist.get_world_size(), group_size, dist.group.WORLD,
                              sharders=torchrec_engine.SHARDERS,
                              use_inter_host_allreduce=inside_hosts)
    return open_torchrec(module, problem)


def train_whole(problem: ShardingProblem, weights: dict[str, torch.Tensor],
                batches: Sequence[Jagged], ranks: int) -> dict[str, torch.Tensor]:
    """Weights after a step of each of the global batches, without sharding, by TorchRec's optimizers."""
    bags = torchrec_engine.make_collection(problem, "cpu")
    for name, bag in bags.embedding_bags.items():
        bag.weight.data.copy_(weights[name])
    for ids in batches:
        values = bags(torchrec_engine.as_keyed(ids, problem)).values()
        values.backward(values.detach() / ranks)
    return {name: bag.weight.detach() for name, bag in bags.embedding_bags.items()}
