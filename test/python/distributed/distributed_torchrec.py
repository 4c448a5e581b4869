"""Plans that TorchRec runs: outputs and updated weights against torch without sharding."""

import functools
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
from torchrec import (EmbeddingBagCollection, EmbeddingBagConfig, EmbeddingCollection,  # noqa: E402
                      EmbeddingConfig, PoolingType)
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


class Collections(torch.nn.Module):
    """Three collections whose tables and features have the same names."""

    def __init__(self, device):
        super().__init__()
        self.bags = EmbeddingBagCollection(device=device, tables=[
            EmbeddingBagConfig(name="t0", num_embeddings=50, embedding_dim=8, feature_names=["f0", "f1"]),
            EmbeddingBagConfig(name="t1", num_embeddings=30, embedding_dim=12, feature_names=["f1"],
                               pooling=PoolingType.MEAN)])
        self.inner = torch.nn.ModuleDict({"weighted": EmbeddingBagCollection(
            device=device, is_weighted=True, tables=[EmbeddingBagConfig(
                name="t0", num_embeddings=40, embedding_dim=4, feature_names=["f0"],
                init_fn=functools.partial(torch.nn.init.constant_, val=0.5))])})
        self.rows = EmbeddingCollection(device=device, tables=[
            EmbeddingConfig(name="t0", num_embeddings=20, embedding_dim=8, feature_names=["f0"])])

    def forward(self, bags, weighted, rows):
        return {**{f"bags {key}": value for key, value in self.bags(bags).to_dict().items()},
                **{f"weighted {key}": value
                   for key, value in self.inner["weighted"](weighted).to_dict().items()},
                **{f"rows {key}": value.values() for key, value in self.rows(rows).items()}}

    def draw(self, generator):
        return (draw(self.bags.embedding_bag_configs(), generator, 4),
                draw(self.inner["weighted"].embedding_bag_configs(), generator, 3, weighted=True),
                draw(self.rows.embedding_configs(), generator, 3))


def problem_of(model, ranks, **rest):
    return ns.distributed.problem_of(
        model, batch=SAMPLES * ranks, topology=f"{ranks}xCPU@4GiB",
        mean_pooling={"bags/f0": 2, "f1": 3, "rows/f0": 1.5}, **rest)


def case_whole_model(context):
    """A model with three collections under one plan trains as without sharding."""
    plain = Collections(torch.device("cpu"))
    expected = {"bags/f0": 2, "bags/f1@bags.t0": 3, "bags/f1@bags.t1": 3, "inner.weighted/f0": 1, "rows/f0": 1.5}
    cuts = [ns.Shard(table="bags.t0", rows=(0, 17), cols=(0, 8), devices=1),
            ns.Shard(table="bags.t0", rows=(17, 50), cols=(0, 8), devices=0),
            ns.Shard(table="rows.t0", rows=(0, 20), cols=(0, 4), devices=1),
            ns.Shard(table="rows.t0", rows=(0, 20), cols=(4, 8), devices=0)]
    problem = problem_of(plain, context.size, constraints=ns.Constraints(fixed_shards=cuts))
    assert {one.name: one.mean_pooling for one in problem.features} == expected
    plan = ns.distributed.plan(problem)
    model = Collections(torch.device("meta"))
    sharded = ns.distributed.shard_model(model, plan, problem, learning_rate=[
        {"tables": ["bags.t0"], "lr": RATE / 2}, {"lr": RATE}], threads=1)
    context.modules += sharded.values()
    assert list(sharded) == ["bags", "inner.weighted", "rows"] and model.inner["weighted"] is sharded["inner.weighted"]
    assert all((one.weights == 0.5).all() for one in sharded["inner.weighted"].local_shards())
    with torch.no_grad():
        for value in plain.parameters():
            value.copy_(torch.rand(value.shape, generator=context.generator(str(value.shape))))
    missing, unexpected = model.load_state_dict(plain.state_dict(), strict=False)
    assert not unexpected and {one.rpartition(".")[2] for one in missing} == {"step", "learning_rate"}
    generator = context.generator("ids")
    optimizer = torch.optim.SGD([
        {"params": [plain.bags.embedding_bags["t0"].weight], "lr": RATE / 2},
        {"params": [value for name, value in plain.named_parameters() if "bags.embedding_bags.t0" not in name]}], lr=RATE)
    for _ in range(3):
        everyone = [plain.draw(generator) for _ in range(context.size)]
        outputs = model(*everyone[context.rank])
        torch.testing.assert_close(outputs, plain(*everyone[context.rank]), atol=1e-6, rtol=1e-6)
        loss_of(outputs).backward()
        optimizer.zero_grad()
        (sum(loss_of(plain(*ids)) for ids in everyone) / context.size).backward()
        optimizer.step()
    free = problem_of(plain, context.size)
    other = ns.distributed.plan(free)
    moved = ns.distributed.reshard_model(sharded, other, free)
    assert list(moved) == list(sharded)
    assert {f"{path}.{shard.table}" for path, one in sharded.items() for shard in one.plan.shards} == {
        shard.table for shard in other.shards}
    whole = ns.distributed.full_state_dict(model, rank=0)
    if context.rank == 0:
        found = {name: value for name, value in whole.items() if name.endswith("weight")}
        torch.testing.assert_close(found, dict(plain.state_dict()), atol=1e-5, rtol=1e-5)


