"""Cases: a running model moves to another plan. What it holds then has the bits of a checkpoint that
was written before and loaded under the new plan."""

import contextlib
import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import neuroshard as ns
from distributed_context import raises, whole
from distributed_models import KINDS, in_tiers, joined, make_plan, make_problem, random_parts
from distributed_steps import Model, given, small
from neuroshard._artifact.dtypes import DTYPES
from neuroshard._artifact.optimizer_states import ROW_STATES, STATE_NAMES
from neuroshard.distributed._reshard import transfer
from neuroshard.errors import TensorError
from support import matrix

SAMPLES = 12  # of a global batch
STEPS = 2  # between two moves


def random_kinds(problem, chooser):
    return [chooser.choice(KINDS) for _ in problem.tables]


def step(tables, samples, rank, ranks):
    """Trains by this rank's part of a global batch; its results."""
    size = len(samples) // ranks
    part = given(joined(tables.problem, samples[rank * size:(rank + 1) * size]))
    results = tables(part)
    sum(one.float().square().sum() for one in results.values()).backward()
    return torch.cat([one.detach().float() for one in results.values()], 1)


def same_shards(one, other):
    """Whether this rank holds the same bits in both."""
    def by_place(tables):
        return sorted(tables.local_shards(), key=lambda shard: (shard.table, shard.rows, shard.cols))
    for mine, theirs in zip(by_place(one), by_place(other), strict=True):
        assert (mine.table, mine.rows, mine.cols) == (theirs.table, theirs.rows, theirs.cols)
        assert torch.equal(mine.weights, theirs.weights), mine.name
        assert mine.states.keys() == theirs.states.keys()
        for name, state in mine.states.items():
            assert torch.equal(state, theirs.states[name]), (mine.name, name)
    assert one.step == other.step and one.learning_rate == other.learning_rate


def reload(context, tables, plan, problem, group=None, old_group=None):
    """The tables, by way of a checkpoint, under another plan; None outside of its group."""
    name = f"{context.name} {tables.step if tables else 0}".replace(":", "-").replace("/", "-")
    path = context.gather(str(context.folder / name))[0]
    if tables:
        ns.distributed.save(path, {"tables": tables}, process_group=old_group)
        tables.close()
    dist.barrier()
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        return None
    loaded = context.make(plan, problem, 1.0, process_group=group)
    ns.distributed.load(path, {"tables": loaded}, process_group=group)
    return loaded


def needed_bytes(problem, old, new, old_ranks, new_ranks):
    """By rank, the bytes of what it holds under the new plan and not under the old one, element by
    element. For exact semantics. old_ranks: of the job, the devices' ranks under the old plan."""
    needed = [0] * max(*(rank + 1 for rank in old_ranks), *(rank + 1 for rank in new_ranks))
    for table in problem.tables:
        kind = table.optimizer.kind
        per_element = DTYPES[table.type].itemsize
        of_rows = len(ROW_STATES.get(kind, ()))
        per_element += 4 * (len(STATE_NAMES[kind]) - of_rows)
        for rank in new_ranks:
            held, wanted = torch.zeros(2, table.rows, table.dim, dtype=torch.bool)
            for mask, plan, ranks in ((held, old, old_ranks), (wanted, new, new_ranks)):
                for shard in plan.shards_of(table.name):
                    if rank in [ranks[device] for device in shard.devices]:
                        mask[slice(*shard.rows), slice(*shard.cols)] = True
            needed[rank] += per_element * int((wanted & ~held).sum())
            if of_rows:
                needed[rank] += 4 * of_rows * int((wanted.any(1) & ~held.any(1)).sum())
    return needed


def check_figures(context, figures, needed=None):
    assert figures.received_bytes == figures.needed_bytes
    assert sum(figures.sent_bytes) == figures.bytes
    assert needed is None or list(figures.received_bytes) == needed, (figures, needed)
    assert figures.seconds > 0
    assert context.gather(figures) == [figures] * context.size


def case_blocks(context, number):
    """Random plans, whose pieces travel in many blocks."""
    usual, transfer.BLOCK_BYTES = transfer.BLOCK_BYTES, 48
    try:
        case_random(context, number)
    finally:
        transfer.BLOCK_BYTES = usual


