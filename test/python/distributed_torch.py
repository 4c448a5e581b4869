"""Cases: torch's own machinery around the module: compile, export, profiler, copies, opcheck."""

import copy
import json
import pickle

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import neuroshard as ns
from distributed_context import raises, whole
from distributed_models import make_plan, random_parts
from distributed_steps import Model, given, small

SIZES = (4, 4, 3, 6)


class Weighted(torch.nn.Module):
    """Looks weighted features up; the weights want gradients."""

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
    """Losses, gradients of weights, and tables after steps whose rate changes."""
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
    """Compiled steps do what steps do."""
    plain, compiled = train(context, None, kind), train(context, backend, kind)
    for number, (one, other) in enumerate(zip(plain, compiled, strict=True)):
        if backend == "inductor":  # has sums of its own
            torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-4)
        else:
            assert torch.equal(one, other), f"value {number}: {one} became {other}"


def case_export(context, kind):
    """An exported program finds the tables by their name, also those of a later opening."""
    module, problem_and_plan = MODELS[kind]
    problem, plan = problem_and_plan(context.size)
    generator = context.generator(kind)
    first, second = (random_parts(problem, [size] * context.size, generator)[context.rank]
                     for size in (4, 7))
    tables = context.make(plan, problem, name="exported")
    model = module(tables).eval()
    features = len(problem.features)
    batch = torch.export.Dim("batch", min=2, max=4096)
    ids = torch.export.Dim("ids", min=2)
    shapes = ({0: ids}, {0: features * batch + 1}, {0: ids})[:len(first.tensors())]
    program = torch.export.export(model, tuple(first.tensors()), dynamic_shapes=shapes)
    assert "neuroshard.embeddings_wait" in str(program.graph)
    path = context.folder / f"{kind}-{context.rank}.pt2"
    torch.export.save(program, path)
    expected = model(*second.tensors())
    tables.close()
    loaded = torch.export.load(path).module()
    raises(ValueError, 'no open model named "exported"', lambda: loaded(*second.tensors()))
    context.make(plan, problem, name="exported")
    assert torch.equal(loaded(*second.tensors()), expected)


def case_overlap(context):
    """The ids travel while the dense part runs. What start() itself waits for is the exchange of
    sizes that comes before."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    part = random_parts(problem, [2000] * context.size, context.generator())[context.rank]
    matrix = torch.ones(256, 256)
    list(tables(given(part)).values())
    torch.distributed.barrier()
    with torch.profiler.profile() as profile:
        with torch.profiler.record_function("start"):
            pending = tables.start(given(part))
        with torch.profiler.record_function("dense"):
            for _ in range(200):
                matrix = (matrix @ matrix).softmax(1)
        pending.wait()
    path = context.folder / f"trace-{context.rank}.json"
    profile.export_chrome_trace(str(path))
    spans = sorted((one["ts"], one["ts"] + one["dur"], one["name"]) for one in
                   json.loads(path.read_text())["traceEvents"]
                   if one.get("ph") == "X" and "dur" in one)
    start, dense = (next(one for one in spans if one[2] == name) for name in ("start", "dense"))
    sizes, ids, *_ = (one for one in spans if "all_to_all" in one[2])
    assert start[0] <= sizes[0] <= start[1] and sizes[0] < ids[0], f"{start} {sizes} {ids}"
    assert ids[0] < dense[1] and dense[0] < ids[1] < dense[1], f"{start} {dense} {ids}"


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
    """start keeps to its schema; the fake kernels of all three give the shapes and types of the
    real ones."""
    problem, plan = weighted(context.size)
    tables = context.make(plan, problem, 0.0)
    ids, offsets, weights = random_parts(problem, [4] * context.size,
                                         context.generator())[context.rank].tensors()
    ops, token = torch.ops.neuroshard, torch.zeros(())

    def step(token, ids, offsets, weights):
        ticket = ops.embeddings_start(tables.name, token, ids, offsets, weights)
        results = ops.embeddings_wait(tables.name, token, ticket, ids, offsets, weights, None)
        gradients = [torch.ones_like(one) for one in results]
        return [ticket, *results,
                ops.embeddings_update(tables.name, token, ticket, gradients, ids)]

    torch.library.opcheck(ops.embeddings_start, (tables.name, token, ids, offsets, weights),
                          test_utils="test_schema")
    real = step(token, ids, offsets, weights)
    assert token == 1
    with FakeTensorMode() as mode:
        fake = step(*map(mode.from_tensor, (token, ids, offsets, weights)))
    assert tables.step == 1
    for one, other in zip(real, fake, strict=True):
        assert (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)


def case_closed(context):
    """A closed module says that it is; closing again does nothing."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    part = random_parts(problem, [2] * context.size, context.generator())[context.rank]
    results = tables(given(part))
    tables.close()
    tables.close()
    for work in (lambda: tables(given(part)), lambda: tables.start(given(part)), tables.phases,
                 lambda: tables.step, tables.local_shards, tables.state_dict,
                 sum(one.sum() for one in results.values()).backward):
        raises(ValueError, "closed", work)
