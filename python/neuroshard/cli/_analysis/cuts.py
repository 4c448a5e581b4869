"""Describes how a plan cuts its tables."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import neuroshard as ns

MAX_LISTED = 6


class Cut(NamedTuple):
    """How one table is cut. kind: "whole", "rows", "columns", "rows and columns", "replicated", which
    is whole on every device, or "copies", whole on some; pieces says to how many devices the shards of
    other kinds are copied.
    pieces, devices: texts that list them."""

    table: ns.Table
    shards: tuple[ns.Shard, ...]
    kind: str
    pieces: str
    devices: str


def cuts_of(problem: ns.ShardingProblem, plan: ns.Plan) -> list[Cut]:
    """The cut of each table, tables with most elements first."""
    shards = defaultdict(list)
    for shard in plan.shards:
        shards[shard.table].append(shard)
    cuts = [cut_of(table, tuple(shards[table.name]), plan.device_count)
            for table in problem.tables]
    return sorted(cuts, key=lambda one: -one.table.rows * one.table.dim)


def cut_of(table: ns.Table, shards: tuple[ns.Shard, ...], device_count: int) -> Cut:
    kind = kind_of(table, shards, device_count)
    devices = ranges(sorted({device for shard in shards for device in shard.devices}))
    if kind == "rows":
        pieces = sizes([f"{shard.row_count:,}" for shard in shards], "rows")
    elif kind == "columns":
        pieces = sizes([str(shard.width) for shard in shards], "columns")
    elif kind == "rows and columns":
        pieces = sizes([f"{shard.row_count:,} x {shard.width}" for shard in shards], "")
    else:
        pieces = "on every device" if kind == "replicated" else ""
    copies = max(len(shard.devices) for shard in shards)
    if copies > 1 and kind != "replicated":
        pieces += f"{', ' if pieces else ''}copied to {copies} devices"
    if shards[0].sync_every:
        pieces += f", averaged every {shards[0].sync_every} steps (not exact)"
    return Cut(table, shards, kind, pieces, listed(devices, ", "))


def kind_of(table: ns.Table, shards: tuple[ns.Shard, ...], device_count: int) -> str:
    if len(shards) == 1 < len(shards[0].devices) == device_count:
        return "replicated"
    rows = any(shard.row_count != table.rows for shard in shards)
    columns = any(shard.width != table.dim for shard in shards)
    if rows and columns:
        return "rows and columns"
    copied = any(shard.replicated for shard in shards)
    return "rows" if rows else "columns" if columns else "copies" if copied else "whole"


def sizes(each: list[str], what: str) -> str:
    """"30 + 34 columns", "32 columns each"."""
    if len(set(each)) == 1 and len(each) > 2:
        return f"{each[0]} {what} each".replace("  ", " ")
    return f"{listed(each, ' + ')} {what}".rstrip()


def ranges(devices: list[int]) -> list[str]:
    """Ascending numbers as texts; three or more in a row become "3-7"."""
    runs: list[list[int]] = []
    for one in devices:
        if runs and one == runs[-1][-1] + 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    return [text for run in runs for text in
            ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))]


def listed(texts: list[str], between: str) -> str:
    if len(texts) <= MAX_LISTED:
        return between.join(texts)
    return between.join([*texts[:MAX_LISTED - 1], f"... ({len(texts)} in all)"])
