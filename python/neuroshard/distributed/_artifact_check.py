"""Whether an artifact is that of a plan and a problem."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from neuroshard import _fields, _planner
from neuroshard._artifact.manifest import Manifest
from neuroshard.distributed._inputs import only_input_of
from neuroshard.errors import InvalidPlan
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

WHAT_TO_DO = "compile this one, or leave artifact= out"


class Difference(NamedTuple):
    """A fact that is another one in the artifact."""

    what: str
    compiled: Any
    given: Any


def check_artifact(folder: pathlib.Path, plan: Plan, problem: ShardingProblem) -> None:
    """Raises a ValueError if the artifact is damaged, or of another plan or problem. problem: with
    what the plan's search chose (Plan.complete)."""
    try:
        compiled = Plan.load(folder / "plan.json")
    except (OSError, InvalidPlan) as error:
        raise ValueError(f"{folder} is not an artifact of neuroshard-compile: {error}") from error
    _planner.check_artifact(os.fspath(folder))
    found = list(differences(Manifest.read(folder), problem))
    if found:
        first, rest = found[0], len(found) - 1
        more = f" ({rest} more {'differs' if rest == 1 else 'differ'})" if rest else ""
        raise ValueError(f"the artifact in {folder} was compiled for another problem: {first.what}: "
                         f"{shown(first.compiled)} in the artifact, {shown(first.given)} in the "
                         f"problem{more}; {WHAT_TO_DO}")
    if (compiled.shards, compiled.device_count, compiled.optimizer_semantics) != (
            plan.shards, plan.device_count, plan.optimizer_semantics):
        raise ValueError(f"the artifact in {folder} was compiled for another plan; {WHAT_TO_DO}")


def shown(value: Any) -> str:
    return value if isinstance(value, str) else _fields.shown(value)


def differences(manifest: Manifest, problem: ShardingProblem) -> Iterator[Difference]:
    """All facts that both the manifest and the problem state, and that differ. Frozen tables are not trained,
    whatever the optimizer."""
    frozen = bool(manifest.plain.get("weights"))
    compiled, given = facts_of_manifest(manifest, frozen), facts_of_problem(problem, frozen)
    for what in [*given, *(one for one in compiled if one not in given)]:
        if compiled.get(what) != given.get(what):
            yield Difference(what, compiled.get(what, "none"), given.get(what, "none"))


def facts_of_manifest(manifest: Manifest, frozen: bool) -> dict[str, Any]:
    plain, only = manifest.plain, only_input_of(manifest)
    facts = {"tables": listed(table["name"] for table in plain["tables"]),
             "features": listed(only.features), "wire type": plain.get("wire_type", "f32"),
             "type of ids": manifest.exchanges[0]["id_type"],
             "optimizer semantics": plain["optimizer_semantics"], "devices": plain["devices"],
             "groups of devices": plain.get("groups", [])}
    for table in plain["tables"]:
        facts |= facts_of_table(table["name"], table["rows"], table["dim"], table["element_type"],
                                None if frozen else table["optimizer"])
    for lookup in manifest.exchanges[0]["lookups"]:
        facts |= facts_of_feature(
            only.features[lookup["feature"]], manifest.table(lookup["table"])["name"],
            lookup["pooling"], lookup["weighted"], lookup["padding_idx"], lookup["result_type"])
    return facts


def facts_of_problem(problem: ShardingProblem, frozen: bool) -> dict[str, Any]:
    batch, topology = problem.batch, problem.topology
    facts = {"tables": listed(table.name for table in problem.tables),
             "features": listed(feature.name for feature in problem.features),
             "wire type": batch.wire_type, "type of ids": batch.id_type,
             "optimizer semantics": problem.optimizer_semantics, "devices": topology.device_count,
             "groups of devices": _planner.device_groups(topology.levels[-1].groups)}
    for table in problem.tables:
        facts |= facts_of_table(table.name, table.rows, table.dim, table.type,
                                None if frozen else vars(table.optimizer))
    for feature in problem.features:
        facts |= facts_of_feature(feature.name, feature.table, feature.pooling, feature.weighted,
                                  None, batch.output_type)
    return facts


def listed(names: Any) -> str:
    """In their order, which is that of results and shards."""
    return json.dumps(list(names), ensure_ascii=False)


def facts_of_table(name: str, rows: int, dim: int, element_type: str,
                   optimizer: dict[str, Any] | None) -> dict[str, Any]:
    where = f"table \"{name}\", "
    return {f"{where}rows": rows, f"{where}dim": dim, f"{where}type": element_type,
            **{f"{where}optimizer's {key}": value for key, value in (optimizer or {}).items()}}


def facts_of_feature(name: str, table: str, pooling: str, weighted: bool, padding: int | None,
                     result_type: str) -> dict[str, Any]:
    where = f"feature \"{name}\", "
    return {f"{where}table": table, f"{where}pooling": pooling, f"{where}weighted": weighted,
            f"{where}padding index": padding, f"{where}output type": result_type}
