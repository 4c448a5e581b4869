"""What one module of a model has of the problem and the plan for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from neuroshard.constraints import Constraints
from neuroshard.distributed._modules.found import Part
from neuroshard.planning import inspect
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem
from neuroshard.results import Memory
from neuroshard.topology import Topology


def own_names(part: Part) -> dict[str, str]:
    """The part's names of its tables, by those in the problem."""
    return {part.table_name(one["name"]): one["name"] for one in part.tables}


def split(parts: Sequence[Part], plan: Plan, problem: ShardingProblem) -> list[tuple[Plan, ShardingProblem]]:
    """Each part's shards, tables and features, under its own names. Of the memory it has what the plan of all
    leaves beside the other parts, so that other plans for it fit, too. What a plan has to keep was checked with
    all tables; snapshots and other constraints are for planning."""
    made = [(_own_plan(part, plan), _own_problem(part, problem)) for part in parts]
    if len(parts) < 2:
        return made
    whole = _memory(problem.replace(snapshots=()), plan)
    return [(own_plan, own_problem.replace(topology=_what_is_left(whole, _memory(own_problem, own_plan), problem)))
            for own_plan, own_problem in made]


def _own_plan(part: Part, plan: Plan) -> Plan:
    own = own_names(part)
    return plan.replace(table_fingerprint="", provenance=None, shards=[
        one.replace(table=own[one.table], name="") for one in plan.shards if one.table in own])


def _own_problem(part: Part, problem: ShardingProblem) -> ShardingProblem:
    features = {one.name: one for one in problem.features}
    return problem.replace(
        tables=[problem.table(name).replace(name=short) for name, short in own_names(part).items()],
        features=[features[part.feature_name(one)].replace(name=one["name"], table=one["table"])
                  for one in part.features],
        snapshots=(), constraints=Constraints(reserves=problem.constraints.reserves))


def _memory(problem: ShardingProblem, plan: Plan) -> Memory:
    return inspect(problem, plan, cost_model="roofline").memory


def _what_is_left(whole: Memory, own: Memory, problem: ShardingProblem) -> Topology:
    topology = problem.topology
    assert topology is not None  # the plan was verified
    return topology.replace(
        devices=[device.replace(memory_bytes=device.memory_bytes - all_bytes.peak_bytes + own_bytes.peak_bytes)
                 for device, all_bytes, own_bytes in zip(topology.devices, whole.devices, own.devices)],
        hosts=[host.replace(memory_bytes=max(1, host.memory_bytes - all_bytes + own_bytes))
               for host, all_bytes, own_bytes in zip(topology.hosts, whole.host_bytes, own.host_bytes)])


def parts_of_modules(sharded: Mapping[str, object]) -> list[Part]:
    """The parts of modules that shard_model has made, by path."""
    return [Part(None, path, [{"name": table.name} for table in one.problem.tables],
                 [{"name": feature.name, "table": feature.table} for feature in one.problem.features],
                 prefixed=len(sharded) > 1)
            for path, one in sharded.items()]
