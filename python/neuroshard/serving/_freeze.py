"""Freezes tables: quantizes their weights and compiles their lookups."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import BinaryIO, get_args

import torch

from neuroshard import _fields, _planner
from neuroshard._artifact.manifest import load_manifest
from neuroshard.constraints import Constraints
from neuroshard.distributed import compile_plan
from neuroshard.errors import TensorError
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem
from neuroshard.serving._quantize import quantize
from neuroshard.serving._scratch import MADE, put, scratch_beside, writing
from neuroshard.serving._sources import Source, weights_of
from neuroshard.shards import Shard
from neuroshard.tables import Table, TableType

TYPES = get_args(TableType)
ROWS_AT_ONCE = 1 << 16


def freeze(source: Source, problem: ShardingProblem, folder: str | os.PathLike, *,
           dtype: TableType | Mapping[str, TableType] = "int8", plan: Plan | None = None,
           target_cpu: str = "host") -> pathlib.Path:
    """Writes the tables of a problem for serving into `folder`: compiled lookups, and the weights in `dtype`.

    source: a checkpoint of ns.distributed.save() or torch.distributed.checkpoint, a file of a state dict (.pt,
    .safetensors), a state dict, or a module. dtype: one for all tables, or by table; int8 and int4 have a scale
    and a bias for each row, fp8 is e4m3; f16, bf16 and f32 leave values as they are but for their rounding.
    plan: None: whole tables on one CPU, as serve() and the C interface want them; a plan of served(problem) for
    several devices is for ns.ShardedEmbeddingBagCollection(plan, served(problem), artifact=folder).
    target_cpu: LLVM's name of the CPU that will serve.

    The folder appears once it is complete, in place of an earlier one. Raises a TensorError, a CheckpointError, an
    InvalidPlan, a CompileError, or an OSError where it cannot write, and then leaves what was there."""
    # Of a link to a folder the folder is replaced, not the link.
    folder = pathlib.Path(os.path.realpath(_fields.path(folder, "freeze: folder")))
    _require_one_input(problem)
    problem = served(problem, dtype)
    if plan is None:
        problem = problem.replace(topology="1xCPU")
        plan = Plan(device_count=1, shards=[
            Shard(table=table.name, rows=(0, table.rows), cols=(0, table.dim), devices=0)
            for table in problem.tables])
    _require_replaceable(folder)
    with writing(folder), scratch_beside(folder) as scratch:
        compile_plan(plan, problem, scratch / MADE, ["--target-cpu", target_cpu], training=False)
        _write_weights(scratch / MADE, source, problem)
        put(scratch, folder)
    return folder


def served(problem: ShardingProblem, dtype: TableType | Mapping[str, TableType] = "int8") -> ShardingProblem:
    """The problem of serving the tables of a problem, to plan and to freeze. dtype: as for freeze(). Raises a
    TensorError for types and tables that there are not."""
    names = [table.name for table in problem.tables]
    types = dtype if isinstance(dtype, Mapping) else dict.fromkeys(names, dtype)
    if unknown := [name for name in types if name not in names]:
        raise TensorError(f"freeze: dtype: there is no table {_fields.shown(unknown[0])} in the problem; it has "
                          f"{', '.join(names[:10])}{', ...' if len(names) > 10 else ''}")
    if without := [name for name in names if name not in types]:
        raise TensorError(f"freeze: dtype: table \"{without[0]}\" has no type; expected one of {', '.join(TYPES)} for "
                          "each table, or one for all")
    for name, one in types.items():
        if one not in TYPES:
            raise TensorError(f"freeze: dtype: expected one of {', '.join(TYPES)}, found {one!r} for table \"{name}\"")
    problem = problem.served()
    tables = [table.replace(type=types[table.name]) for table in problem.tables]
    return problem.replace(tables=tables, constraints=Constraints())


def _require_one_input(problem: ShardingProblem) -> None:
    """Raises a TensorError if features cannot come as one input."""
    if not isinstance(problem, ShardingProblem):
        raise TypeError(f"freeze: problem: expected a ShardingProblem, found {type(problem).__name__}")
    for feature in problem.features:
        if feature.weighted and feature.pooling != "sum":
            raise TensorError(f"feature \"{feature.name}\": weights of ids are for sums, found pooling "
                              f"\"{feature.pooling}\"")
    if not problem.features:
        raise TensorError("freeze: expected a problem with features, found none")
    if len({feature.batch for feature in problem.features}) > 1:
        raise TensorError("freeze: expected features of one batch, found some with batches of their own; freeze them "
                          "apart")


def _require_replaceable(folder: pathlib.Path) -> None:
    """Raises a TensorError if something else than the files of an earlier freeze is there."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        manifest = load_manifest(folder)
        known = {*manifest["files"], "manifest.json"} if "weights" in manifest else set()
    except (KeyError, TypeError, TensorError):
        known = set()
    if not known:
        raise TensorError(f"{folder} is there and is not a folder that freeze has written; name another one")
    others = sorted(path.name for path in folder.iterdir() if path.name not in known)
    if others:
        raise TensorError(f"{folder} has files that freeze has not written, which would be lost: "
                          f"{', '.join(others[:5])}; move them, or name another folder")


class _ShardFile:
    """The rows of one shard, in the order of the table."""

    def __init__(self, file: BinaryIO, rows: tuple[int, int], columns: tuple[int, int], dtype: str) -> None:
        self.file, self.rows = file, rows
        self.prefix, *bounds = (_planner.row_bytes(column, dtype) for column in (0, *columns))
        self.bytes = slice(*bounds)

    def write(self, first: int, stored: torch.Tensor) -> None:
        """Its part of the whole rows [first, first + len(stored)) of the table."""
        begin, end = (min(max(row - first, 0), len(stored)) for row in self.rows)
        if begin < end:
            part = stored[begin:end]
            self.file.write(torch.cat([part[:, :self.prefix], part[:, self.bytes]], 1).numpy().tobytes())


def _write_weights(folder: pathlib.Path, source: Source, problem: ShardingProblem) -> None:
    manifest = load_manifest(folder)
    names = [f"weights{index}.bin" for index in range(len(manifest["shards"]))]
    numbers = {table["name"]: index for index, table in enumerate(manifest["tables"])}
    for table, values in weights_of(source, problem.tables):
        own = [index for index, shard in enumerate(manifest["shards"])
               if shard["table"] == numbers.get(table.name)]
        _write_table(table, values, {folder / names[index]: manifest["shards"][index] for index in own})
    _planner.add_weights(os.fspath(folder), names)


def _write_table(table: Table, values: torch.Tensor, shards: Mapping[pathlib.Path, dict]) -> None:
    files = [_ShardFile(path.open("wb"), tuple(shard["rows"]), tuple(shard["cols"]), table.type)
             for path, shard in shards.items()]
    try:
        for first in range(0, table.rows, ROWS_AT_ONCE):
            try:
                stored = quantize(values[first:first + ROWS_AT_ONCE], table.type, first)
            except TensorError as error:
                raise TensorError(f"table \"{table.name}\": {error}") from None
            for one in files:
                one.write(first, stored)
    finally:
        for one in files:
            one.file.close()
