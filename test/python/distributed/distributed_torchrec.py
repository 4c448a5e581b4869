"""Plans that TorchRec runs: outputs and updated weights against torch without sharding."""

import os
import random
import warnings

import torch
import torch.distributed as dist

import neuroshard as ns
from distributed_context import raises
from support import matrix

warnings.filterwarnings("ignore")

from fbgemm_gpu.split_embedding_configs import EmbOptimType  # noqa: E402
from torch.distributed._shard.sharded_tensor import ShardedTensor  # noqa: E402
from torchrec import EmbeddingConfig  # noqa: E402
from torchrec.distributed import DistributedModelParallel  # noqa: E402
from torchrec.distributed.embedding import EmbeddingCollectionSharder  # noqa: E402
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder  # noqa: E402
from torchrec.distributed.planner.types import ParameterConstraints, Topology  # noqa: E402

from neuroshard.torchrec import NeuroShardPlanner, from_torchrec, to_torchrec  # noqa: E402
from neuroshard.torchrec._sharding_types import RUN_WRONG  # noqa: E402
from support.torchrec_models import (SAMPLES, Model, draw, loss_of, make_tables,  # noqa: E402
                                     reference, whole_weights)

RATE = 0.5
# Four ranks are two hosts to TorchRec.
HOST = 2
os.environ["LOCAL_WORLD_SIZE"] = str(HOST)
KINDS = (None, None, ["table_wise"], ["column_wise"], ["row_wise"], ["data_parallel"],
         ["table_row_wise"], ["column_wise", "table_wise"], ["row_wise", "data_parallel"],
         ["table_row_wise", "table_column_wise"])
# What the sharder of rows has no module for.
UNPOOLED_LACK = {"table_row_wise", "table_column_wise"}


def fill(model, weights):
    with torch.no_grad():
        for name, value in model.state_dict().items():
            table = weights[name.split(".")[-2]]
            if not isinstance(value, ShardedTensor):
                value.copy_(table)
                continue
            for shard in value.local_shards():
                (row, col), (rows, cols) = shard.metadata.shard_offsets, shard.tensor.shape
                shard.tensor.copy_(table[row:row + rows, col:col + cols])


def sharders():
    fused = {"optimizer": EmbOptimType.EXACT_SGD, "learning_rate": RATE}
    return [EmbeddingBagCollectionSharder(fused_params=fused),
            EmbeddingCollectionSharder(fused_params=fused)]


def choose_kinds(config, dice):
    """The sharding types allowed for a table; None: those that TorchRec computes right results
    with."""
    kinds = dice.choice(KINDS)
    unpooled = isinstance(config, EmbeddingConfig)
    wrong = (RUN_WRONG["none"] | UNPOOLED_LACK if unpooled
             else RUN_WRONG.get(config.pooling.name.lower(), set()))
    return kinds if kinds and set(kinds) - wrong else None


def make_planner(context, dice, configs):
    constraints = {one.name: ParameterConstraints(sharding_types=choose_kinds(one, dice),
                                                  min_partition=dice.choice([None, 4, 8]))
                   for one in configs}
    return NeuroShardPlanner(Topology(context.size, "cpu", local_world_size=HOST),
                             batch_size=SAMPLES, constraints=constraints,
                             seed=dice.randrange(1000),
                             algorithm=dice.choice(["default", "default", "threshold"]))


