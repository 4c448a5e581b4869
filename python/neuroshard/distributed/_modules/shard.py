"""Sharded modules in the place of a model's collections, under one plan for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from neuroshard._fields import shown
from neuroshard._group.agreement import together
from neuroshard._model_names import collection_of
from neuroshard.distributed._collection import (ShardedEmbeddingBagCollection,
                                                ShardedEmbeddingCollection)
from neuroshard.distributed._modules.found import Part, parts_of
from neuroshard.distributed._modules.part_plans import own_names, parts_of_modules, split
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

# Arguments by table: each module gets those of its own tables, under their own names.
BY_TABLE = ("dynamic_ids", "initial_values")


def shard_model(model: torch.nn.Module, plan: Plan, problem: ShardingProblem, *,
                learning_rate: Any, **options: Any) -> dict[str, torch.nn.Module]:
    """Puts a sharded module in the place of each torchrec EmbeddingBagCollection and EmbeddingCollection of
    a model, in place, and returns them by path. All ranks call it together.

    plan: one for all tables of the model. problem: problem_of(model). learning_rate, options: those of
    ShardedEmbeddingBagCollection; tables in them have their names in the problem. Each module exchanges
    ids, results and gradients by itself, when the model calls it. Weights begin anew, by initial_values
    where they are given, else by the init_fn of a table's config, else by seed: load a state dict for others.

    Raises a ValueError, with the model as it was, if plan, problem and model do not have the same tables, or
    if the model also has an nn.EmbeddingBag or nn.Embedding outside of collections."""
    named = {"learning_rate": _tables_of_groups(learning_rate), **{one: options.get(one) for one in BY_TABLE}}

    def check() -> list[tuple[Part, tuple[Plan, ShardingProblem]]]:
        parts = _checked_parts(model, plan, problem, named)
        return list(zip(parts, split(parts, plan, plan.complete(problem))))

    planned = together(check, options.get("process_group"), "the check of the model")
    paths_of_module: dict[int, str] = {}
    made: dict[str, torch.nn.Module] = {}
    try:
        for part, own in planned:
            paths_of_module[id(part.module)] = part.path
            made[part.path] = _sharded(part, own, learning_rate, options)
    except BaseException:
        for one in made.values():
            one.close()
        raise
    for path, one in list(model.named_modules(remove_duplicate=False)):
        if id(one) in paths_of_module:
            parent, _, name = path.rpartition(".")
            setattr(model.get_submodule(parent), name, made[paths_of_module[id(one)]])
    return made


def reshard_model(sharded: Mapping[str, Any], plan: Plan, problem: ShardingProblem) -> dict[str, Any]:
    """Moves all modules that shard_model has made to another plan, one after the other, between two steps; gives
    what each move took, by path. Called on all ranks of the process group, which stay the same.

    sharded: as shard_model has given it. plan: one for all tables. problem: as it was for shard_model, on the devices of the plan. Raises an error on
    all ranks, with everything as it was, if they do not fit; see reshard() of a module."""
    group = next(iter(sharded.values())).process_group
    parts = parts_of_modules(sharded)

    def check() -> list[tuple[Plan, ShardingProblem]]:
        _require_tables({part.table_name(one["name"]) for part in parts for one in part.tables}, problem,
                        "the modules")
        plan.verify(problem)
        return split(parts, plan, plan.complete(problem))

    made = together(check, group, "the check of the plan")
    return {part.path: sharded[part.path].reshard(*own) for part, own in zip(parts, made)}


def _require_tables(expected: set[str], problem: ShardingProblem, where: str) -> None:
    given = {table.name for table in problem.tables}
    if odd := sorted(expected ^ given):
        raise ValueError(f"table \"{odd[0]}\" is in {where if odd[0] in expected else 'the problem'} only; expected a "
                         f"problem of {', '.join(sorted(expected))}")


def _checked_parts(model: object, plan: Plan, problem: ShardingProblem,
                   named: Mapping[str, object]) -> list[Part]:
    """named: arguments by table."""
    parts = parts_of(model)
    for part in parts:
        if not part.path:
            found = "a collection" if not isinstance(part.module, Mapping) else (
                f"single modules ({', '.join(part.module)})")
            raise ValueError(f"shard_model: expected a model with its tables in EmbeddingBagCollections and "
                             f"EmbeddingCollections, found {found}; make a ShardedEmbeddingBagCollection of it "
                             "with problem_of")
    expected = {part.table_name(one["name"]): one for part in parts for one in part.tables}
    given = {table.name: table for table in problem.tables}
    _require_tables(set(expected), problem, "the model")
    for name, one in expected.items():
        table = given[name]
        if (table.rows, table.dim) != (one["rows"], one["dim"]):
            raise ValueError(f"shard_model: table \"{name}\" has {one['rows']} rows of {one['dim']} in the model, and "
                             f"{table.rows} of {table.dim} in the problem")
    for argument, tables in named.items():
        for name in tables if isinstance(tables, (list, Mapping)) else ():
            if name not in expected:
                raise ValueError(f"{argument}: expected tables of {', '.join(expected)}, found {shown(name)}")
    plan.verify(problem)
    return parts


def _sharded(part: Part, planned: tuple[Plan, ShardingProblem], learning_rate: Any,
             options: Mapping[str, Any]) -> torch.nn.Module:
    """The module for a part of the model, by the part's plan and problem."""
    own = own_names(part)
    kind = (ShardedEmbeddingCollection if part.features and part.features[0]["pooling"] == "none"
            else ShardedEmbeddingBagCollection)
    own_options = {**options, **{name: _by_own_names(options[name], own) for name in BY_TABLE
                                 if isinstance(options.get(name), Mapping)}}
    if functions := {**_init_functions(part), **(own_options.get("initial_values") or {})}:
        own_options["initial_values"] = functions
    if isinstance(options.get("name"), str):
        own_options["name"] = f"{options['name']}_{part.path.replace('.', '_')}"
    return kind(*planned, learning_rate=_own_groups(learning_rate, own), **own_options)


def _by_own_names(given: Mapping[str, Any], own: Mapping[str, str]) -> dict[str, Any]:
    return {own[name]: value for name, value in given.items() if name in own}


def _own_groups(rate: Any, own: Mapping[str, str]) -> Any:
    """Groups of learning rates with the tables of one module."""
    if not _are_groups(rate):
        return rate
    groups = [{**one, "tables": [own[name] for name in one["tables"] if name in own]}
              if "tables" in one else dict(one) for one in rate]
    return [one for one in groups if "tables" not in one or one["tables"]]


def _are_groups(rate: Any) -> bool:
    return isinstance(rate, (list, tuple)) and all(isinstance(one, Mapping) for one in rate)


def _tables_of_groups(rate: Any) -> list[str]:
    return [name for one in rate for name in one.get("tables", ())] if _are_groups(rate) else []


def _init_functions(part: Part) -> dict[str, Callable]:
    """By table, the init_fn that its config was given."""
    configs, _ = collection_of(part.module) or ((), False)
    return {config.name: config.init_fn for config in configs if config.init_fn and not _is_default(config)}


def _is_default(config: Any) -> bool:
    """Whether the init_fn is what TorchRec sets where neither it nor bounds are given. Its values are
    distributed as ours."""
    return (getattr(config.init_fn, "func", None) is torch.nn.init.uniform_
            and config.weight_init_min is None and config.weight_init_max is None)