def case_random(context, number, tiers="", moves="2"):
    """Random plans of all kinds, one after the other."""
    chooser = random.Random(f"{matrix.seed()} {context.name}")
    problem = make_problem(int(number), context.size)
    if tiers:
        problem = problem.replace(topology=f"{context.size}x{context.devices}")

    def draw(place):
        plan = make_plan(problem, random_kinds(problem, chooser), context.size,
                         f"{context.name} {place} {matrix.seed()}")
        return in_tiers(plan, place, context.tiers) if tiers else plan

    moved = context.make(draw("first"), problem)
    generator = context.generator("batches")
    same_bits = context.make(moved.plan, problem)
    for place in range(int(moves)):
        for tables in (moved, same_bits):
            generator.manual_seed(place)
            step(tables, random_parts(problem, [1] * SAMPLES, generator), context.rank, context.size)
        before, after = moved.plan, draw(place)
        figures = moved.reshard(after)
        assert moved.plan is after and moved.step == place + 1
        exact = problem.optimizer_semantics == "exact"
        ranks = range(context.size)
        check_figures(context, figures,
                      needed_bytes(problem, before, after, ranks, ranks) if exact else None)
        same_bits = reload(context, same_bits, after, problem)
        same_shards(moved, same_bits)
    step(moved, random_parts(problem, [1] * SAMPLES, generator.manual_seed(9)), context.rank,
         context.size)
    step(same_bits, random_parts(problem, [1] * SAMPLES, generator.manual_seed(9)), context.rank,
         context.size)
    same_shards(moved, same_bits)


def case_semantics(context, source, target):
    """Row-wise states between semantics, and cuts elsewhere, are merged as checkpoints merge them."""
    def described(semantics, cuts):
        bounds = [0, *cuts, 24]
        problem = ns.ShardingProblem(
            tables=[ns.Table("a", 50, 24, optimizer="rowwise_adagrad")], batch=16,
            features=[ns.Feature("f", "a", mean_pooling=3)],
            topology=f"{context.size}xCPU@4GiB", optimizer_semantics=semantics)
        return problem, ns.Plan(device_count=context.size, optimizer_semantics=semantics, shards=[
            ns.Shard(table="a", rows=(0, 50), cols=cols, devices=number % context.size)
            for number, cols in enumerate(zip(bounds, bounds[1:]))])
    problem, plan = described(source, (8, 12))
    moved, other = context.make(plan, problem), context.make(plan, problem)
    for tables in (moved, other):
        generator = context.generator("batches")
        for _ in range(STEPS):
            step(tables, random_parts(problem, [1] * SAMPLES, generator), context.rank, context.size)
    after, cut_elsewhere = described(target, (12, 20))
    check_figures(context, moved.reshard(cut_elsewhere, after))
    same_shards(moved, reload(context, other, cut_elsewhere, after))


def groups_of(context):
    """The world and its first three ranks."""
    return dist.group.WORLD, dist.new_group([0, 1, 2])


def phases(context, plan_of):
    """(group, number of ranks, problem, plan) of 4, 3 and 4 ranks."""
    for place, (group, ranks) in enumerate(zip((0, 1, 0), (4, 3, 4))):
        yield groups_of(context)[group], ranks, *plan_of(ranks, place)


def move(context, tables, plan, problem, group):
    """The module and the figures of a move; this rank may leave or join."""
    if tables is None:
        joined_module = ns.distributed.join_resharded(plan, problem, process_group=group, threads=1)
        context.modules.append(joined_module)
        return joined_module, None
    figures = tables.reshard(plan, problem, process_group=group)
    return (None if group is dist.GroupMember.NON_GROUP_MEMBER else tables), figures


