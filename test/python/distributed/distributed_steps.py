"""Cases: what a training loop does with a module, in every allowed order."""

import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import neuroshard as ns
from distributed_context import raises, whole
from distributed_models import joined, make_plan, make_problem, random_parts
from distributed_training import Training
from neuroshard._group.watched_group import connecting_limit
from neuroshard.errors import TensorError
from support import matrix

BUFFERS = 2  # the kind of torch.ops.neuroshard.memory_bytes


def small(ranks, optimizer="sgd", groups=1, **rest):
    """Three tables, cut by rows and columns, by columns, and replicated; four features. In several
    groups, the first is routed by relay."""
    tables = [ns.Table("a", 40, 8, optimizer=optimizer), ns.Table("b", 30, 12, optimizer=optimizer),
              ns.Table("c", 20, 4, optimizer=optimizer)]
    features = [ns.Feature("a0", "a", "sum", 3), ns.Feature("b0", "b", "mean", 3),
                ns.Feature("a1", "a", "mean", 3), ns.Feature("c0", "c", "sum", 3)]
    problem = ns.ShardingProblem(tables=tables, features=features, batch=16,
                                 topology=f"{groups}x{ranks // groups}xCPU@4GiB", **rest)
    plan = make_plan(problem, ["rows_and_columns", "columns", "replicated"], ranks, 1)
    if groups > 1:
        shards = [one.replace(route="relay") if one.table == "a" else one for one in plan.shards]
        plan = plan.replace(shards=shards)
    return problem, plan


def given(part):
    return ns.distributed.Jagged(*part.tensors())


def three_steps(context, groups=1):
    """Two equal collections, and three inputs of different batches for them."""
    problem, plan = small(context.size, groups=groups)
    generator = context.generator()
    inputs = [given(random_parts(problem, [2 + one] * context.size, generator)[context.rank])
              for one in range(3)]
    return context.make(plan, problem), context.make(plan, problem), inputs


class Model(torch.nn.Module):
    """A linear layer over all features."""

    def __init__(self, tables):
        super().__init__()
        self.tables = tables
        self.top = torch.nn.Linear(32, 1)
        with torch.no_grad():
            self.top.weight.copy_(torch.linspace(-1, 1, 32))
            self.top.bias.fill_(0.25)

    def forward(self, ids, offsets):
        pooled = self.tables((ids, offsets))
        return self.top(torch.cat(list(pooled.values()), 1)).squeeze(1)


class Reference:
    """The same model without shards, by torch in float64 on the global batch."""

    def __init__(self, problem, tables, optimizer):
        self.problem = problem
        self.bags = {name: torch.nn.EmbeddingBag.from_pretrained(
            weights.double(), freeze=False, include_last_offset=True, sparse=optimizer == "adam")
            for name, (weights, _) in tables.items()}
        self.top = Model(None).top.double()
        parameters = [bag.weight for bag in self.bags.values()]
        self.sums = [torch.zeros(len(one)).double() for one in parameters]
        self.optimizer = {"sgd": torch.optim.SGD, "rowwise_adagrad": torch.optim.SGD,
                          "adagrad": lambda p, lr: torch.optim.Adagrad(p, lr, eps=1e-8),
                          "adam": torch.optim.SparseAdam}[optimizer](parameters, lr=0.0625)
        self.rowwise = optimizer == "rowwise_adagrad"
        self.dense = torch.optim.SGD(self.top.parameters(), lr=0.0625)

    def forward(self, batch):
        pooled = []
        for number, feature in enumerate(self.problem.features):
            ids, offsets, _ = batch.feature(number)
            bag = self.bags[feature.table]
            bag.mode = feature.pooling
            pooled.append(bag(ids.long(), offsets))
        return self.top(torch.cat(pooled, 1)).squeeze(1)

    def step(self):
        if self.rowwise:
            for total, weight in zip(self.sums, self.optimizer.param_groups[0]["params"]):
                total += weight.grad.square().mean(1)
                weight.grad /= (total.sqrt() + 1e-8)[:, None]
        for one in (self.optimizer, self.dense):
            one.step()
            one.zero_grad()