def case_whole_model_memory(context):
    """What a module may take is what the plan of all leaves beside the others."""
    problem = problem_of(Collections(torch.device("meta")), context.size)
    plan = ns.distributed.plan(problem)
    sharded = ns.distributed.shard_model(Collections(torch.device("meta")), plan, problem, learning_rate=RATE, threads=1)
    context.modules += sharded.values()
    whole = ns.inspect(problem, plan).memory.devices
    left = [device.memory_bytes - one.peak_bytes for device, one in zip(problem.topology.devices, whole)]
    for one in sharded.values():
        own = ns.inspect(one.problem, one.plan).memory.devices
        assert [device.memory_bytes - mine.peak_bytes
                for device, mine in zip(one.problem.topology.devices, own)] == left


def case_whole_model_refused(context):
    """What does not fit is an error on all ranks, and the model stays as it was."""
    model = Collections(torch.device("meta"))
    problem = problem_of(Collections(torch.device("meta")), context.size)
    plan = ns.distributed.plan(problem)

    def shard(model=model, problem=problem):
        return ns.distributed.shard_model(model, plan, problem, learning_rate=RATE)

    fewer = problem.replace(tables=problem.tables[1:], features=[
        one for one in problem.features if one.table != "bags.t0"])
    raises(ValueError, 'table "bags.t0" is in the model only', lambda: shard(problem=fewer))
    larger = problem.replace(tables=[one.replace(rows=one.rows + 1) for one in problem.tables])
    raises(ValueError, 'table "bags.t0" has 50 rows of 8 in the model, and 51 of 8 in the problem',
           lambda: shard(problem=larger))
    raises(ValueError, "expected a model with its tables in", lambda: shard(model=model.bags))
    model.single = torch.nn.EmbeddingBag(9, 4)
    raises(ValueError, "found single modules (single)", lambda: shard())
    raises(ValueError, "mean_pooling: there is no feature ['f9']", lambda: ns.distributed.problem_of(
        model, batch=8, topology="2xCPU", mean_pooling={"f9": 1}))
    raises(TypeError, "a Linear without tables", lambda: ns.distributed.problem_of(
        torch.nn.Linear(2, 2), batch=8, topology="2xCPU"))
    del model.single
    for options in ({"learning_rate": [{"tables": ["t9"], "lr": 1}]}, {"initial_values": {"t9": None}}):
        raises(ValueError, "expected tables of bags.t0, bags.t1, inner.weighted.t0, rows.t0, found 't9'", lambda options=options: ns.distributed.shard_model(
            model, plan, problem, **{"learning_rate": RATE, **options}))
    # An error of one rank reaches the others.
    kind = ValueError if context.rank == 0 else ns.distributed.GroupError
    raises(kind, "in the problem", lambda: shard(problem=larger if context.rank == 0 else problem))
    assert isinstance(model.bags, EmbeddingBagCollection)
    sharded = shard()
    context.modules += sharded.values()
    raises(TypeError, "whose tables are sharded already", lambda: shard())
    raises(ValueError, 'table "bags.t0" is in the modules only', lambda: ns.distributed.reshard_model(
        sharded, plan, fewer))
