"""Plans for serving: a step of mode inference has the forward terms of a training step and nothing else, and devices
hold no states and no gradients."""

import random

import pytest

import neuroshard as ns
from neuroshard.errors import CostModelError, InvalidProblem, PlanningError

TOPOLOGIES = ("4xCPU@1GiB", "2x2xCPU@1GiB", "4xH200", "2x4xA100-80GB")


def random_problem(rng, topology, **rest):
    tables = [ns.Table(f"t{number}", rng.randint(50, 20_000), 4 * rng.randint(1, 32), rng.choice(("f32", "f16")))
              for number in range(rng.randint(3, 9))]
    features = [ns.Feature(f"f{number}", rng.choice(tables).name, rng.choice(("sum", "mean", "none")),
                           rng.randint(1, 20), presence=rng.choice((1.0, 0.5)))
                for number in range(rng.randint(3, 12))]
    return ns.ShardingProblem(tables=tables, features=features, topology=topology,
                              batch=ns.Batch(rng.choice((64, 1000)), wire_type=rng.choice(("f32", "bf16"))), **rest)


def random_plan(rng, problem):
    """Tables whole, by columns, by rows, or on all devices."""
    devices, shards = problem.topology.device_count, []
    for table in problem.tables:
        kind = rng.choice(("whole", "columns", "rows", "replicated"))
        one, other = rng.sample(range(devices), 2)
        middle = 4 * rng.randint(1, max(1, table.dim // 4 - 1))
        if kind == "columns" and middle < table.dim:
            cuts = [((0, table.rows), (0, middle), one), ((0, table.rows), (middle, table.dim), other)]
        elif kind == "rows":
            cuts = [((0, 20), (0, table.dim), one), ((20, table.rows), (0, table.dim), other)]
        else:
            on = range(devices) if kind == "replicated" else one
            cuts = [((0, table.rows), (0, table.dim), on)]
        shards += [ns.Shard(table=table.name, rows=rows, cols=cols, devices=on) for rows, cols, on in cuts]
    return ns.Plan(device_count=devices, shards=shards)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_step_has_the_forward_terms_of_training(topology):
    rng = random.Random(topology)
    for _ in range(6):
        problem = random_problem(rng, topology)
        plan = random_plan(rng, problem)
        objective = ns.Objective("step", dense_bottom_ms=0.01, pipeline_depth=1)
        training, inference = (ns.inspect(one, plan, objective=objective) for one in (problem, problem.served()))
        forward, parts = training.breakdown, inference.breakdown
        for name in ("input_ms", "fetch_ms", "max_forward_ms", "exposed_forward_communication_ms", "dense_ms",
                     "fixed_ms"):
            assert getattr(parts, name) == getattr(forward, name), name
        assert parts.max_backward_ms == parts.backward_communication_ms == 0
        assert inference.cost_ms == pytest.approx(
            training.cost_ms - forward.max_backward_ms - forward.backward_communication_ms)
        assert inference.lower_bound_ms <= inference.cost_ms * (1 + 1e-9)
        for device, other in zip(parts.devices, forward.devices):
            assert (device.backward_bytes, device.forward_bytes) == (0, other.forward_bytes)
        for own, other in zip(inference.memory.devices, training.memory.devices):
            assert (own.weights_bytes, own.ids_bytes, own.forward_bytes) == (
                other.weights_bytes, other.ids_bytes, other.forward_bytes)
            assert own.backward_bytes == own.optimizer_state_bytes == 0
        for kind, taken in inference.buffers.items():
            is_backward = kind in ("gradients", "received_gradients", "relayed_gradients", "sort", "norms",
                                   "sample_weights")
            assert taken == ((0,) * len(taken) if is_backward else training.buffers[kind]), kind


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_plans_are_made_for_lookups(topology):
    """None is worse than what is planned for training, and the numbers of a search are those of its plan."""
    rng = random.Random(topology)
    problem = random_problem(rng, topology)
    problem = problem.replace(tables=[one.replace(optimizer="adam") for one in problem.tables])
    served = problem.served()
    for_lookups, for_training = ns.plan(served), ns.plan(problem)
    assert for_lookups.cost_ms == pytest.approx(ns.inspect(served, for_lookups.plan).cost_ms)
    other = for_training.plan.replace(table_fingerprint="")  # of tables with other optimizers
    assert for_lookups.cost_ms <= ns.inspect(served, other).cost_ms * (1 + 1e-9)
    assert not any("backward" in line for line in for_lookups.explanation)
    assert any("in lookups" in line for line in for_lookups.explanation)


def test_rows_are_only_read():
    """A cache of rows fetches rows of lower tiers and writes none back."""
    problem = ns.ShardingProblem(tables=[ns.Table("t", 1_000_000, 64)], features=[ns.Feature("f", "t", mean_pooling=50)],
                                 batch=4096, topology="1xH200")
    plan = ns.Plan(device_count=1, shards=[ns.Shard(table="t", rows=(0, 1_000_000), cols=(0, 64), devices=0,
                                                    tier="ssd", cache_rows=320)])
    depth = ns.Objective("step", pipeline_depth=1)
    training, inference = (ns.inspect(one, plan, objective=depth).breakdown for one in (problem, problem.served()))
    assert 0 < inference.fetch_ms < 0.6 * training.fetch_ms


def test_what_fits_served_need_not_fit_trained():
    problem = ns.ShardingProblem(
        tables=[ns.Table("t", 1_000_000, 128, optimizer="adam")], features=[ns.Feature("f", "t")], batch=64,
        topology="1xCPU@1200MiB", constraints=ns.Constraints(tables=[ns.TableRule("t", allowed_kinds=["table_wise"])]))
    with pytest.raises(PlanningError):
        ns.plan(problem)
    assert ns.plan(problem.served()).memory.peak_bytes < 1200 << 20


def test_problems_say_their_mode():
    problem = random_problem(random.Random(1), "2xCPU").served()
    assert ns.ShardingProblem.from_json(problem.to_json()) == problem and '"mode": "inference"' in problem.to_json()
    adam = [one.replace(optimizer="adam") for one in problem.tables]
    with pytest.raises(InvalidProblem, match=r"tables\[0\].optimizer: mode inference trains no table"):
        problem.replace(tables=adam)
    with pytest.raises(InvalidProblem, match="batch.backwards: mode inference has none"):
        problem.replace(batch=problem.batch.replace(backwards=2))
    with pytest.raises(ValueError, match="mode: expected one of training, inference"):
        problem.replace(mode="serving")
    assert problem.replace(mode="training", tables=adam, batch=problem.batch.replace(backwards=3)).served() == problem
    with pytest.raises(CostModelError, match="gives one number for forward and backward, which is not that of inference"):
        ns.plan(problem, cost_model="reference", objective="published")
