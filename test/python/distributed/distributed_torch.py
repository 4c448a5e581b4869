"""Cases: the module with torch.compile, torch.export, the profiler, copies and opcheck."""

import contextlib
import copy
import io
import pickle
from unittest import mock

import torch
import torch.distributed as dist
import torch.utils.checkpoint
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict

import neuroshard as ns
from distributed_context import raises, whole
from distributed_models import exportable_parts, make_plan, random_parts
from distributed_steps import Model, given, small
from neuroshard.distributed._engine import Engine

SIZES = (4, 4, 3, 6)
# Of the exchanges of a first step, the first of which is that of sizes.
IDS, RESULTS = 2, 3


class Weighted(torch.nn.Module):
    """A model with weighted features, whose weights require gradients."""

    def __init__(self, tables):
        super().__init__()
        self.tables = tables

    def forward(self, ids, offsets, weights):
        pooled = self.tables(ns.distributed.Jagged(ids, offsets, weights.sigmoid()))
        return torch.cat(list(pooled.values()), 1).sum(1)


class Rows(torch.nn.Module):
    """One feature without pooling."""

    def __init__(self, tables):
        super().__init__()
        self.tables = tables

    def forward(self, ids, offsets):
        (values, _), = self.tables((ids, offsets)).values()
        return values.tanh().sum(1)


def weighted(ranks):
    problem = ns.ShardingProblem(
        tables=[ns.Table("a", 40, 8, optimizer="adam")], features=[
            ns.Feature("a0", "a", "sum", 3, weighted=True, needs_weight_gradient=True),
            ns.Feature("a1", "a", "sum", 3, weighted=True, needs_weight_gradient=True)],
        batch=16, topology=f"{ranks}xCPU@4GiB")
    return problem, make_plan(problem, ["rows_and_columns"], ranks, 1)


def unpooled(ranks):
    problem = ns.ShardingProblem(
        tables=[ns.Table("a", 40, 8, optimizer="adagrad")],
        features=[ns.Feature("a0", "a", "none", 3)], batch=16, topology=f"{ranks}xCPU@4GiB")
    return problem, make_plan(problem, ["rows"], ranks, 1)


MODELS = {"pooled": (Model, lambda ranks: small(ranks, "adam")), "weighted": (Weighted, weighted),
          "unpooled": (Rows, unpooled)}


def train(context, backend, kind):
    """Losses, gradients of weights and tables after steps with changing rates."""
    module, problem_and_plan = MODELS[kind]
    problem, plan = problem_and_plan(context.size)
    tables = context.make(plan, problem)
    step = module(tables)
    if backend:
        torch._dynamo.reset()
        step = torch.compile(step, backend=backend, fullgraph=True, dynamic=True)
    generator, found = context.generator(kind), []
    for number, size in enumerate(SIZES):
        tables.set_learning_rate(0.5 / (number + 1))
        part = random_parts(problem, [size] * context.size, generator)[context.rank]
        inputs = [one.clone().requires_grad_() if one.is_floating_point() else one
                  for one in part.tensors()]
        loss = step(*inputs).square().sum()
        loss.backward()
        found += [loss.detach(), *(one.grad for one in inputs if one.requires_grad)]
    assert tables.step == len(SIZES)
    for weights, states in whole(tables).values():
        found += [weights, *states]
    return found


def case_compile(context, backend, kind):
    """Compiled steps train as others do."""
    plain, compiled = train(context, None, kind), train(context, backend, kind)
    for number, (one, other) in enumerate(zip(plain, compiled, strict=True)):
        if backend == "inductor":  # has sums of its own
            torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-4)
        else:
            assert torch.equal(one, other), f"value {number}: {one} became {other}"


class Twice(torch.nn.Module):
    """A model that looks the same ids up twice, and others before."""

    def __init__(self, tables):
        super().__init__()
        self.tables = tables

    def rows(self, ids, offsets):
        return torch.cat(list(self.tables((ids, offsets)).values()), 1).float()

    def forward(self, ids, offsets):
        others = self.rows(ids.flip(0) % 2, offsets)
        return (self.rows(ids, offsets) * self.rows(ids, offsets).tanh() + others).sum(1)


class Broken(torch.nn.Module):
    """A model whose graph breaks while a lookup is under way, as an exchange of ids hides dense work."""

    def __init__(self, tables):
        super().__init__()
        self.tables = tables

    def forward(self, ids, offsets):
        pending = self.tables.start((ids, offsets))
        torch._dynamo.graph_break()
        return torch.cat(list(pending.wait().values()), 1).float().sin().sum(1)


