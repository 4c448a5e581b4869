"""The plans whose memory is measured: MLPerf DLRM-v2 on 8 devices, each optimizer, f32 and
bf16 weights, without copies of tables, which take exchanges to update. Of each plan the fullest
device and the one in the middle."""

import dataclasses
from pathlib import Path

import neuroshard as ns
import paths  # noqa: F401, for support
from points import DLRM
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table

OPTIMIZERS = ("sgd", "adagrad", "rowwise_adagrad", "adam")
DTYPES = ("f32", "bf16")
DEVICES = 8
DRY_BATCH, DRY_ROWS = 64, 100
KINDS = ("table_wise", "column_wise", "row_wise", "table_row_wise", "row_column")


def problem_of(optimizer, dtype, dry_run):
    """The workload with other tables; small ones for a dry run."""
    problem = ns.ShardingProblem.load(str(DLRM))
    tables = [dataclasses.replace(table, optimizer=optimizer, type=dtype,
                                  rows=min(table.rows, DRY_ROWS) if dry_run else table.rows)
              for table in problem.tables]
    batch = dataclasses.replace(problem.batch, global_size=DRY_BATCH) if dry_run else problem.batch
    constraints = ns.Constraints(tables=[ns.TableRule(table.name, KINDS) for table in tables])
    return dataclasses.replace(problem, tables=tables, batch=batch, constraints=constraints,
                               topology=f"{2 if dry_run else DEVICES}xH200")


def model_of(problem, plan):
    """The lookups of the problem, and the shards of the plan, for the compiler."""
    tables = [Table(table.name, table.rows, table.dim, table.type, Optimizer(table.optimizer.kind))
              for table in problem.tables]
    lookups = tuple(Lookup(feature.name, feature.table, "sum") for feature in problem.features)
    input_ = Input("ids", tuple(feature.name for feature in problem.features), lookups)
    devices = 1 + max(device for shard in plan.shards for device in shard.devices)
    shards = [Shard(shard.table, tuple(shard.rows), tuple(shard.cols), tuple(shard.devices))
              for shard in plan.shards]
    return (Model(tables, [input_], batch=problem.batch.global_size),
            Plan(devices, shards, "exact"))


def chosen_devices(memory):
    """Ranks of the fullest device and of the middle one."""
    order = sorted(range(len(memory.devices)), key=lambda rank: -memory.devices[rank].peak_bytes)
    return sorted({order[0], order[len(order) // 2]})


def prepare(compiler, dry_run):
    """Plans and submits all; gives what the section memory reads."""
    described = []
    for optimizer in OPTIMIZERS[2:] if dry_run else OPTIMIZERS:
        for dtype in DTYPES[:1] if dry_run else DTYPES:
            problem = problem_of(optimizer, dtype, dry_run)
            result = ns.plan(problem, seed=1)
            name = f"dlrm_v2_{optimizer}_{dtype}"
            model, plan = model_of(problem, result.plan)
            compiler.submit(model.text(plan), Path("memory") / name,
                            set(chosen_devices(result.memory)))
            described.append({
                "name": name, "batch": problem.batch.global_size,
                "input_copies": problem.batch.input_copies, "devices": plan.devices,
                "rows": {table.name: table.rows for table in problem.tables},
                "pooling": {feature.name: feature.mean_pooling for feature in problem.features},
                "predicted": {str(rank): dataclasses.asdict(result.memory.devices[rank])
                              for rank in chosen_devices(result.memory)}})
    return described