def case_other_ranks(context, number):
    """4, 3 and 4 ranks in the middle of training, under random plans."""
    chooser = random.Random(f"{matrix.seed()} {context.name}")

    def plan_of(ranks, place):
        problem = make_problem(int(number), ranks)
        return problem, make_plan(problem, random_kinds(problem, chooser), ranks,
                                  f"{context.name} {place} {matrix.seed()}")

    moved = same_bits = schedule = old_group = None
    for place, (group, ranks, problem, plan) in enumerate(phases(context, plan_of)):
        if place == 0:
            moved, same_bits = context.make(plan, problem), context.make(plan, problem)
            first = moved
        else:
            left = context.rank == 3 and place == 1
            before = moved.plan if moved else None
            moved, figures = move(context, moved, plan, problem, group)
            same_bits = reload(context, same_bits, plan, problem, group, old_group)
            if left:
                assert moved is None
                raises(TensorError, "have been closed", first.local_shards)
                raises(TensorError, "have been closed", lambda: first.set_learning_rate(0.5))
            if figures and problem.optimizer_semantics == "exact":
                assert list(figures.received_bytes) == (needed_bytes(
                    problem, before, plan, range(before.device_count), range(ranks)) + [0])[:4]
        old_group = group
        if moved is None:
            continue
        assert context.rank == 3 or moved is first
        same_shards(moved, same_bits)
        assert moved.process_group is group or place == 0
        schedule = torch.optim.lr_scheduler.ExponentialLR(moved.optimizer, 0.5) if place != 1 \
            and context.rank == 3 or place == 0 else schedule
        for number_of_step in range(STEPS):
            samples = random_parts(problem, [1] * SAMPLES,
                                   context.generator(f"{place} {number_of_step}"))
            assert torch.equal(*(step(one, samples, context.rank, ranks)
                                 for one in (moved, same_bits)))
            schedule.step()
            same_bits.set_learning_rate(moved.learning_rate)
        same_shards(moved, same_bits)
        assert moved.learning_rate == 0.125 * 0.5 ** (STEPS * (place + 1))
        assert moved.step == STEPS * (place + 1)


def whole_or_halves(ranks, place, problem):
    """Every other table in two halves by columns; where they are depends on `place`."""
    shards = []
    for number, table in enumerate(problem.tables):
        halves = [(0, 4), (4, table.dim)] if table.dim > 4 and number % 2 else [(0, table.dim)]
        shards += [ns.Shard(table=table.name, rows=(0, table.rows), cols=cols,
                            devices=(number + place + half) % ranks)
                   for half, cols in enumerate(halves)]
    return ns.Plan(device_count=ranks, shards=shards)


def case_never_moved(context):
    """Plans whose sums are added in the same order: the bits of a run that stayed on 4 ranks."""
    def plan_of(ranks, place):
        problem = make_problem(4, ranks)
        return problem, whole_or_halves(ranks, place, problem)

    stayed = moved = None
    for place, (group, ranks, problem, plan) in enumerate(phases(context, plan_of)):
        if place == 0:
            stayed, moved = (context.make(plan, problem, gradient_division=False) for _ in "ab")
        else:
            moved, _ = move(context, moved, plan, problem, group)
        for number in range(STEPS):
            samples = random_parts(problem, [1] * SAMPLES, context.generator(f"{place} {number}"))
            expected = torch.cat(context.gather(step(stayed, samples, context.rank, context.size)))
            own = step(moved, samples, context.rank, ranks) if moved else expected[:0]
            assert torch.equal(torch.cat(context.gather(own)), expected)
        tables = whole(moved, group) if moved else {}
        for name, (weights, states) in whole(stayed).items():
            if moved:
                assert torch.equal(tables[name][0], weights), name
                assert all(map(torch.equal, tables[name][1], states)), name