def case_convention(context, optimizer, division="1"):
    """Steps with loss = local sum x ranks / global batch equal unsharded ones with the mean over
    the global batch, under DistributedDataParallel and schedulers. Without the division, tables
    learn so from local sum / global batch."""
    problem, plan = small(context.size, optimizer)
    tables = context.make(plan, problem, 0.0625, gradient_division=division == "1")
    reference = Reference(problem, whole(tables), optimizer)
    model = Model(tables)
    assert [name for name, _ in model.named_parameters()] == ["top.weight", "top.bias"]
    step = DistributedDataParallel(model) if division == "1" else model
    dense = torch.optim.SGD(model.parameters(), lr=0.0625)
    schedules = [torch.optim.lr_scheduler.StepLR(one, 2, 0.5)
                 for one in (tables.optimizer, reference.optimizer)]
    generator = context.generator()
    for number in range(5):
        sizes = torch.randint(0 if number else 1, 6, (context.size,), generator=generator).tolist()
        sizes[number % context.size] += 1
        parts = random_parts(problem, sizes, generator)
        labels = torch.randn(sum(sizes), generator=generator)
        own = labels.split(sizes)[context.rank]
        part = parts[context.rank]
        factor = context.size if division == "1" else 1
        loss = (step(part.ids, part.offsets) - own).square().sum() * factor / sum(sizes)
        loss.backward()
        if division == "0":
            for one in model.parameters():
                dist.all_reduce(one.grad)
        (reference.forward(joined(problem, parts)) - labels.double()).square().mean().backward()
        for one in (dense, tables.optimizer, reference):
            one.step()
        dense.zero_grad()
        tables.optimizer.zero_grad()
        for one in schedules:
            one.step()
    assert tables.learning_rate == 0.0625 / 4
    # Adam divides a gradient by its size, and so also the rounding of one whose terms cancel.
    atol = 1e-3 * 0.0625 if optimizer == "adam" else 2e-6
    for name, (weights, _) in whole(tables).items():
        torch.testing.assert_close(weights.double(), reference.bags[name].weight.data, rtol=1e-5,
                                   atol=atol, msg=lambda text, name=name: f"{name}: {text}")
    torch.testing.assert_close(model.top.weight.double(), reference.top.weight, rtol=1e-5,
                               atol=2e-6)


def case_modes(context):
    """eval(), no_grad() and requires_grad_(False) update nothing; steps without a backward leave nothing behind."""
    problem, plan = small(context.size, "adam")
    tables = context.make(plan, problem)
    part = random_parts(problem, [4] * context.size, context.generator())[context.rank]
    before = whole(tables)
    with torch.no_grad():
        looked_up = tables(given(part))
    tables.eval()
    for value, other in zip(tables(given(part)).values(), looked_up.values()):
        assert torch.equal(value, other) and not value.requires_grad and not other.requires_grad
    tables.train()
    assert tables.requires_grad_(False) is tables
    assert not any(one.requires_grad for one in tables(given(part)).values())
    tables.requires_grad_()

    def forward_only():
        assert all(one.requires_grad for one in tables(given(part)).values())
        tables.start(given(part))
        with torch.no_grad():
            tables(given(part))

    def held():
        return torch.ops.neuroshard.memory_bytes(tables.name, BUFFERS)

    for _ in range(3):
        forward_only()
    least = held()
    for _ in range(30):
        forward_only()
    # Threads of Gloo may give a buffer back a little later, so a few more may be in use; steps
    # that are kept would each hold a page or more.
    assert held() - least < 30 * 4096, f"{held()} bytes after 33 steps, {least} after 3"
    assert tables.step == 0
    for name, (weights, states) in whole(tables).items():
        assert torch.equal(weights, before[name][0])
        assert all(map(torch.equal, states, before[name][1]))
    sum(one.sum() for one in tables(given(part)).values()).backward()
    assert tables.step == 1
    assert not torch.equal(whole(tables)["a"][0], before["a"][0])
    sums = problem.replace(features=[one.replace(pooling="sum", weighted=True, needs_weight_gradient=True)
                                     for one in problem.features])
    weighted = context.make(plan, sums)
    part = random_parts(sums, [4] * context.size, context.generator())[context.rank]
    weights = part.weights.clone().requires_grad_()
    for nothing_learns in (weighted.eval, lambda: weighted.train().requires_grad_(False)):
        nothing_learns()
        assert not any(one.requires_grad for one in weighted((part.ids, part.offsets, weights)).values())