def case_plan(context, number):
    """A searched plan: one step of SGD on real ranks against the unsharded model."""
    number = int(number)
    dice = random.Random(f"{matrix.seed()} torchrec {number}")
    bags, rows, weighted = make_tables(number, dice)
    planner = make_planner(context, dice, [*bags, *rows])
    plan = planner.collective_plan(Model(bags, rows, weighted), sharders(), dist.group.WORLD)
    check_round_trip(context, plan, planner, [*bags, *rows])
    weights = whole_weights([*bags, *rows], context.generator("weights"))
    model = DistributedModelParallel(Model(bags, rows, weighted), device=torch.device("cpu"),
                                     plan=plan, sharders=sharders())
    fill(model, weights)
    generator = context.generator("ids")
    everyone = [(draw(bags, generator, 3, weighted), draw(rows, generator, 3) if rows else None)
                for _ in range(context.size)]
    outputs = model(*everyone[context.rank])
    torch.testing.assert_close(outputs, reference(bags, rows, everyone[context.rank], weights),
                               atol=1e-6, rtol=1e-6)
    dense = torch.optim.SGD(model.parameters(), lr=RATE) if list(model.parameters()) else None
    loss_of(outputs).backward()
    if dense:
        dense.step()
    learned = {name: value.clone().requires_grad_() for name, value in weights.items()}
    total = sum(loss_of(reference(bags, rows, ids, learned)) for ids in everyone) / context.size
    gradients = torch.autograd.grad(total, list(learned.values()), allow_unused=True)
    after = {name: weights[name] if gradient is None else weights[name] - RATE * gradient
             for name, gradient in zip(learned, gradients)}
    check_weights(model, after)


def check_weights(model, expected):
    for name, value in model.state_dict().items():
        table = expected[name.split(".")[-2]]
        parts = ([(value, table)] if not isinstance(value, ShardedTensor) else
                 [(shard.tensor, table[
                     shard.metadata.shard_offsets[0]:shard.metadata.shard_offsets[0]
                     + shard.tensor.shape[0],
                     shard.metadata.shard_offsets[1]:shard.metadata.shard_offsets[1]
                     + shard.tensor.shape[1]]) for shard in value.local_shards()])
        for mine, theirs in parts:
            torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-6,
                                       msg=lambda text: f"{name}: {text}")


def check_round_trip(context, plan, planner, configs):
    """Converting to TorchRec's plan and back gives the same plan."""
    if planner.result is None:
        return
    sizes = {one.name: (one.num_embeddings, one.embedding_dim) for one in configs}
    back = from_torchrec(plan, lambda path, name: sizes[name], context.size,
                         optimizer_semantics=planner.problem.optimizer_semantics)
    back.verify(planner.problem)
    key = lambda shard: (shard.table, shard.rows, shard.cols)  # noqa: E731
    ours = planner.result.plan

    def plain(one):
        return [(*key(shard), shard.devices) for shard in sorted(one.shards, key=key)]

    assert plain(back) == plain(ours)
    modules = {path: list(tables) for path, tables in plan.plan.items()}
    again = to_torchrec(back, modules, device="cpu", local_ranks=HOST)
    for path, tables in again.plan.items():
        for name, sharding in tables.items():
            assert sharding.sharding_type == plan.plan[path][name].sharding_type
            assert sharding.sharding_spec == plan.plan[path][name].sharding_spec


def case_refused(context):
    """An error of planning on rank 0 reaches every rank."""
    bags, rows, weighted = make_tables(1, random.Random(1))
    planner = NeuroShardPlanner(Topology(context.size, "cpu", ddr_cap=100), batch_size=4)
    kind = ns.PlanningError if context.rank == 0 else ns.distributed.GroupError
    model = Model(bags, rows, weighted)
    dist.barrier()
    text = raises(kind, "device memory", lambda: planner.collective_plan(model, sharders()))
    assert "available" in text


def case_other_ranks(context):
    """A topology with another number of ranks than the group is refused on all of them."""
    bags, rows, weighted = make_tables(1, random.Random(1))
    kind = ValueError if context.rank == 0 else ns.distributed.GroupError
    for ranks in (context.size // 2, context.size * 2):
        planner = NeuroShardPlanner(Topology(ranks, "cpu", local_world_size=1), batch_size=4)
        raises(kind, f"topology: it has {ranks} ranks and the process group {context.size}",
               lambda: planner.collective_plan(Model(bags, rows, weighted), sharders()))
