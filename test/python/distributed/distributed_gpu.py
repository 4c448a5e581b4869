"""Cases on emulated GPUs with Gloo. Most are the cases of CPUs."""

import importlib

import torch

import neuroshard as ns
from distributed_context import Context, raises, whole
from distributed_models import exportable_parts, make_plan, random_parts
from distributed_steps import given, small
from distributed_torch import MODELS
from distributed_training import Training, describe, local_sizes
from neuroshard.distributed._compile_cache import make_artifact
from support.artifact import EMULATED

OF_GPUS = {"device": "emulator"}


class GpuContext(Context):
    """Makes modules on emulated GPUs by default."""

    tiers = ("dram", "ssd")
    devices = "H200"

    def make(self, plan, problem, learning_rate=0.125, **options):
        return super().make(plan, problem, learning_rate, **{**OF_GPUS, **options})


def case_same(context, case, **options):
    """Runs a case of another module, MODULE/FUNCTION."""
    context.__class__ = GpuContext
    module, function = case.split("/")
    work = getattr(importlib.import_module(f"distributed_{module}"), f"case_{function}")
    work(context, **options)


def case_as_on_cpus(context, number, unpooled="0"):
    """Of the same weights both devices give the same bits; they train alike: GPUs add up the
    gradients of a row in chunks."""
    unpooled = unpooled == "1"
    context.tiers = ()
    problem, plan = describe(context, int(number), unpooled)
    modules = [context.make(plan, problem, seed=3, **OF_GPUS)]
    # The artifact has programs for both.
    artifact = make_artifact(plan, problem, EMULATED)
    modules.append(context.make(plan, problem, seed=3, artifact=artifact))
    generator = context.generator()
    for sizes in local_sizes(context.size, generator):
        one, other = map(whole, modules)
        (assert_near if modules[0].step else assert_same)(one, other)
        same_weights = modules[0].step == 0
        part = random_parts(problem, sizes, generator)[context.rank]
        weights = [[value.clone().requires_grad_() for value in part.tensors()[2:]]
                   for _ in modules]
        results = [list(module(ns.distributed.Jagged(*part.tensors()[:2], *own)).values())
                   for module, own in zip(modules, weights)]
        results = [[value[0] if unpooled else value for value in one] for one in results]
        for mine, theirs in zip(*results, strict=True):
            assert not same_weights or torch.equal(mine, theirs)
            allowed = tolerance(mine, problem.batch.wire_type)
            torch.testing.assert_close(mine, theirs, rtol=allowed, atol=allowed)
        for values in results:
            sum(value.float().square().sum() for value in values).backward()
        for mine, theirs in zip(*weights):
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=5e-2, atol=5e-2)


def tolerance(values, wire_type):
    """Weights are near alone, and sums in another order; halves round both."""
    return 1e-3 if values.dtype == torch.float32 and wire_type == "f32" else 2e-2


def assert_same(one, other):
    for name, (weights, states) in one.items():
        assert torch.equal(weights, other[name][0]), name
        assert all(map(torch.equal, states, other[name][1])), f"states of {name}"


def assert_near(one, other):
    """Equal within the rounding of bf16 tables after some steps."""
    for name, (weights, states) in one.items():
        for mine, theirs in zip((weights, *states), (other[name][0], *other[name][1]),
                                strict=True):
            size = max(1, mine.float().abs().max())
            assert (mine.float() - theirs.float()).abs().max() <= 2e-2 * size, name


def ragged(ranks, kind="rowwise_adagrad"):
    """A plan whose column shards are cut into different ranges of rows, two of them on one rank."""
    problem = ns.ShardingProblem(
        tables=[ns.Table("a", 40, 16, optimizer=kind)], features=[
            ns.Feature("a0", "a", "sum", 4), ns.Feature("a1", "a", "mean", 4)],
        batch=16, topology=f"{ranks}xCPU@4GiB")
    cuts = [((0, 40), (0, 4)), ((0, 13), (4, 8)), ((13, 40), (4, 8)), ((0, 25), (8, 16)),
            ((25, 31), (8, 16)), ((31, 40), (8, 16))]
    shards = [ns.Shard(table="a", rows=rows, cols=cols, devices=(number % ranks,))
              for number, (rows, cols) in enumerate(cuts)]
    return problem, ns.Plan(shards=shards, device_count=ranks)