def case_orders(context):
    """Two forwards before two backwards, in either order; a second backward is refused."""
    problem, plan = small(context.size, "adam")
    training = Training(context, plan, problem)
    generator = context.generator()
    for order in ((0, 1), (1, 0)):
        parts = [random_parts(problem, [3] * context.size, generator) for _ in order]
        outputs = [training.forward(one)[0] for one in parts]
        for number in order:
            training.backward(parts[number], outputs[number], [], generator)
    results, _ = training.forward(parts[0])
    loss = sum(one.sum() for one in results)
    loss.backward(retain_graph=True)
    raises(ValueError, "a backward runs once for each forward", loss.backward)
    training.updates += 1
    training.step(parts[1], generator)


def case_learning_rate(context, backend=""):
    """The learning rate at the update counts, also if it changed since the forward, in compiled
    steps, and for a step whose successor was updated first."""
    problem, plan = small(context.size)
    tables, other = (context.make(plan, problem, rate) for rate in (1.0, 0.25))
    schedule = torch.optim.lr_scheduler.StepLR(tables.optimizer, step_size=1, gamma=0.5)
    model, reference = Model(tables), Model(other)
    step = model
    if backend:
        torch._dynamo.reset()
        step = torch.compile(model, backend=backend, fullgraph=True)
    generator = context.generator()

    def to_quarter(number):
        if number == 0:
            tables.set_learning_rate(0.25)
        elif number == 1:
            tables.optimizer.param_groups[0]["lr"] = 0.25
        else:
            tables.set_learning_rate(0.5)
            schedule.step()

    for number in range(3):
        part = random_parts(problem, [4] * context.size, generator)[context.rank]
        tables.set_learning_rate(1.0)
        loss = step(*part.tensors()).square().sum()
        expected = reference(*part.tensors()).square().sum()
        to_quarter(number)
        loss.backward()
        expected.backward()
        for name, (weights, _) in whole(tables).items():
            assert torch.equal(weights, whole(other)[name][0]), f"step {number}: {name}"
    tables.optimizer.param_groups[0]["lr"] = float("inf")
    loss = step(*part.tensors()).sum()
    raises(ValueError, "learning_rate", loss.backward)
    assert tables.step == 3


def case_pending(context):
    """start() and wait() called apart give the same results, in the caller's order."""
    tables, _, inputs = three_steps(context)
    expected = [list(tables(one).values()) for one in inputs]
    pending = [tables.start(one) for one in inputs]
    torch.ones(64, 64) @ torch.ones(64, 64)
    for number in (1, 2, 0):
        got = list(pending[number].wait().values())
        assert all(map(torch.equal, got, expected[number])), number
        raises(TensorError, "have been taken", pending[number].wait)
    dropped = tables.start(inputs[0])
    del dropped
    dropped = tables.start(inputs[0])
    dropped.look_up()
    del dropped
    sum(one.sum() for one in tables.start(inputs[1]).wait().values()).backward()
    assert tables.step == 1


def case_other_orders(context, groups="1"):
    """Ranks may ask for results in different orders, and drop some."""
    tables, _, inputs = three_steps(context, int(groups))
    expected = [list(tables(one).values()) for one in inputs]

    def check(pending, number):
        assert all(map(torch.equal, pending.wait().values(), expected[number])), number

    pending = [tables.start(one) for one in inputs]
    for number in range(3) if context.rank else (2, 0, 1):
        check(pending[number], number)
    pending = [tables.start(one) for one in inputs]
    if context.rank == 0:
        pending[0] = None
    else:
        check(pending[0], 0)
    for number in (1, 2):
        check(pending[number], number)
    for _ in range(3):  # whose results are under way on all ranks
        looked_up = tables.start(inputs[0])
        looked_up.look_up()
        if context.rank != 0:
            check(looked_up, 0)
        del looked_up
    sum(one.sum() for one in tables(inputs[2]).values()).backward()
    assert tables.step == 1


def case_dropped_on_one_rank(context, groups="1", thread=""):
    """A rank may drop a lookup whose results the others wait for before they start the next, in
    any thread."""
    tables, _, inputs = three_steps(context, int(groups))
    expected = [list(tables(one).values()) for one in inputs]
    for number in (0, 1, 2, 0):
        pending = tables.start(inputs[number])
        if context.rank != number % context.size:
            assert all(map(torch.equal, pending.wait().values(), expected[number])), number
        held = [pending]
        del pending
        if thread:
            other = threading.Thread(target=held.clear)
            other.start()
            other.join()
        del held
    sum(one.sum() for one in tables(inputs[1]).values()).backward()
    assert tables.step == 1


