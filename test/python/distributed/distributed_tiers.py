"""Cases: shards in lower tiers beside the same shards in device memory."""

import ctypes
import itertools
import os
from pathlib import Path

import torch

import neuroshard as ns
from distributed_context import raises, whole
from distributed_models import random_parts
from distributed_steps import given
from neuroshard.distributed import pipeline
from neuroshard.errors import TensorError
from support.batch import from_features
from support.cache_simulation import simulate

STEPS = 12
ROWS = 600


def problem_of(context, optimizer, type="f32", groups=1, catch_up=False):
    optimizer = ns.Optimizer(optimizer, stochastic_rounding=type != "f32", catch_up=catch_up)
    tables = [ns.Table("a", ROWS, 12, type=type, optimizer=optimizer),
              ns.Table("b", 90, 8, optimizer=ns.Optimizer("rowwise_adagrad", weight_decay=0.25)), ns.Table("c", 20, 4)]
    features = [ns.Feature("a0", "a", "sum", 3), ns.Feature("a1", "a", "mean", 3),
                ns.Feature("b0", "b", "mean", 3), ns.Feature("c0", "c", "sum", 3)]
    return ns.ShardingProblem(tables=tables, features=features, batch=16 * context.size,
                              topology=f"{groups}x{context.size // groups}x{context.devices}")


