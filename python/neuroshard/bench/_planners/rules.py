"""The rules of the comparison: which cuts both planners may make, and TorchRec's constraints for
them."""

from __future__ import annotations

from torchrec.distributed.planner.types import ParameterConstraints

import neuroshard as ns
from neuroshard._artifact.optimizer_states import ROW_STATES
from neuroshard.bench._planners.case import Case, features_of
from neuroshard.tables import Table

COLUMNS = ("column_wise", "table_column_wise")
# What target torchrec-1.9 runs and the fused optimizer trains.
TRAINED = ("table_wise", *COLUMNS, "row_wise", "table_row_wise")
# The cuts that both planners may make. exact: those under which every table trains as if it were
# whole. per-shard: also column shards of tables with row-wise optimizers. unrestricted: TorchRec's
# planner has no constraints but the pooling factors, ours all cuts it can express.
RULES = ("exact", "per-shard", "unrestricted")


def rules_of(case: Case) -> tuple[str, ...]:
    """The rules that differ for a case: per-shard differs from exact only with a row-wise
    optimizer."""
    row_wise = any(row_wise_state(table) for table in case.problem.tables)
    return RULES if row_wise else ("exact", "unrestricted")


def problem_under(case: Case, rules: str) -> ns.ShardingProblem:
    return case.problem.replace(
        optimizer_semantics="exact" if rules == "exact" else "per_shard")


def row_wise_state(table: Table) -> bool:
    return table.optimizer.kind in ROW_STATES


def types_under(case: Case, rules: str) -> dict[str, list[str] | None]:
    """By table, the sharding types that the rules allow to TorchRec's planner; None: all."""
    if rules == "unrestricted":
        return {table.name: None for table in case.problem.tables}
    return {table.name: [one for one in TRAINED if rules != "exact" or one not in COLUMNS
                         or not row_wise_state(table)]
            for table in case.problem.tables}


def make_constraints(case: Case, types: dict[str, list[str] | None],
                     min_partition: int | None = None) -> dict[str, ParameterConstraints]:
    """types: the sharding types allowed to each table, None for all."""
    return {table.name: ParameterConstraints(
        sharding_types=types[table.name], min_partition=min_partition,
        compute_kernels=kernels_for(types[table.name]),
        pooling_factors=[one.mean_pooling for one in features_of(case.problem, table.name)])
        for table in case.problem.tables}


def kernels_for(types: list[str] | None) -> list[str] | None:
    """The compute kernels that keep all rows in device memory."""
    if types is None:
        return None
    return ["fused", "dense"] if "data_parallel" in types else ["fused"]
