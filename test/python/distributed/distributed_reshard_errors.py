"""Cases: moves to another plan that must be refused. The error comes on all ranks, and the tables go
on as they were."""

import torch
import torch.distributed as dist

import neuroshard as ns
from distributed_context import raises, whole
from distributed_models import make_plan, random_parts
from distributed_steps import given, small
from neuroshard.distributed import pipeline
from neuroshard.distributed._engine import Engine
from neuroshard.distributed._reshard.transfer import Transfer
from neuroshard.errors import GroupError, InvalidPlan, TensorError


def opened(context, **options):
    """Tables after a step, ids of another one, and a plan to move to."""
    problem, plan = small(context.size, "adagrad")
    tables = context.make(plan, problem, **options)
    part = given(random_parts(problem, [4] * context.size, context.generator())[context.rank])
    train(tables, part)
    return tables, part, make_plan(problem, ["columns", "rows", "table_wise"], context.size, 7)


def train(tables, part):
    sum(one.sum() for one in tables(part).values()).backward()


def check_usable(tables, part, other, before):
    """The tables have not changed, learn, and can move."""
    for name, (weights, states) in whole(tables).items():
        assert torch.equal(weights, before[name][0]), name
        assert all(map(torch.equal, states, before[name][1])), name
    train(tables, part)
    tables.reshard(other)
    assert tables.plan is other and tables.step == 2
    train(tables, part)


def case_refused(context):
    """Wrong arguments on all ranks."""
    tables, part, other = opened(context)
    problem, before = tables.problem, whole(tables)
    one = problem.tables[0]
    grown = problem.replace(tables=[one.replace(rows=41), *problem.tables[1:]])
    slower = problem.replace(tables=[one.replace(optimizer="adam"), *problem.tables[1:]])
    fewer = problem.replace(features=problem.features[1:])
    mean = problem.replace(features=[problem.features[0].replace(pooling="mean"),
                                     *problem.features[1:]])
    turned = problem.replace(features=problem.features[::-1])
    results = problem.replace(batch=problem.batch.replace(output_type="bf16"))
    wider = make_plan(problem.replace(topology=f"{context.size + 1}xCPU@4GiB"), ["table_wise"] * 3,
                      context.size + 1, 1)
    for kind, text, plan, more in (
            (TypeError, "plan: expected a Plan", "plan", ()),
            (TypeError, "problem: expected a ShardingProblem", other, ("problem",)),
            (TypeError, "process_group: expected what", other, (problem, "group")),
            (InvalidPlan, "table", ns.Plan(shards=other.shards[1:], device_count=context.size), ()),
            (InvalidPlan, "device", wider, ()),
            (TensorError, "table 'a' is 40 x 8, f32", other, (grown,)),
            (TensorError, "same tables: table 'a' is 40 x 8, f32, ", other, (slower,)),
            (TensorError, "feature 'a0' is of table 'a', pooling sum, without weights in use and absent",
             other, (fewer,)),
            (TensorError, "pooling sum, without weights in use and of table 'a', pooling mean", other, (mean,)),
            (TensorError, "the same features in the same order", other, (turned,)),
            (TensorError, "the same types: that of results is f32 in use and bf16 in it", other, (results,)),
            (GroupError, f"for {context.size + 1} devices, but the group that takes", wider,
             (problem.replace(topology=f"{context.size + 1}xCPU@4GiB"),))):
        raises(kind, text, lambda plan=plan, more=more: tables.reshard(plan, *more))
    raises(ValueError, "", lambda: tables.reshard(other, artifact=context.folder / "nothing"))
    raises(ValueError, "is open already",
           lambda: context.make(tables.plan, problem, name=tables.name))
    check_usable(tables, part, other, before)
    tables.close()
    raises(TensorError, "have been closed", lambda: tables.reshard(other))