def plan_of(ranks, cache_rows=0, policy="lru", groups=1, tier="ssd"):
    """Table a whole on the last rank, b cut by columns, c on all; a and b in the tier if they have a
    cache. In several groups a is cut by rows over all ranks, and its results go by relay."""
    def shard(table, rows, cols, device, **rest):
        if not cache_rows:
            return ns.Shard(table=table, rows=rows, cols=cols, devices=device, **rest)
        most = -(-(rows[1] - rows[0]) // 32) * 32
        return ns.Shard(table=table, rows=rows, cols=cols, devices=device, tier=tier,
                        cache_rows=min(cache_rows, most), cache_policy=policy, **rest)
    part = ROWS // ranks
    pieces = [shard("a", (0, ROWS), (0, 12), ranks - 1)] if groups == 1 else [
        shard("a", (rank * part, (rank + 1) * part), (0, 12), rank, route="relay")
        for rank in range(ranks)]
    return ns.Plan(device_count=ranks, shards=[
        *pieces, shard("b", (0, 90), (0, 4), 0), shard("b", (0, 90), (4, 8), ranks - 1),
        ns.Shard(table="c", rows=(0, 20), cols=(0, 4), devices=tuple(range(ranks)))])


def parts_of(context, problem):
    generator = context.generator("batches")
    return [random_parts(problem, [9 + rank for rank in range(context.size)], generator)
            for _ in range(STEPS)]


def train(context, problem, plan, parts, depth):
    """Losses, whole tables, and the module."""
    tables = context.make(plan, problem)
    losses = []
    local = [given(part[context.rank]) for part in parts]
    for batch in pipeline(local, {tables: lambda ids: ids}, depth=depth):
        pooled = tables(batch)
        loss = torch.cat(list(pooled.values()), 1).square().mean()
        losses.append(loss.item())
        loss.backward()
    return losses, whole(tables), tables


def case_same_bits(context, optimizer="adagrad", type="f32", cache="32", policy="lru", depth="2",
                   groups="1", tier="ssd", catch_up=""):
    groups = int(groups)
    problem = problem_of(context, optimizer, type, groups, bool(catch_up))
    parts = parts_of(context, problem)
    memory = train(context, problem, plan_of(context.size, groups=groups), parts, 1)
    disk = train(context, problem, plan_of(context.size, int(cache), policy, groups, tier), parts,
                 int(depth))
    assert memory[0] == disk[0]
    assert_same(memory[1], disk[1])


# Of table "TYPE SHARE POLICY TIER" in the matrix, with caches of these percents of its rows.
SHARES = (5, 20, 50, 100)
MATRIX_ROWS, SAMPLES, IDS = 320, 4, 3


def matrix_problem(context, optimizer):
    """A table for each type, share, policy and tier."""
    names = [" ".join(map(str, one)) for one in itertools.product(
        ("f32", "f16", "bf16"), SHARES, ("lru", "lfu"), context.tiers)]
    tables = [ns.Table(name, MATRIX_ROWS, 8, type=name.split()[0], optimizer=ns.Optimizer(
        optimizer, stochastic_rounding=name.startswith("bf16"))) for name in names]
    return ns.ShardingProblem(tables=tables, features=[ns.Feature(name, name, "sum", IDS) for name in names],
                              batch=SAMPLES * context.size, topology=f"{context.size}x{context.devices}")


def matrix_plan(problem, ranks, cached):
    """Whole tables on one rank after the other."""
    shards = []
    for number, table in enumerate(problem.tables):
        _, share, policy, tier = table.name.split()
        sets = -(-MATRIX_ROWS * int(share) // 100 // 32)
        places = {"tier": tier, "cache_rows": 32 * sets, "cache_policy": policy} if cached else {}
        shards.append(ns.Shard(name=table.name, table=table.name, rows=(0, MATRIX_ROWS), cols=(0, 8),
                               devices=number % ranks, **places))
    return ns.Plan(device_count=ranks, shards=shards)


def drawn_parts(context, problem, draw, steps):
    """Local batches, of SAMPLES each, whose rows are drawn uniformly or by Zipf 1.1."""
    generator = context.generator(draw)
    heat = torch.ones(MATRIX_ROWS)
    if draw == "zipf":
        heat /= torch.arange(1, MATRIX_ROWS + 1) ** 1.1

    def one_feature():
        ids = heat.multinomial(SAMPLES * IDS, replacement=True, generator=generator)
        return ids, torch.full((SAMPLES,), IDS), None
    return [[from_features([one_feature() for _ in problem.features], "i64", False)
             for _ in range(context.size)] for _ in range(steps)]


def case_matrix(context, optimizer, draw, steps="100"):
    """Tables of all types with caches of all sizes, policies and tiers: losses, weights and states have
    the bits of tables in device memory, and figures are those of a simulation."""
    problem = matrix_problem(context, optimizer)
    parts = drawn_parts(context, problem, draw, int(steps))
    memory = train(context, problem, matrix_plan(problem, context.size, False), parts, 1)
    lower = train(context, problem, matrix_plan(problem, context.size, True), parts, 2)
    assert memory[0] == lower[0]
    assert_same(memory[1], lower[1])
    plan = lower[2].plan
    for number, table in enumerate(problem.tables):
        shard, = plan.shards_of(table.name)
        found = lower[2].caches().get(shard.name)
        if found is None:
            assert context.rank not in shard.devices
            continue
        batches = [[row for part in one for row in part.feature(number)[0].tolist()] for one in parts]
        cache = simulate(batches, shard.cache_rows, shard.cache_policy, 2)
        assert (found.batches, found.rows, found.hits, found.written) == (
            len(parts), cache.rows, cache.hits, cache.written), (table.name, found)
        assert found.most_spilled == cache.most_spilled, (table.name, found)


def assert_same(one, other):
    for name, (weights, states) in one.items():
        assert torch.equal(weights, other[name][0]), name
        assert all(map(torch.equal, states, other[name][1])), name


def case_figures(context, cache="32", policy="lru", depth="2", tier="ssd"):
    """Hits, fetches and write-backs of table a are those of a simulation."""
    problem = problem_of(context, "sgd")
    parts = parts_of(context, problem)
    plan = plan_of(context.size, int(cache), policy, tier=tier)
    tables = train(context, problem, plan, parts, int(depth))[2]
    run = tables.save_run(context.folder / f"run-{context.name}.json".replace("/", "-"))
    tables.reset_phases()
    raises(ValueError, "no step was trained", lambda: tables.save_run(context.folder / "none.json"))
    batches = [[row for feature in (0, 1) for part in one for row in part.feature(feature)[0].tolist()]
               for one in parts]
    cache = simulate(batches, int(cache), policy, int(depth))
    name = next(one.name for one in tables.plan.shards if one.table == "a")
    if context.rank == context.size - 1:
        found = tables.caches()[name]
        assert found.batches == STEPS
        assert (found.rows, found.hits) == (cache.rows, cache.hits), found
        assert found.written == cache.written, (found, cache.written)
        assert found.fetched == cache.rows - cache.hits > 0
        assert found.wait_ms > 0
        assert (run.caches[name].rows, run.caches[name].hits) == (found.rows / STEPS,
                                                                  found.hits / STEPS)
    else:
        assert name not in tables.caches() and name in run.caches
    assert run.steps == STEPS and len(run.devices) == context.size
    assert all(one["fetch"] > 0 and one["backward"] > 0 for one in run.devices[-1:])


GPU_PAGE_BYTES, STAGING_BYTES = 2 << 20, 8 << 20


def emulated_bytes(rank):
    """What is taken of the memory of a rank's emulated GPU, and pinned of the host's."""
    driver = ctypes.CDLL(str(Path(os.environ["NEUROSHARD_BUILD_DIR"]) / "lib" / "libneuroshard_emulator.so"))
    gpu, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(gpu), rank) == 0
    assert driver.cuCtxPushCurrent_v2(gpu) == 0
    assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    assert driver.cuCtxPopCurrent_v2(ctypes.byref(gpu)) == 0
    driver.nse_pinned_bytes.restype = ctypes.c_int64
    return torch.tensor([total.value - free.value, driver.nse_pinned_bytes()])


def taken(context, problem, plan, parts):
    """Bytes of the emulated GPU and pinned bytes of the host that open tables take, and those that steps add; the GPU's
    pages are as large as those of GPUs."""
    os.environ["NEUROSHARD_EMULATOR_GRANULARITY"] = str(GPU_PAGE_BYTES)
    before = emulated_bytes(context.rank)
    tables = context.make(plan, problem)
    opened = emulated_bytes(context.rank)
    for part in parts:
        sum(value.sum() for value in tables(given(part[context.rank])).values()).backward()
    stepped = emulated_bytes(context.rank)
    tables.close()
    del os.environ["NEUROSHARD_EMULATOR_GRANULARITY"]
    return (opened - before).tolist(), (stepped - opened).tolist()


def case_memory(context, tier):
    """Row caches take of a GPU what the plan says, and pass their rows through as much as it says."""
    names = ("adam", "rowwise_adagrad")
    problem = ns.ShardingProblem(
        tables=[ns.Table(name, 60_000, 16, optimizer=name) for name in names],
        features=[ns.Feature(name, name, "sum", 3, 3) for name in names],
        batch=8 * context.size, topology=f"{context.size}x{context.devices}")
    parts = random_parts(problem, [8] * context.size, context.generator())
    plans = [ns.Plan(device_count=context.size, shards=[
        ns.Shard(table=name, rows=(0, 60_000), cols=(0, 16), devices=context.size - 1, **places)
        for name in names]) for places in ({}, {"tier": tier, "cache_rows": 40_000})]
    planned = [ns.inspect(problem, plan).memory for plan in plans]
    (whole_bytes, whole_step), (cached_bytes, cached_step) = (
        taken(context, problem, plan, [parts] * 3) for plan in plans)
    held, cached = (one.devices[context.rank] for one in planned)
    if context.rank < context.size - 1:
        assert (whole_bytes, whole_step) == (cached_bytes, cached_step) and held == cached
        return
    # 40,000 rows of 64 bytes are two pages, and of 4 bytes one.
    assert cached.weights_bytes == (3 * 2 + 2 + 1) * GPU_PAGE_BYTES + STAGING_BYTES
    assert cached_bytes[0] - whole_bytes[0] == (
        cached.weights_bytes - STAGING_BYTES - held.weights_bytes - held.optimizer_state_bytes)
    more = cached_step[0] - whole_step[0] - STAGING_BYTES
    assert 0 <= more <= 16 << 10, more  # places of ids, and what kernels are told
    # Of the host's, rows of 192 and 80 bytes and 16 bytes a place are not pinned.
    assert cached_bytes[1] == whole_bytes[1]
    assert STAGING_BYTES <= cached_step[1] <= planned[1].host_bytes[0] - 60_000 * (192 + 80) - 2 * 40_000 * 16


def case_shards(context, tier="ssd"):
    """What is written to local_shards() is what the next step reads, also one that was sent ahead."""
    problem = problem_of(context, "sgd")
    parts = parts_of(context, problem)
    tables = context.make(plan_of(context.size, 64, tier=tier), problem)
    local = [given(part[context.rank]) for part in parts]
    sent = None
    for number, batch in enumerate(local[:4]):
        pending = sent or tables.start(batch)
        sent = tables.start(local[number + 1])
        for shard in tables.local_shards():
            shard.weights.fill_(number + 1)
        pooled = pending.wait()
        counts = parts[number][context.rank].feature(0)[1].diff().float()
        assert torch.equal(pooled["a0"], counts[:, None].expand(-1, 12) * (number + 1)), number
        sum(value.sum() for value in pooled.values()).backward()
    sent.wait()


def case_read_in_a_step(context, tier="ssd"):
    """Tables that are read, or written to, between a forward and its backward lose no update."""
    problem = problem_of(context, "adagrad")
    parts = parts_of(context, problem)
    runs = []
    for plan in (plan_of(context.size), plan_of(context.size, 64, tier=tier)):
        tables = context.make(plan, problem)
        for number, part in enumerate(parts):
            pooled = tables(given(part[context.rank]))
            if number % 3 == 1:
                for shard in tables.local_shards():
                    shard.weights[0].add_(0.25)
            elif number % 3 == 2:
                whole(tables)
            torch.cat(list(pooled.values()), 1).square().mean().backward()
        runs.append(whole(tables))
    assert_same(*runs)


def case_checkpoint(context, tier="ssd"):
    """A checkpoint of tables in a lower tier loads into device memory and back; training goes on with
    the same bits."""
    problem = problem_of(context, "adam")
    parts = parts_of(context, problem)
    plans = [plan_of(context.size, 64, tier=tier), plan_of(context.size)]
    reference = train(context, problem, plans[1], parts, 1)[1]
    tables = None
    for number in range(3):
        loaded = context.make(plans[number % 2], problem, seed=number)
        if tables is not None:
            path = context.folder / f"{context.name}-{number}".replace("/", "-")
            ns.distributed.save(path, {"tables": tables})
            ns.distributed.load(path, {"tables": loaded})
        tables = loaded
        if number == 0:
            first = context.make(plans[1], problem)
            for own, other in zip(tables.local_shards(), first.local_shards(), strict=True):
                own.weights.copy_(other.weights)
        for part in parts[4 * number:4 * number + 4]:
            pooled = tables(given(part[context.rank]))
            torch.cat(list(pooled.values()), 1).square().mean().backward()
    assert_same(whole(tables), reference)


def case_errors(context):
    problem, plan = problem_of(context, "sgd"), plan_of(context.size, 64)
    raises(ValueError, "tier_directory: expected a directory, found '/nowhere'",
           lambda: context.make(plan, problem, tier_directory="/nowhere"))
    raises(ValueError, "cannot create the file of shard",
           lambda: context.make(plan, problem, tier_directory="/proc"))
    large = ns.ShardingProblem(tables=[ns.Table("large", 4 * 10**9, 128)], features=[ns.Feature("f", "large", "sum", 3)],
                               batch=16 * context.size, topology=f"{context.size}x{context.devices}")
    shard = ns.Shard(name="large", table="large", rows=(0, 4 * 10**9), cols=(0, 128), devices=0, tier="ssd", cache_rows=32)
    text = raises((ValueError, ns.distributed.GroupError), 'shard "large" needs 1953125.00 MiB in directory',
                  lambda: context.make(ns.Plan(device_count=context.size, shards=[shard]), large))
    assert "MiB left: No space left on device" in text
    tables = context.make(plan, problem)
    tables.close()
    raises(TensorError, "closed", tables.caches)
