"""Plans that TorchRec runs: outputs and updated weights against torch without sharding."""

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
from torchrec import (EmbeddingBagCollection, EmbeddingBagConfig,  # noqa: E402
                      EmbeddingCollection, EmbeddingConfig, KeyedJaggedTensor, PoolingType)
from torchrec.distributed import DistributedModelParallel  # noqa: E402
from torchrec.distributed.embedding import EmbeddingCollectionSharder  # noqa: E402
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder  # noqa: E402
from torchrec.distributed.planner.types import ParameterConstraints, Topology  # noqa: E402

from neuroshard.torchrec import NeuroShardPlanner, from_torchrec, to_torchrec  # noqa: E402
from neuroshard.torchrec.modules import RUN_WRONG  # noqa: E402

RATE = 0.5
SAMPLES = 6
KINDS = (None, None, ["table_wise"], ["column_wise"], ["row_wise"], ["data_parallel"],
         ["column_wise", "table_wise"], ["row_wise", "data_parallel"])


class Model(torch.nn.Module):
    """Poolings in one module, rows in another if there are any."""

    def __init__(self, bags, rows):
        super().__init__()
        self.bags = EmbeddingBagCollection(tables=bags, device=torch.device("meta"))
        if rows:
            self.rows = EmbeddingCollection(tables=rows, device=torch.device("meta"))

    def forward(self, bags, rows):
        outputs = dict(self.bags(bags).to_dict())
        if rows is not None:
            outputs |= {key: one.values() for key, one in self.rows(rows).items()}
        return [outputs[key] for key in sorted(outputs)]


def make_tables(number, dice):
    """DLRM-v2 with few rows and columns, or a model with tables of both kinds."""
    if number % 2 == 0:
        sizes = [(f"cat_{one}", dice.randint(1, 200), 16) for one in range(26)]
        return [EmbeddingBagConfig(name=name, num_embeddings=rows, embedding_dim=dim,
                                   feature_names=[f"f_{name}"]) for name, rows, dim in sizes], []
    bags = [EmbeddingBagConfig(name=f"bag{one}", num_embeddings=dice.randint(1, 90),
                               embedding_dim=4 * dice.randint(1, 12),
                               pooling=dice.choice([PoolingType.SUM, PoolingType.MEAN]),
                               feature_names=[f"b{one}{part}" for part in "xy"[:dice.randint(1, 2)]])
            for one in range(5)]
    rows = [EmbeddingConfig(name=f"row{one}", num_embeddings=dice.randint(1, 90),
                            embedding_dim=8, feature_names=[f"r{one}"]) for one in range(3)]
    return bags, rows


def draw(configs, generator, most):
    """A KeyedJaggedTensor of SAMPLES bags of each feature."""
    keys, ids, lengths = [], [], []
    for config in configs:
        for key in config.feature_names:
            counts = torch.randint(0, most + 1, (SAMPLES,), generator=generator)
            keys.append(key)
            lengths.append(counts)
            ids.append(torch.randint(0, config.num_embeddings, (int(counts.sum()),),
                                     generator=generator))
    return KeyedJaggedTensor(keys, torch.cat(ids), lengths=torch.cat(lengths).int())


def whole_weights(configs, generator):
    return {one.name: torch.rand(one.num_embeddings, one.embedding_dim, generator=generator)
            for one in configs}


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


def lookup(config, key, ids, weights):
    """torch's own result of one feature of one batch."""
    part = ids[key]
    table = weights[config.name]
    if isinstance(config, EmbeddingConfig):
        return torch.nn.functional.embedding(part.values().long(), table)
    return torch.nn.functional.embedding_bag(
        part.values().long(), table, part.offsets()[:-1].long(),
        mode=config.pooling.name.lower())


def reference(bags, rows, ids, weights):
    """As Model gives it."""
    outputs = {key: lookup(config, key, part, weights)
               for configs, part in zip((bags, rows), ids) for config in configs
               for key in config.feature_names}
    return [outputs[key] for key in sorted(outputs)]


def loss_of(outputs):
    return sum((one * torch.linspace(-1, 1, one.numel()).view_as(one)).sum() for one in outputs)


def sharders():
    fused = {"optimizer": EmbOptimType.EXACT_SGD, "learning_rate": RATE}
    return [EmbeddingBagCollectionSharder(fused_params=fused),
            EmbeddingCollectionSharder(fused_params=fused)]


def make_planner(context, dice, bags, rows):
    constraints = {}
    for config in [*bags, *rows]:
        kinds = dice.choice(KINDS)
        wrong = RUN_WRONG.get("none" if isinstance(config, EmbeddingConfig)
                              else config.pooling.name.lower(), set())
        if kinds and not set(kinds) - wrong:
            kinds = None
        constraints[config.name] = ParameterConstraints(
            sharding_types=kinds, min_partition=dice.choice([None, 4, 8]))
    return NeuroShardPlanner(Topology(context.size, "cpu"), batch_size=SAMPLES,
                             constraints=constraints, seed=dice.randrange(1000),
                             algorithm=dice.choice(["default", "default", "threshold"]))


def case_plan(context, number):
    """A searched plan: one step of SGD on real ranks against the unsharded model."""
    number = int(number)
    dice = random.Random(f"{matrix.seed()} torchrec {number}")
    bags, rows = make_tables(number, dice)
    planner = make_planner(context, dice, bags, rows)
    plan = planner.collective_plan(Model(bags, rows), sharders(), dist.group.WORLD)
    check_round_trip(context, plan, planner, [*bags, *rows])
    weights = whole_weights([*bags, *rows], context.generator("weights"))
    model = DistributedModelParallel(Model(bags, rows), device=torch.device("cpu"), plan=plan,
                                     sharders=sharders())
    fill(model, weights)
    generator = context.generator("ids")
    everyone = [(draw(bags, generator, 3), draw(rows, generator, 3) if rows else None)
                for _ in range(context.size)]
    outputs = model(*everyone[context.rank])
    expected = reference(bags, rows, everyone[context.rank], weights)
    for mine, theirs in zip(outputs, expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-6)
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
    """TorchRec's plan says as much as ours."""
    if planner.result is None:
        return
    sizes = {one.name: (one.num_embeddings, one.embedding_dim) for one in configs}
    back = from_torchrec(plan, lambda path, name: sizes[name], context.size)
    key = lambda shard: (shard.table, shard.rows, shard.cols)  # noqa: E731
    ours = planner.result.plan

    def plain(one):
        return [(*key(shard), shard.devices) for shard in sorted(one.shards, key=key)]

    assert plain(back) == plain(ours)
    modules = {path: list(tables) for path, tables in plan.plan.items()}
    again = to_torchrec(back, modules, device="cpu")
    for path, tables in again.plan.items():
        for name, sharding in tables.items():
            assert sharding.sharding_type == plan.plan[path][name].sharding_type
            assert sharding.sharding_spec == plan.plan[path][name].sharding_spec


def case_refused(context):
    """What rank 0 cannot plan, every rank learns within seconds."""
    bags, rows = make_tables(1, random.Random(1))
    planner = NeuroShardPlanner(Topology(context.size, "cpu", ddr_cap=100), batch_size=4)
    kind = ns.PlanningError if context.rank == 0 else ns.distributed.GroupError
    text = raises(kind, "device memory", lambda: planner.collective_plan(
        Model(bags, rows), sharders()))
    assert "available" in text