def case_of_one_rank(context):
    """Wrong on the last rank alone: there the error itself, elsewhere one that names the rank."""
    tables, part, other = opened(context)
    before, odd = whole(tables), context.rank == context.size - 1
    last = f"rank {context.size - 1}"
    wrong = ns.Plan(shards=other.shards[1:], device_count=context.size)
    raises(InvalidPlan if odd else GroupError, "" if odd else f"{last}: moving to another plan was "
           "refused: InvalidPlan", lambda: tables.reshard(wrong if odd else other))
    raises(GroupError, f"{last} has another plan than rank 0",
           lambda: tables.reshard(tables.plan if odd else other))
    results = tables(part)
    if not odd:
        results = None
    raises(ValueError if odd else GroupError, "lookups that are not over: 1",
           lambda: tables.reshard(other))
    results = None
    usual = Engine.join
    Engine.join = without_memory if odd else usual
    try:
        raises(MemoryError if odd else GroupError, "no memory for tables",
               lambda: tables.reshard(other))
    finally:
        Engine.join = usual
    check_usable(tables, part, other, before)
    spare, part, other = opened(context)
    if odd:
        spare.close()
    raises(TensorError if odd else GroupError, "have been closed", lambda: spare.reshard(other))


def case_under_way(context):
    """Lookups, backwards and pipelines that are not over."""
    tables, part, other = opened(context)
    before = whole(tables)
    pending = tables.start(part)
    raises(ValueError, "lookups that are not over: 1; take their results", lambda:
           tables.reshard(other))
    results = pending.wait()
    raises(ValueError, "lookups that are not over: 1", lambda: tables.reshard(other))
    pending = results = None
    with torch.no_grad():
        results = tables(part)
    seen = 0
    for batch in pipeline([part, part], {tables: lambda ids: ids}):
        raises(TensorError, "pipeline sends ids of this module", lambda: tables.reshard(other))
        with torch.no_grad():
            assert all(map(torch.equal, tables(batch).values(), results.values()))
        seen += 1
    assert seen == 2
    check_usable(tables, part, other, before)


def without_memory(*_, **__):
    raise MemoryError("no memory for tables")


def case_broken(context):
    """A rank that fails while tables move ends the group with its error on all ranks."""
    tables, _, other = opened(context, process_group=dist.new_group())
    before = whole(tables)
    original = Transfer._exchange

    def fail(*_):
        raise MemoryError("no memory for a block")

    Transfer._exchange = fail if context.rank == 1 else original
    try:
        raises(GroupError, "rank 1: could not move the tables: no memory for a block",
               lambda: tables.reshard(other))
    finally:
        Transfer._exchange = original
    assert tables.plan is not other
    for name, (weights, _) in whole(tables).items():
        assert torch.equal(weights, before[name][0]), name


def case_groups(context):
    """Groups that overlap in part, ranks that are missing, and a rank that joins as if it stayed."""
    first, last = dist.new_group([0, 1, 2]), dist.new_group([1, 2, 3])
    pair, world = dist.new_group([2, 3]), dist.group.WORLD
    outside = dist.GroupMember.NON_GROUP_MEMBER
    problem, plan = small(3, "adagrad")
    problem4, plan4 = small(4, "adagrad")
    join = ns.distributed.join_resharded
    if context.rank == 3:
        raises(GroupError, "overlap in part", lambda: join(plan, problem, process_group=last))
        raises(ValueError, "this rank is not in it", lambda: join(plan, problem, process_group=first))
        raises(GroupError, "rank 0: moving to another plan was refused: InvalidPlan",
               lambda: join(plan4, problem4))
        raises(GroupError, "0 ranks came with tables to move", lambda: join(
            plan, problem, process_group=dist.new_group([3], use_local_synchronization=True)))
        tables = join(plan4, problem4, threads=1)
        context.modules.append(tables)
    else:
        tables = context.make(plan, problem, process_group=first)
        raises(ValueError if last is not outside else GroupError, "overlap in part",
               lambda: tables.reshard(plan, process_group=last))
        wrong = ns.Plan(shards=plan4.shards[1:], device_count=4)
        raises(InvalidPlan if context.rank == 0 else GroupError, "", lambda: tables.reshard(
            wrong if context.rank == 0 else plan4, problem4, process_group=world))
        tables.reshard(plan4, problem4, process_group=world)
    part = given(random_parts(problem4, [2] * 4, context.generator())[context.rank])
    train(tables, part)
    raises(GroupError, "the group that takes the tables has", lambda: tables.reshard(
        plan4, problem4, process_group=pair))
    train(tables, part)
    assert tables.step == 2