def case_ragged(context, kind="rowwise_adagrad"):
    """Norms are summed for column shards with different ranges of rows and with equal ones."""
    context.__class__ = GpuContext
    for problem, plan in (ragged(context.size, kind), small(context.size, kind)):
        training = Training(context, plan, problem)
        generator = context.generator()
        for sizes in local_sizes(context.size, generator):
            training.step(random_parts(problem, sizes, generator), generator)


def case_checkpoint(context):
    """A checkpoint of one device loads on the other under another plan bit by bit, and training
    goes on."""
    problem, plan = small(context.size, "rowwise_adagrad")
    other_plan = make_plan(problem, ["columns", "rows", "table_wise"], context.size, 2)
    generator = context.generator()
    for first, second in (({}, OF_GPUS), (OF_GPUS, {})):
        saved = context.make(plan, problem, **first)
        for _ in range(2):
            learn(context, saved, problem, generator)
        path = context.folder / f"{context.name}-{len(first)}"
        ns.distributed.save(path, {"tables": saved})
        loaded = context.make(other_plan, problem, 0.5, seed=9, **second)
        ns.distributed.load(path, {"tables": loaded})
        assert loaded.step == 2 and loaded.learning_rate == saved.learning_rate
        assert_same(whole(saved), whole(loaded))
        learn(context, loaded, problem, generator)
        assert loaded.step == 3


def learn(context, tables, problem, generator):
    part = random_parts(problem, [4] * context.size, generator)[context.rank]
    sum(one.square().sum() for one in tables(given(part)).values()).backward()


def case_modes(context):
    """Without gradients nothing is updated; dropped steps leave nothing."""
    context.__class__ = GpuContext
    problem, plan = small(context.size, "adam")
    tables = context.make(plan, problem)
    part = random_parts(problem, [4] * context.size, context.generator())[context.rank]
    before = whole(tables)
    trained = tables(given(part))
    tables.eval()
    for value, other in zip(tables(given(part)).values(), trained.values()):
        assert torch.equal(value, other) and not value.requires_grad and other.requires_grad
    tables.train()
    tables.start(given(part))
    with torch.no_grad():
        tables(given(part))
    for name, (weights, states) in whole(tables).items():
        assert torch.equal(weights, before[name][0])
        assert all(map(torch.equal, states, before[name][1]))
    assert tables.phases()["results_exchange"][1] > 0 or context.size == 1


def case_devices(context):
    """Devices that are none, or not there, raise errors."""
    problem, plan = small(context.size, "adam")
    for wrong in ("x", "cpu:1", "mps", 3.5):
        raises(ValueError, 'device: expected "cpu", "cuda"',
               lambda wrong=wrong: context.make(plan, problem, device=wrong))
    if not torch.cuda.is_available():
        for wrong in ("cuda", "cuda:0", 0):
            raises(ValueError, 'this PyTorch sees 0 GPUs; device="emulator"',
                   lambda wrong=wrong: context.make(plan, problem, device=wrong))
    artifact = make_artifact(plan, problem)
    raises(ValueError, "", lambda: context.make(plan, problem, artifact=artifact, **OF_GPUS))
    text = raises(ns.distributed.GroupError, "another device than rank 0", lambda: context.make(
        plan, problem, **(OF_GPUS if context.rank else {}))) if context.size > 1 else ""
    assert set(context.gather(text)) == {text}


def case_export(context, kind):
    """An exported program finds the tables by their name."""
    context.__class__ = GpuContext
    module, problem_and_plan = MODELS[kind]
    problem, plan = problem_and_plan(context.size)
    generator = context.generator(kind)
    first, second = (exportable_parts(problem, [size] * context.size, generator)[context.rank]
                     for size in (4, 7))
    model = module(context.make(plan, problem, name="exported")).eval()
    batch = torch.export.Dim("batch", min=2, max=4096)
    ids = torch.export.Dim("ids", min=2)
    shapes = ({0: ids}, {0: len(problem.features) * batch + 1}, {0: ids})
    program = torch.export.export(model, tuple(first.tensors()),
                                  dynamic_shapes=shapes[:len(first.tensors())])
    assert "neuroshard.embeddings_wait" in str(program.graph)
    assert torch.equal(program.module()(*second.tensors()), model(*second.tensors()))
