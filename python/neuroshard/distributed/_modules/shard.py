"""Sharded modules in the place of a model's collections, with one plan and one step for all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from neuroshard._fields import shown
from neuroshard._group.agreement import rank_of, require_same, together
from neuroshard._model_names import collection_of
from neuroshard.distributed._modules.forwards import Forwards
from neuroshard.distributed._modules.found import Part, parts_of
from neuroshard.distributed._modules.joint import JointTables
from neuroshard.distributed._modules.members import in_order, members_of
from neuroshard.distributed._modules.view import CollectionView
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

if TYPE_CHECKING:
    from neuroshard.distributed._reshard.reshard import Resharded

# Arguments by table.
BY_TABLE = ("dynamic_ids", "initial_values")


def shard_model(model: torch.nn.Module, plan: Plan, problem: ShardingProblem, *, learning_rate: Any,
                one_step: bool = True, **options: Any) -> dict[str, CollectionView]:
    """Puts a sharded module in the place of each torchrec EmbeddingBagCollection and EmbeddingCollection of
    a model, in place, and returns them by path. All ranks call it together.

    plan: one for all tables of the model. problem: problem_of(model). learning_rate, options: those of
    ShardedEmbeddingBagCollection; tables in them have their names in the problem. The modules share their
    tables: a forward of the model is one step for all collections, with one exchange of ids, one of results,
    one of gradients and one update, where their ids are among the arguments of the forward
    (docs/distributed.md). one_step: False gives each collection steps of its own. Weights begin anew, by
    initial_values where they are given, else by the init_fn of a table's config, else by seed: load a state
    dict for others. Where collections have weights that are lost so, rather than be on the device meta, rank 0
    gives a UserWarning.

    Raises a ValueError, with the model as it was, if plan, problem and model do not have the same tables, or
    if the model also has an nn.EmbeddingBag or nn.Embedding outside of collections."""
    named = {"learning_rate": _tables_of_groups(learning_rate), **{one: options.get(one) for one in BY_TABLE}}
    group = options.get("process_group")
    parts = together(lambda: _checked_parts(model, plan, problem, named), group, "the check of the model")
    require_same({"one_step": str(bool(one_step))}, group, "all ranks must build the same model")
    _warn_of_weights(parts, group)
    members = members_of(parts)
    if functions := {**_init_functions(parts), **(options.get("initial_values") or {})}:
        options["initial_values"] = functions
    tables = JointTables(members, plan, in_order(members, problem), learning_rate=learning_rate, **options)
    forwards = Forwards(model, tables, one_step)
    views = {member.path: CollectionView(tables, member, forwards) for member in members}
    tables.use_views(views.values())
    path_of_module = {id(part.module): part.path for part in parts}
    for path, one in list(model.named_modules(remove_duplicate=False)):
        if id(one) in path_of_module:
            parent, _, name = path.rpartition(".")
            view = views[path_of_module[id(one)]]
            setattr(model.get_submodule(parent), name, view.train(one.training))
    return views


def _warn_of_weights(parts: Sequence[Part], group: Any) -> None:
    paths = [part.path for part in parts if any(not one.is_meta for one in part.module.parameters())]
    if paths and rank_of(group) == 0:
        warnings.warn(f"shard_model: the weights that collections of the model have ({', '.join(paths)}) are not taken: "
                      "tables begin by the init_fn of their configs or by seed. To go on with them keep their "
                      "state_dict() and load it afterwards; else make the collections on the device \"meta\", where they "
                      "take no memory", UserWarning, stacklevel=3)


def reshard_model(sharded: Mapping[str, CollectionView], plan: Plan, problem: ShardingProblem) -> Resharded:
    """Moves the tables of all modules that shard_model has made to another plan, between two steps; gives
    what the move took. Called on all ranks of the process group, which stay the same.

    sharded: as shard_model has given it. plan: one for all tables. problem: as it was for shard_model, on the devices of the plan. Raises an error on
    all ranks, with everything as it was, if they do not fit; see reshard() of a module."""
    tables = next(iter(sharded.values())).tables
    names = {name for member in tables.members for name in member.tables}
    together(lambda: _require_tables(names, problem, "the modules"), tables.process_group, "the check of the plan")
    return tables.reshard(plan, in_order(tables.members, problem))


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
    features = {one.name for one in problem.features}
    for name in (part.feature_name(one) for part in parts for one in part.features):
        if name not in features:
            raise ValueError(f"shard_model: feature \"{name}\" is in the model only; expected the features of problem_of(model)")
    for argument, tables in named.items():
        for name in tables if isinstance(tables, (list, Mapping)) else ():
            if name not in expected:
                raise ValueError(f"{argument}: expected tables of {', '.join(expected)}, found {shown(name)}")
    plan.verify(problem)
    return parts


def _are_groups(rate: Any) -> bool:
    return isinstance(rate, (list, tuple)) and all(isinstance(one, Mapping) for one in rate)


def _tables_of_groups(rate: Any) -> list[str]:
    return [name for one in rate for name in one.get("tables", ())] if _are_groups(rate) else []


def _init_functions(parts: Sequence[Part]) -> dict[str, Callable]:
    """By table, the init_fn that its config was given."""
    return {part.table_name(config.name): config.init_fn for part in parts
            for config in (collection_of(part.module) or ((), False))[0]
            if config.init_fn and not _is_default(config)}


def _is_default(config: Any) -> bool:
    """Whether the init_fn is what TorchRec sets where neither it nor bounds are given. Its values are
    distributed as ours."""
    return (getattr(config.init_fn, "func", None) is torch.nn.init.uniform_
            and config.weight_init_min is None and config.weight_init_max is None)
