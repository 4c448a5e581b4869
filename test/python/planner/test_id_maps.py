"""Maps of dynamic ids: hosts have less memory for the rest of a plan, and steps are longer by the exchanges."""

import re

import pytest

import neuroshard as ns
from neuroshard.errors import InvalidProblem, PlanningError
from support.id_simulation import map_bytes

ROWS, CANDIDATES = 100_001, 1000


def problem_of(topology="2x2xCPU", rows=ROWS, dynamic=True, **rest):
    tables = [ns.Table("d", rows, 16, dynamic_ids=dynamic, id_candidates=CANDIDATES if dynamic else 0),
              ns.Table("s", 5000, 8)]
    features = [ns.Feature("f", "d", mean_pooling=10), ns.Feature("g", "s")]
    return ns.ShardingProblem(tables=tables, features=features, batch=256, topology=topology, **rest)


def id_maps(result):
    """The milliseconds of the term and of its parts, as the explanation has them."""
    line, = (line for line in result.explanation if line.startswith("id_maps "))
    found = re.fullmatch(r"id_maps takes (\S+) ms of every step: exchange (\S+) ms, look_up (\S+) ms", line)
    return tuple(map(float, found.groups()))


def with_host_memory(topology, count):
    return topology.replace(hosts=[host.replace(memory_bytes=count) for host in topology.hosts])


def test_hosts_have_the_maps_of_their_ranks():
    result = ns.plan(problem_of())
    assert result.memory.host_bytes == (2 * (map_bytes(25_000) + map_bytes(250)),) * 2
    assert any(line.startswith("maps of dynamic ids take up to") for line in result.explanation)
    assert ns.inspect(problem_of(), result.plan).memory.host_bytes == result.memory.host_bytes
    assert ns.plan(problem_of(dynamic=False)).memory.host_bytes == (0, 0)


@pytest.mark.parametrize("topology", ("2x2xCPU", "4xH200"))
def test_steps_are_longer_by_the_same_for_every_plan(topology):
    longer = set()
    for algorithm in ("default", "size"):
        plan = ns.plan(problem_of(topology), algorithm=algorithm)
        dynamic, static = (ns.inspect(problem_of(topology, dynamic=one), plan.plan) for one in (True, False))
        assert plan.cost_ms == pytest.approx(dynamic.cost_ms) and plan.lower_bound_ms <= plan.cost_ms
        longer.add(round(dynamic.cost_ms - static.cost_ms, 9))
        assert dynamic.breakdown.fixed_ms - static.breakdown.fixed_ms == pytest.approx(longer.copy().pop())
    assert len(longer) == 1 and longer.pop() > 0


@pytest.mark.parametrize("batch", (4096, 409_600))
def test_the_term_is_what_steps_are_longer_by(batch):
    dynamic, static = (ns.plan(problem_of("4xH200", dynamic=one).replace(batch=batch)) for one in (True, False))
    total, exchange, look_up = id_maps(dynamic)
    assert exchange > 0 and look_up > 0 and total == pytest.approx(exchange + look_up, abs=2e-4)
    assert dynamic.breakdown.fixed_ms - static.breakdown.fixed_ms == pytest.approx(total, abs=1e-4)
    assert static.breakdown.fixed_ms == 0 and not any("id_maps" in line for line in static.explanation)


def test_what_looking_up_depends_on():
    few, many = (id_maps(ns.plan(problem_of("4xH200").replace(batch=batch))) for batch in (4096, 409_600))
    assert many[1] > few[1] and many[2] > few[2]
    larger = id_maps(ns.plan(problem_of("4xH200", rows=100 * ROWS).replace(batch=4096)))
    assert larger[2] > 2 * few[2]  # memory that is further away
    # Ids that are all different: 9.5 ns to find one, 25 ns to look it up in a map of 25 000 rows.
    table = ns.Table("d", 100_000, 16, dynamic_ids=True)
    one = ns.ShardingProblem(tables=[table], features=[ns.Feature("f", "d")], batch=4, topology="4xH200")
    wide = one.replace(batch=4000)
    assert id_maps(ns.plan(wide))[2] == pytest.approx(1000 * (9.5 + 25) * 1e-6, rel=0.01)


def test_too_little_memory_is_one_error():
    small = with_host_memory(problem_of().topology, 1 << 20)
    with pytest.raises(PlanningError, match="maps of dynamic ids need .* of the memory of host 0; there are 1.0 MiB"):
        ns.plan(problem_of(small))
    assert ns.plan(problem_of(small, dynamic=False))
    plan = ns.plan(problem_of()).plan
    with pytest.raises(ns.errors.InvalidPlan, match="needs"):
        ns.inspect(problem_of(small), plan)


def test_tables_below_device_memory_have_what_is_left():
    problem = problem_of("1xH200", rows=1_000_001, constraints=ns.Constraints(
        tables=[ns.TableRule("s", cache_share=0.5, tier="dram")]))
    maps = map_bytes(1_000_000) + map_bytes(CANDIDATES)
    room = ns.plan(problem).memory.host_bytes[0]
    assert 2**23 < room - maps - 5000 * 32 < 2**23 + 2**16  # what moves rows, and where they are
    assert ns.plan(problem.replace(topology=with_host_memory(problem.topology, room))).memory.host_bytes == (room,)
    with pytest.raises(PlanningError, match="host memory"):
        ns.plan(problem.replace(topology=with_host_memory(problem.topology, room - 2**23 - 1)))
    with pytest.raises(PlanningError):
        ns.plan(problem.replace(topology=with_host_memory(problem.topology, room - 1)))


def test_problems_say_it():
    problem = problem_of()
    assert ns.ShardingProblem.from_json(problem.to_json()) == problem
    for change, text in (({"dynamic_ids": False}, "they are of dynamic ids"), ({"id_candidates": -1}, "id_candidates")):
        with pytest.raises(InvalidProblem, match=text):
            problem.replace(tables=[problem.tables[0].replace(**change), problem.tables[1]])
    with pytest.raises(InvalidProblem, match="expected batch.id_type i64"):
        problem.replace(batch=problem.batch.replace(id_type="i32"))
    with pytest.raises(InvalidProblem, match="only the target native has them"):
        problem.replace(target="torchrec-1.9")