def case_settings(context):
    """What a module does with gradients moves with its tables, also to ranks that join; gradients that
    wait for an update are refused."""
    alone = dist.new_group([0])
    problem, plan = small(1, "adagrad")
    wide, wide_plan = small(context.size, "adagrad")
    groups = [{"tables": ["b"], "lr": 0.5}, {"lr": 0.25}]
    generator = context.generator()
    kept = random_parts(problem, [3], generator)[0]
    tables = context.make(plan, problem, groups, process_group=alone, update_every=2,
                          out_of_range="drop") if context.rank == 0 else None
    if tables:
        tables.freeze("c")
        sum(one.sum() for one in tables(given(kept)).values()).backward()
        raises(ValueError, "gradients wait for an update",
               lambda: tables.reshard(plan, problem, process_group=alone))
        tables.optimizer.zero_grad()
    tables, _ = move(context, tables, wide_plan, wide, dist.group.WORLD)
    assert tables.optimizer.groups == [{"tables": ["b"], "lr": 0.5}, {"tables": ["a", "c"], "lr": 0.25}]
    assert tables.frozen == ("c",)
    before = whole(tables)
    for number in range(2):
        part = random_parts(wide, [2] * context.size, generator)[context.rank]
        ids = part.ids.clone()
        ids[0] = 10**6
        sum(one.sum() for one in tables((ids, part.offsets)).values()).backward()
        assert tables.step == number and tables.ids_out_of_range == number + 1 + 0
    after = whole(tables)
    for name, (weights, _) in before.items():
        assert (name == "c") == torch.equal(weights, after[name][0]), name


def case_same_object(context):
    """DistributedDataParallel, a scheduler, a compiled model and an exported program go on."""
    problem, plan = small(context.size, "adagrad")
    tables, other = context.make(plan, problem, name="moves"), context.make(plan, problem)
    models = Model(tables), Model(other)
    steps = [DistributedDataParallel(one) for one in models]
    compiled = torch.compile(models[0], backend="eager")
    parts = random_parts(problem, [5] * context.size, context.generator())
    ids = parts[context.rank].tensors()
    program = torch.export.export(models[0].eval(), tuple(ids))
    models[0].train()
    schedules = [torch.optim.lr_scheduler.StepLR(one.optimizer, 1, 0.5) for one in (tables, other)]
    changed = make_plan(problem, ["columns", "rows", "table_wise"], context.size, 7)

    def train(model):
        loss = model(*ids).square().mean()
        loss.backward()
        return loss.item()

    assert train(steps[0]) == train(steps[1])
    with torch.no_grad():
        compiled(*ids)
    engine = tables._engine
    tables.reshard(changed)
    other = reload(context, other, changed, problem)
    models[1].tables = other
    assert tables._engine is not engine and (tables.name, tables.step) == ("moves", 1)
    for schedule in schedules:
        schedule.step()
    other.set_learning_rate(0.0625)
    assert tables.learning_rate == 0.0625
    assert train(steps[0]) == train(steps[1])
    same_shards(tables, other)
    with torch.no_grad():
        expected = models[1](*ids)
        assert torch.equal(compiled(*ids), expected)
        assert torch.equal(program.module()(*ids), expected)
    assert tables.phases()["ids_exchange"][1] > 0
    tables.reset_phases()
    raises(ValueError, "no step was trained", lambda: tables.save_run(context.folder / "none.json"))


def case_unpooled(context):
    """A collection without pooling: two ranks, one, and two again; the second has no tables then."""
    alone = dist.new_group([0])
    problem = make_problem(5, context.size, unpooled=True)
    tables = context.make(make_plan(problem, random_kinds(problem, random.Random(5)), context.size, 5),
                          problem)
    step_unpooled(tables, context, context.size)
    before = whole(tables)
    lone = problem.replace(topology="1xCPU@4GiB")
    moved, figures = move(context, tables, make_plan(lone, ["table_wise"] * 8, 1, 0), lone, alone)
    assert figures.received_bytes[1] == 0 and (moved is None) == (context.rank == 1)
    back = make_plan(problem, random_kinds(problem, random.Random(6)), context.size, 6)
    moved, _ = move(context, moved, back, problem, dist.group.WORLD)
    assert type(moved) is ns.ShardedEmbeddingCollection and moved.step == 1
    assert all(torch.equal(whole(moved)[name][0], weights) for name, (weights, _) in before.items())
    step_unpooled(moved, context, context.size)
    assert moved.step == 2


def step_unpooled(tables, context, ranks):
    part = random_parts(tables.problem, [3] * ranks, context.generator())[context.rank]
    sum(values.float().sum() for values, _ in tables(given(part)).values()).backward()