def case_dropped_looked_up(context, groups="1"):
    """The others need a rank that drops a looked-up step as a relay of its results, even if it
    starts nothing later."""
    tables, _, inputs = three_steps(context, int(groups))
    expected = [list(tables(one).values()) for one in inputs]
    pending = tables.start(inputs[0])
    pending.look_up()
    if context.rank == 0:
        other = threading.Thread(target=[pending].clear)
        del pending
        other.start()
        other.join()
    else:
        assert all(map(torch.equal, pending.wait().values(), expected[0]))
    dist.barrier()


def case_late(context):
    """A slow rank is waited for as long as the timeout of the caller's group says, and longer than
    connecting may take."""
    tables, _, inputs = three_steps(context)
    if context.rank == 0:
        time.sleep(connecting_limit(context.size).total_seconds() + 1)
    sum(one.sum() for one in tables(inputs[0]).values()).backward()
    assert tables.step == 1


def case_looked_up(context):
    """Results are of the tables at look_up(), whatever other steps do before wait()."""
    tables, other, inputs = three_steps(context)

    def loss(results):
        return sum(one.square().sum() for one in results.values())

    first = loss(tables(inputs[0]))
    pending = [tables.start(one) for one in inputs[1:]]
    before = list(other(inputs[1]).values())
    pending[0].look_up()
    pending[0].look_up()
    first.backward()
    loss(other(inputs[0])).backward()
    pending[1].look_up()
    after = list(other(inputs[2]).values())
    results = pending[0].wait()
    assert all(map(torch.equal, results.values(), before))
    loss(results).backward()
    assert all(map(torch.equal, pending[1].wait().values(), after))
    raises(TensorError, "have been taken", pending[1].look_up)
    assert tables.step == 2


def case_two_collections(context):
    """Two collections in one model train as each does alone."""
    problems = [small(context.size, "adagrad"), small(context.size, "sgd")]
    generator = context.generator()
    parts = [[random_parts(problem, [3] * context.size, generator)[context.rank]
              for problem, _ in problems] for _ in range(3)]

    def loss(tables, part):
        return sum(one.square().sum() for one in tables(given(part)).values())

    together, alone = ([context.make(plan, problem) for problem, plan in problems]
                       for _ in range(2))
    for one in parts:
        sum(map(loss, together, one)).backward()
        for tables, part in zip(alone, one):
            loss(tables, part).backward()
    for one, other in zip(together, alone):
        for name, (weights, states) in whole(one).items():
            assert torch.equal(weights, whole(other)[name][0]), name
            assert all(map(torch.equal, states, whole(other)[name][1])), name


def case_subgroups(context):
    """Each half of the ranks has a model of its own, independent of the other half."""
    halves = [list(range(one, context.size, 2)) for one in (0, 1)]
    groups = [dist.new_group(half) for half in halves]
    mine = context.rank % 2
    ranks = len(halves[mine])
    problem = make_problem(3 if mine else 4, ranks, unpooled=bool(mine))
    plan = make_plan(problem, ["rows_and_columns", "rows", "columns", "table_wise"] * 2, ranks,
                     matrix.seed())
    training = Training(context, plan, problem, groups[mine])
    generator = context.generator(mine)
    for _ in range(2 + mine):
        training.step(random_parts(problem, [3] * ranks, generator), generator)
    assert training.module.process_group is groups[mine]


def case_searched(context):
    """The planner's own plan, for problems whose statistics make it cut tables."""
    problem = make_problem(5, context.size)
    plan = ns.distributed.plan(problem)
    assert len(set(context.gather(plan.to_json()))) == 1
    training = Training(context, plan, problem)
    generator = context.generator()
    for _ in range(2):
        training.step(random_parts(problem, [3] * context.size, generator), generator)


def case_unread_result(context):
    """Results that the loss does not read have zero gradients."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    part = random_parts(problem, [20] * context.size, context.generator())[context.rank]
    before = whole(tables)
    tables(given(part))["b0"].sum().backward()
    after = whole(tables)
    assert [torch.equal(after[name][0], before[name][0]) for name in "abc"] == [True, False, True]
