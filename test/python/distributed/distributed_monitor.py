"""Cases: a monitor measures the ids of a run, and says what another plan would bring."""

import warnings

import torch
import torch.distributed as dist

import neuroshard as ns
from distributed_context import raises
from distributed_models import make_plan
from neuroshard.errors import TensorError

EVERY, BATCHES, LOCAL = 6, 3, 32


def problem_of(context):
    return ns.ShardingProblem(
        tables=[ns.Table(f"t{number}", 2000, 16, optimizer="adagrad") for number in range(4)],
        features=[ns.Feature(f"f{number}", f"t{number}", mean_pooling=2) for number in range(4)],
        batch=LOCAL * context.size, topology=f"{context.size}xCPU@4GiB")


def drifted(context, step):
    """Ids of a step: many of the first two features, few of the others."""
    generator = context.generator(f"{step} {context.rank}")
    return {f"f{number}": torch.randint(2000, (LOCAL, pooling), generator=generator)
            for number, pooling in enumerate((60, 50, 1, 1))}


def train(tables, batch):
    sum(one.sum() for one in tables(batch).values()).backward()


def opened(context):
    """Tables of which the first two are on rank 0 and the others on the last."""
    problem = problem_of(context)
    plan = ns.Plan(device_count=context.size, shards=[
        ns.Shard(table=f"t{number}", rows=(0, 2000), cols=(0, 16),
                 devices=0 if number < 2 else context.size - 1) for number in range(4)])
    return context.make(plan, problem), plan


def case_advice(context):
    """The statistics are those of the sampled steps, the costs those of inspect()."""
    tables, plan = opened(context)
    monitor = ns.distributed.PlanMonitor(tables, every=EVERY, batches=BATCHES, horizon_steps=1e6)
    seen = []
    for step in range(EVERY):
        batch = drifted(context, step)
        train(tables, batch)
        assert monitor.step(batch) is None
        seen.append(batch)
    advice = monitor.wait()
    assert monitor.wait() is None
    texts = context.gather((str(advice), advice.plan.to_json(), advice.problem.to_json()))
    assert texts == [texts[0]] * context.size
    by_name = {feature.name: feature for feature in advice.problem.features}
    assert [by_name[f"f{number}"].mean_pooling for number in range(4)] == [60, 50, 1, 1]
    sampled = torch.cat([torch.cat([batch["f2"] for batch in rank]).flatten()
                         for rank in context.gather(seen[-BATCHES:])])
    expected = round(torch.unique(sampled).numel() / 2000, 9)
    access = advice.problem.table("t2").access
    assert access.batch == LOCAL * context.size
    reached = [point.row_share for point in access.row_mass if point.lookup_share >= 1]
    assert reached and min(reached) >= expected
    assert advice.step_ms == ns.inspect(advice.problem, plan).cost_ms
    assert advice.new_step_ms == ns.inspect(advice.problem, advice.plan).cost_ms < advice.step_ms
    assert advice.steps_to_pay_off == advice.move_ms / (advice.step_ms - advice.new_step_ms)
    assert tables.plan is plan and tables.step == EVERY
    figures = tables.reshard(advice.plan, advice.problem)
    assert 0 < figures.bytes <= 1.02 * advice.bytes
    # From the new plan there is nothing to gain; found while training goes on.
    found = []
    for step in range(EVERY, 40 * EVERY):
        batch = drifted(context, step)
        train(tables, batch)
        if one := monitor.step(batch):
            found.append(one)
            break
    assert len(found) == 1
    assert found[0].tables == 0 and found[0].steps_to_pay_off is None, str(found[0])
    assert "no better plan was found" in str(found[0])
    monitor.close()


def case_no_advice(context):
    """A search that fails warns on all ranks; one for a plan that is not in use any more is dropped;
    wrong arguments."""
    tables, plan = opened(context)
    raises(TypeError, "tables: expected a module with sharded tables, got: None", lambda: ns.distributed.PlanMonitor(None))
    for options, kind, text in (({"every": 2, "batches": 3}, ValueError, "at most `every`"),
                                ({"every": 0}, ValueError, "every: expected a number of steps from 1, got: 0"),
                                ({"sead": 1}, TypeError, "sead: expected an option of neuroshard.plan; did you mean 'seed'?"),
                                ({"horizon_steps": -1}, ValueError, "horizon_steps: expected a number"),
                                ({"warm_start": plan}, TypeError, "the monitor's own"),
                                ({"every": 5 + context.rank, "batches": 1}, ns.distributed.GroupError,
                                 "another every")):
        raises(kind, text, lambda options=options: ns.distributed.PlanMonitor(tables, **options))
    batch = drifted(context, 0)
    failing = ns.distributed.PlanMonitor(tables, every=1, batches=1, algorithm="none such")
    assert failing.step(batch) is None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert failing.wait() is None
    assert len(told) == 1 and "none such" in str(told[0].message), told
    assert repr(ns.distributed.PlanMonitor(tables, every=3)) == "PlanMonitor(every=3, batches=3; 0 steps seen)"
    monitor = ns.distributed.PlanMonitor(tables, every=1, batches=1)
    monitor.step(batch)
    tables.reshard(make_plan(tables.problem, ["columns"] * 4, context.size, 3))
    assert monitor.wait() is None
    tables.reshard(plan, process_group=dist.new_group())
    raises(TensorError, "make a new PlanMonitor", lambda: monitor.step(batch))


def case_other_ids(context):
    """Ids out of range are measured as they count, and are not counted twice; those of dynamic tables are
    no rows."""
    problem = problem_of(context)
    plan = make_plan(problem, ["table_wise"] * 4, context.size, 3)
    tables = context.make(plan, problem, out_of_range="drop")
    monitor = ns.distributed.PlanMonitor(tables, every=1, batches=1)
    batch = drifted(context, 0)
    batch["f0"][0, 0] = -1
    train(tables, batch)
    monitor.step(batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.wait()
    assert tables.ids_out_of_range == 1
    dynamic = context.make(plan, problem, dynamic_ids={"t0": ns.DynamicIds()})
    raises(TensorError, "ids of tables with dynamic ids are no rows",
           lambda: ns.distributed.PlanMonitor(dynamic))


def case_wrong_ids(context):
    """Ids that are none on one rank are an error on all; the monitor goes on."""
    tables, _ = opened(context)
    monitor = ns.distributed.PlanMonitor(tables, every=2, batches=2, horizon_steps=1e6)
    mine = context.rank == context.size - 1
    kind, text = (TensorError, "4 * batch + 1 values, found shape (4,)") if mine else (
        ns.distributed.GroupError, f"rank {context.size - 1}: PlanMonitor.step() failed")
    ids = torch.zeros(3, dtype=torch.int64)
    raises(kind, text, lambda: monitor.step((ids, torch.arange(4)) if mine else drifted(context, 0)))
    for step in range(4):
        monitor.step(drifted(context, step))
    monitor.close()