def case_planned(context):
    """Bytes are at most 1.02 times those that the planner says of its own change of a plan."""
    def problem_of(loads):
        return ns.ShardingProblem(
            tables=[ns.Table(f"t{number}", 4000 + 400 * number, 32, optimizer=optimizer)
                    for number, optimizer in enumerate(("adam", "sgd", "adagrad", "rowwise_adagrad",
                                                        "adam", "sgd"))],
            features=[ns.Feature(f"f{number}", f"t{number}", "sum", load)
                      for number, load in enumerate(loads)],
            batch=4096, topology=f"{context.size}xCPU@4GiB")
    before, after = problem_of([1] * 6), problem_of([80, 70, 60, 20, 10, 10])
    tables = context.make(make_plan(before, ["columns", "table_wise", "copies"] * 2, context.size, 1,
                                    idle=(2, 3)), before)
    result = ns.plan(after, warm_start=ns.WarmStart(previous=tables.plan, horizon_steps=1e9))
    plan = ns.Plan.from_json(context.gather(result.plan.to_json())[0])
    figures = tables.reshard(plan, after)
    expected = context.gather(result.migration.bytes)[0]
    assert expected > 0
    # Less, where a rank has the row-wise state of what comes to it with other columns of the rows.
    assert 0.95 * expected <= figures.bytes <= 1.02 * expected, (figures, result.migration)


class DenseTables:
    """Tables of small() as torch's AdamW trains them, on all samples of all ranks."""

    def __init__(self, problem, tables, ranks):
        self.problem, self.ranks = problem, ranks
        self.weights = {name: weights.clone().requires_grad_() for name, (weights, _) in whole(tables).items()}
        self.optimizer = torch.optim.AdamW(self.weights.values(), lr=1.0, eps=1e-10, weight_decay=0.25)

    def look_up(self, part):
        results = {}
        for number, one in enumerate(self.problem.features):
            ids, offsets, _ = part.feature(number)
            results[one.name] = torch.nn.functional.embedding_bag(
                ids, self.weights[one.table], offsets, mode=one.pooling, include_last_offset=True)
        return results

    def step(self, parts, rate):
        sum(result.square().sum() for part in parts for result in self.look_up(part).values()).backward()
        for weights in self.weights.values():
            weights.grad = torch.zeros_like(weights) if weights.grad is None else weights.grad / self.ranks
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()


def case_catch_up(context):
    """Rows that catch up are those of torch's dense AdamW: in steps, in evaluation and in updates from several
    backwards, in a checkpoint that another plan loads, and after a move."""
    problem, plan = small(context.size, ns.Optimizer("adamw", eps=1e-10, weight_decay=0.25, catch_up=True))
    tables = context.make(plan, problem)
    dense, generator = DenseTables(problem, tables, context.size), context.generator()

    def look_up(part):
        results = tables(given(part))
        for name, expected in dense.look_up(part).items():
            torch.testing.assert_close(results[name], expected, rtol=1e-4, atol=1e-5)
        return results

    for number in range(12):
        batches = [random_parts(problem, [1] * context.size, generator) for _ in range(2 if number % 3 == 2 else 1)]
        rate = 0.03125 * (1 + number % 3)
        tables.set_learning_rate(rate)
        with tables.accumulate() if len(batches) > 1 else contextlib.nullcontext():
            for parts in batches:
                sum(one.square().sum() for one in look_up(parts[context.rank]).values()).backward()
        dense.step(sum(batches, []), rate)
        if number % 4 == 1:
            tables.eval()
            with torch.no_grad():
                look_up(random_parts(problem, [2] * context.size, generator)[context.rank])
            tables.train()
        kinds = {4: ["columns", "replicated", "rows"], 8: ["copies", "rows", "table_wise"]}.get(number)
        if kinds and number == 4:
            tables = reload(context, tables, make_plan(problem, kinds, context.size, number), problem)
        elif kinds:
            tables.reshard(make_plan(problem, kinds, context.size, number))
    for name, (weights, [first, second]) in whole(tables).items():
        state = dense.optimizer.state[dense.weights[name]]
        for found, expected in ((weights, dense.weights[name].detach()), (first, state["exp_avg"]),
                                (second, state["exp_avg_sq"])):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
