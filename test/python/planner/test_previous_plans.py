"""inspect(previous=...) says what changing from one plan to another moves."""

import numpy
import pytest

import neuroshard as ns
from support.planning import small_problem

MODEL = {"cost_model": "roofline"}


def problem_of(topology="4xCPU"):
    """Tables without padding or state, so that an element is its bytes."""
    tables = [ns.Table("a", 3000, 64), ns.Table("b", 700, 32), ns.Table("c", 90, 16), ns.Table("d", 20, 8)]
    return small_problem(tables=tables, topology=topology,
                         features=[ns.Feature(f"f{one.name}", one.name, mean_pooling=9) for one in tables])


def held(problem, plan, device):
    """Of each table, which elements the device has."""
    found = {one.name: numpy.zeros((one.rows, one.dim), bool) for one in problem.tables}
    for shard in plan.shards_on(device):
        found[shard.table][slice(*shard.rows), slice(*shard.cols)] = True
    return found


def moved_bytes(problem, before, after):
    """Of each table the bytes that come to devices that did not hold them, element by element."""
    moved = {one.name: 0 for one in problem.tables}
    for device in range(after.device_count):
        old, new = held(problem, before, device), held(problem, after, device)
        for name in moved:
            moved[name] += 4 * int((new[name] & ~old[name]).sum())
    return {name: count for name, count in moved.items() if count}


@pytest.mark.parametrize("seed", range(6))
def test_bytes_that_move_are_those_that_devices_did_not_hold(seed):
    problem = problem_of()
    names = ("default", "torchrec", "threshold", "random", "dim", "published")
    before = ns.plan(problem, algorithm=names[seed], seed=seed, **MODEL).plan
    after = ns.plan(problem, algorithm="random", seed=seed + 7, **MODEL).plan
    migration = ns.inspect(problem, after, previous=before, **MODEL).migration
    expected = moved_bytes(problem, before, after)
    assert {one.table: one.bytes for one in migration.moves} == expected
    assert migration.bytes == sum(expected.values()) and (migration.move_ms > 0) == bool(expected)
    assert migration.previous_cost_ms == ns.inspect(problem, before, **MODEL).cost_ms
    back = ns.inspect(problem, after, previous=after, **MODEL).migration
    assert (back.bytes, back.moves, back.move_ms) == (0, (), 0)


def test_searches_say_the_same():
    problem = problem_of()
    before = ns.plan(problem, algorithm="dim", **MODEL).plan
    found = ns.plan(problem, warm_start=before, **MODEL)
    assert ns.inspect(problem, found.plan, previous=before, **MODEL).migration == found.migration


def test_a_previous_plan_may_be_of_more_devices_and_other_tables():
    problem = problem_of("2xCPU")
    wide = problem_of("4xCPU")
    before = ns.plan(wide, algorithm="dim", **MODEL).plan
    after = ns.plan(problem, **MODEL).plan
    migration = ns.inspect(problem, after, previous=before, **MODEL).migration
    assert migration.previous_cost_ms is None and "device" in migration.why_not_previous
    assert {one.table: one.bytes for one in migration.moves} == moved_bytes(problem, before, after)
    assert ns.inspect(problem, after, **MODEL).migration is None
    with pytest.raises(TypeError, match="inspect: previous: expected a Plan, got: 'old.json'"):
        ns.inspect(problem, after, previous="old.json", **MODEL)
