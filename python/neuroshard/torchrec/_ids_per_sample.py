"""Ids per sample of a model's features, as TorchRec's constraints that both planners read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import ModuleSharder

from neuroshard import _fields
from neuroshard._model_names import collection_of, table_name
from neuroshard._printable import did_you_mean
from neuroshard.problem import ShardingProblem
from neuroshard.torchrec import _planner_checks as checks
from neuroshard.torchrec._modules import number, sharded_modules

Constraints = dict[str, ParameterConstraints]
# The name of each table and, of each of its features, the names that it may be given by.
FeaturesOfTables = Sequence[tuple[str, list[list[str]]]]


def with_ids_per_sample(constraints: Constraints, model: torch.nn.Module, sharders: Sequence[ModuleSharder],
                        mean_pooling: float | Mapping[str, float] | None,
                        profiled: ShardingProblem | None) -> Constraints:
    """The constraints with pooling_factors from a profiled problem of the same model, and then from mean_pooling; what
    has these has num_poolings of 1, as they count all ids of a sample."""
    if profiled is None and mean_pooling is None:
        return constraints
    tables = features_of_tables(model, sharders)
    if not tables:
        return constraints  # which the planner says
    if profiled is not None:
        checks.expect(profiled, "profiled", ShardingProblem, "a ShardingProblem of the same model, or None")
        ids = {one.name: one.mean_pooling * one.presence for one in profiled.features}
        constraints = with_numbers(constraints, tables, lambda names: of_profile(ids, names))
    if isinstance(mean_pooling, Mapping):
        given = {_fields.text(name, "mean_pooling", "names of features"):
                 checks.share(value, f"mean_pooling[{name!r}]") for name, value in mean_pooling.items()}
        check_names(given, tables)
        constraints = with_numbers(constraints, tables, lambda names: found_in(given, names))
    elif mean_pooling is not None:
        every = checks.share(mean_pooling, "mean_pooling")
        constraints = with_numbers(constraints, tables, lambda _: every)
    return constraints


def with_numbers(constraints: Constraints, tables: FeaturesOfTables,
                 ids_of: Callable[[list[str]], float | None]) -> Constraints:
    """ids_of: the ids per sample of a feature by its names; None: as it was. Raises a ValueError for tables of one
    name with different numbers, since TorchRec's constraints are by that name."""
    made: dict[str, tuple[list[float], list[float]]] = {}
    for name, features in tables:
        limits = constraints.get(name, ParameterConstraints())
        before = [(number(limits.pooling_factors, index, len(features), 1.0, name),
                   number(limits.num_poolings, index, len(features), 1.0, name)) for index in range(len(features))]
        ids = [ids_of(names) for names in features]
        numbers = [old if new is None else (new, 1.0) for old, new in zip(before, ids)]
        factors, poolings = [one for one, _ in numbers], [one for _, one in numbers]
        if made.setdefault(name, (factors, poolings)) != (factors, poolings):
            products = [[one * times for one, times in zip(*each)] for each in (made[name], (factors, poolings))]
            raise ValueError(f"two tables are named \"{name}\" and have {products[0]} and {products[1]} ids per sample; "
                             "TorchRec's constraints are by name: expected equal numbers or names of their own")
    return constraints | {
        name: replace(constraints.get(name, ParameterConstraints()), pooling_factors=factors, num_poolings=poolings)
        for name, (factors, poolings) in made.items()}


def features_of_tables(model: torch.nn.Module, sharders: Sequence[ModuleSharder]) -> FeaturesOfTables:
    """The name of each table to be sharded and, of each of its features, the names that it may be given by, as
    problem_of() and NeuroShardPlanner write them, and its own."""
    tables = []
    for path, module, sharder in sharded_modules(model, sharders):
        configs, _ = collection_of(module) or ((), False)
        parameters = sharder.shardable_parameters(module)
        for config in (one for one in configs if one.name in parameters):
            table = table_name(path, config.name)
            tables.append((config.name, [
                [f"{table}/{one}", f"{path}/{one}@{table}", f"{path}/{one}@{config.name}", f"{one}@{config.name}",
                 f"{path}/{one}", one] for one in config.feature_names]))
    return tables


def found_in(given: Mapping[str, float], names: list[str]) -> float | None:
    return next((given[one] for one in names if one in given), None)


def of_profile(ids: Mapping[str, float], names: list[str]) -> float:
    found = found_in(ids, names)
    if found is None:
        table = names[0].rpartition("/")[0]
        raise ValueError(f"profiled: there is no feature \"{names[-1]}\" of table \"{table}\" in it"
                         f"{did_you_mean(names[-1], ids)}; expected a workload that was profiled for this model")
    return found


def check_names(given: Mapping[str, float], tables: FeaturesOfTables) -> None:
    known = [name for _, features in tables for names in features for name in names]
    unknown = [name for name in given if name not in known]
    if unknown:
        own = dict.fromkeys(names[-1] for _, features in tables for names in features)
        raise ValueError(f"mean_pooling: there is no feature '{unknown[0]}'"
                         + (did_you_mean(unknown[0], known) or f"; expected some of {', '.join(own)}"))