def case_compiled_twice(context, backend, kind):
    """Compiled steps whose graphs have several lookups, or parts of one, train as others do, also with
    several under way before their backwards."""
    model = {"twice": Twice, "broken": Broken}[kind]
    problem, plan = small(context.size, "adagrad")
    part = random_parts(problem, [4] * context.size, context.generator(kind))[context.rank]
    found = []
    for compiles in (False, True):
        tables = context.make(plan, problem)
        step = model(tables)
        if compiles:
            torch._dynamo.reset()
            step = torch.compile(step, backend=backend, fullgraph=kind != "broken")
        for _ in range(2):
            losses = [step(*part.tensors()).square().sum() for _ in range(2)]
            sum(losses).backward()
        found.append((tables.step, whole(tables)))
    assert found[0][0] == found[1][0] == {"twice": 12, "broken": 4}[kind]
    for name, (weights, states) in found[0][1].items():
        for one, other in zip([weights, *states], [found[1][1][name][0], *found[1][1][name][1]]):
            torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)


def case_recomputed(context):
    """Activations that are computed again, also results of the module, train as those that are kept."""
    problem, plan = small(context.size, "adagrad")
    generator = context.generator()
    parts = [random_parts(problem, [4] * context.size, generator)[context.rank].tensors() for _ in range(4)]
    found = []
    for options in (None, {"use_reentrant": False}, {"use_reentrant": True}):
        tables = context.make(plan, problem, update_every=2)
        step = Model(tables)
        differentiable = torch.zeros((), requires_grad=True)  # without which reentrant ones have no backward
        for part in parts:
            result = step(*part) if options is None else torch.utils.checkpoint.checkpoint(
                lambda _, *given: step(*given), differentiable, *part, **options)
            result.square().sum().backward()
        assert tables.step == 2
        found.append(whole(tables))
    for one in found[1:]:
        for name, (weights, states) in one.items():
            assert torch.equal(weights, found[0][name][0]), name
            assert all(map(torch.equal, states, found[0][name][1])), name


def case_export(context, kind, out_of_range="error"):
    """An exported program finds the tables by their name, also those of a later opening."""
    module, problem_and_plan = MODELS[kind]
    problem, plan = problem_and_plan(context.size)
    generator = context.generator(kind)
    first, second = (exportable_parts(problem, [size] * context.size, generator)[context.rank]
                     for size in (4, 7))
    if out_of_range != "error":
        for part in (first, second):
            part.ids.mul_(3)
    tables = context.make(plan, problem, name="exported", out_of_range=out_of_range)
    model = module(tables).eval()
    features = len(problem.features)
    batch = torch.export.Dim("batch", min=2, max=4096)
    ids = torch.export.Dim("ids", min=2)
    shapes = ({0: ids}, {0: features * batch + 1}, {0: ids})[:len(first.tensors())]
    program = torch.export.export(model, tuple(first.tensors()), dynamic_shapes=shapes)
    assert "neuroshard.embeddings_wait" in str(program.graph)
    path = context.folder / f"{kind}-{context.rank}.pt2"
    torch.export.save(program, path)
    before = tables.ids_out_of_range
    expected = model(*second.tensors())
    assert (before, tables.ids_out_of_range > 0) == (0, out_of_range != "error")
    tables.close()
    loaded = torch.export.load(path).module()
    raises(ValueError, 'no open model named "exported"', lambda: loaded(*second.tensors()))
    context.make(plan, problem, name="exported")
    assert torch.equal(loaded(*second.tensors()), expected)


class HeldGroup(dist.ProcessGroup):
    """Passes exchanges on to a group. Before the ids it waits for keys of the store; before the
    results, which need the ids of all ranks, it sets a key. An exchange is receives, then sends."""

    def __init__(self, group, store, keys):
        super().__init__(group.rank(), group.size())
        self.group, self.store, self.keys, self.count = group, store, keys, 0
        self.receives = False
        cpu = torch.device("cpu")
        self._register_backend(cpu, dist.ProcessGroup.BackendType.GLOO, group._get_backend(cpu))

    def recv(self, tensors, source, tag):
        if not self.receives:
            self.receives = True
            self.count += 1
            if self.count == IDS:
                self.store.wait(self.keys)
            if self.count == RESULTS:
                self.store.set("arrived", "")
        return self.group.recv(tensors, source, tag)

    def send(self, tensors, destination, tag):
        self.receives = False
        return self.group.send(tensors, destination, tag)


@contextlib.contextmanager
def in_place_of(group, held):
    """Lookups of the group by its name find `held`."""
    groups = torch._C._distributed_c10d
    groups._unregister_process_group(group.group_name)
    groups._register_process_group(group.group_name, held)
    yield
    groups._unregister_process_group(group.group_name)
    groups._register_process_group(group.group_name, group)


def case_overlap(context):
    """The ids travel while the dense part runs: the last rank sends its own when all others are in
    theirs, and these stay in it until the last rank has everybody's. start() itself waits for the
    exchange of sizes, the first one, alone."""
    problem, plan = small(context.size)
    store = dist.PrefixStore("overlap", dist.distributed_c10d._get_default_store())
    last, keys = context.size - 1, [f"dense {rank}" for rank in range(context.size - 1)]
    groups, join = [], Engine.join

    def join_held(engine, name, folder, names, *rest, **options):
        inner = dist.distributed_c10d._resolve_process_group(names[0])
        groups.append(HeldGroup(inner, store, keys))
        with in_place_of(inner, groups[0]):
            join(engine, name, folder, names, *rest, **options)

    with mock.patch.object(Engine, "join", join_held if context.rank == last else join):
        tables = context.make(plan, problem)
    part = random_parts(problem, [20] * context.size, context.generator())[context.rank]
    pending = tables.start(given(part))
    if context.rank != last:
        store.set(keys[context.rank], "")
        store.wait(["arrived"])
    results = list(pending.wait().values())
    assert all(map(torch.equal, results, tables(given(part)).values()))

    # Of rows that are looked up before, wait() starts no exchange.
    pending = tables.start(given(part))
    pending.look_up()
    begun = [group.count for group in groups]
    assert all(count == 3 * RESULTS for count in begun)
    assert all(map(torch.equal, results, pending.wait().values()))
    assert begun == [group.count for group in groups]


def case_copies(context):
    """A module cannot be copied or pickled, and says so; its plan and problem can."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    for work in (lambda: copy.deepcopy(tables), lambda: pickle.dumps(tables),
                 lambda: copy.copy(tables)):
        raises(TypeError, "state_dict", work)
    assert pickle.loads(pickle.dumps(tables.plan)) == plan
    assert pickle.loads(pickle.dumps(tables.problem)).to_json() == problem.to_json()


def case_operators(context):
    """start follows its schema; the fake kernels of all operators give the shapes and types of the
    real ones."""
    problem, plan = weighted(context.size)
    tables = context.make(plan, problem, 0.0)
    inputs = list(random_parts(problem, [4] * context.size,
                               context.generator())[context.rank].tensors())
    ops, call = torch.ops.neuroshard, torch.empty(())

    def step(call, *inputs):
        ticket = ops.embeddings_start(tables.name, call, inputs)
        sent = ops.embeddings_lookup(tables.name, ticket)
        results = ops.embeddings_wait(tables.name, sent, inputs, None)
        gradients = [torch.ones_like(one) for one in results]
        anchor = ops.embeddings_anchor(tables.name, ticket, inputs, call)
        of_backward = ops.embeddings_gradients(tables.name, ticket, gradients, inputs)
        done = ops.embeddings_update(tables.name, ticket, [*gradients, *inputs])
        return [ticket, sent, *results, anchor, *of_backward, done]

    torch.library.opcheck(ops.embeddings_start, (tables.name, call, inputs),
                          test_utils="test_schema")
    real = step(call, *inputs)
    with FakeTensorMode() as mode:
        fake = step(*map(mode.from_tensor, (call, *inputs)))
    assert tables.step == 1
    for one, other in zip(real, fake, strict=True):
        assert (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)


def case_full_state(context, optimizer="rowwise_adagrad", semantics="exact"):
    """Whole tensors on one rank, which other plans load; names of the state as torch's own functions for
    states of models look for them."""
    problem, plan = small(context.size, optimizer, optimizer_semantics=semantics)
    plan = plan.replace(optimizer_semantics=semantics)
    tables = context.make(plan, problem)
    part = random_parts(problem, [3] * context.size, context.generator())[context.rank]
    sum(one.sum() for one in tables(given(part)).values()).backward()
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), tables)
    last = context.size - 1
    full = ns.distributed.full_state_dict(model, rank=last)
    assert (context.rank == last) == bool(full)
    [full] = [one for one in context.gather(full) if one]
    for name, (weights, states) in whole(tables).items():
        assert torch.equal(full[f"1.embedding_bags.{name}.weight"], weights)
        if semantics == "exact":
            assert torch.equal(full[f"1.embedding_bags.{name}.sum"].view(-1), states[0].view(-1))
    assert torch.equal(full["0.weight"], model[0].weight) or context.rank != last
    torch.save(full, io.BytesIO())
    state = get_model_state_dict(model)
    assert set(state) == set(full)
    set_model_state_dict(model, state)
    other = torch.nn.Sequential(torch.nn.Linear(2, 2), context.make(plan, problem, seed=9))
    other.load_state_dict(full)
    for name, (weights, states) in whole(other[1]).items():
        expected = whole(tables)[name]
        assert torch.equal(weights, expected[0]) and all(map(torch.equal, states, expected[1]))
    raises(ValueError, "rank: expected", lambda: ns.distributed.full_state_dict(model, rank=context.size))
    if context.size > 1:
        raises(ns.distributed.GroupError, "rank 1 has another argument rank than rank 0",
               lambda: ns.distributed.full_state_dict(model, rank=context.rank))


def case_closed(context):
    """A closed module says that it is; closing again does nothing."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    part = random_parts(problem, [2] * context.size, context.generator())[context.rank]
    results = tables(given(part))
    state = tables.state_dict()
    tables.close()
    tables.close()
    for work in (lambda: tables(given(part)), lambda: tables.start(given(part)), tables.phases,
                 tables.reset_phases, lambda: tables.step, lambda: setattr(tables, "step", 3),
                 lambda: tables.set_learning_rate(0.5), tables.local_shards, tables.state_dict,
                 lambda: tables.load_state_dict(state),
                 sum(one.sum() for one in results.values()).backward):
        raises((ValueError, RuntimeError), "closed", work)
