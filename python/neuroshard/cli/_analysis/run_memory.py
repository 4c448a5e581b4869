"""Memory reserves from a run's statistics: what it used beyond what its plan predicts for the tables."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import neuroshard as ns
from neuroshard import _machine_file
from neuroshard._printable import name_ranks
from neuroshard.cli._failures import InputError
from neuroshard.cli._input.input_files import existing

ALLOCATED, RESERVED = "allocated_bytes.all.peak", "reserved_bytes.all.peak"
USED = "device_used_bytes"
MOST_BYTES = 2**60


class Use(NamedTuple):
    """Peaks of one rank, in bytes. used: of the whole device; None when not measured."""

    allocated: int
    reserved: int
    used: int | None


class RankFit(NamedTuple):
    """Memory of one rank, in bytes. tables: predicted by the plan. rest: allocated beside the
    tables. fragmentation: reserved but not allocated. beyond: used outside the allocator; None
    when not measured."""

    tables: int
    use: Use
    rest: int
    fragmentation: int
    beyond: int | None


class Fit(NamedTuple):
    reserves: ns.Reserves
    ranks: tuple[RankFit, ...]
    remarks: tuple[str, ...]


def read_uses(paths: Sequence[str], devices: int) -> list[Use]:
    """Reads one file with a list of all ranks, or one file for each rank, in the order of ranks."""
    records: list[tuple[str, Any]] = []
    for path in paths:
        try:
            with open(existing(path, "memory statistics"), encoding="utf-8") as file:
                plain = json.load(file)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: not JSON: {error}") from error
        if isinstance(plain, dict) and isinstance(plain.get("ranks"), list):
            plain = plain["ranks"]
        many = plain if isinstance(plain, list) else [plain]
        records += [(f"{path}: rank {index}" if isinstance(plain, list) else path, one)
                    for index, one in enumerate(many)]
    if len(records) != devices:
        raise InputError(f"{', '.join(paths)}: statistics of {len(records)} "
                         f"{'rank' if len(records) == 1 else 'ranks'}, but the plan is for {devices} "
                         "devices; expected those of every rank")
    return [use_of(one, where) for where, one in records]


def use_of(record: Any, where: str) -> Use:
    if not isinstance(record, dict):
        raise InputError(f"{where}: expected the object that torch.cuda.memory_stats() gives")
    values = []
    for key in (ALLOCATED, RESERVED, USED):
        value = record.get(key, nested(record, key))
        if value is None and key == USED:
            values.append(None)
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_BYTES:
            raise InputError(f"{where}: {key}: expected bytes, as torch.cuda.memory_stats() gives "
                             f"them, got: {value!r}")
        values.append(value)
    use = Use(*values)
    if not use.allocated <= use.reserved <= (use.used if use.used is not None else use.reserved):
        raise InputError(f"{where}: expected {ALLOCATED} <= {RESERVED} <= {USED}, got: "
                         f"{use.allocated}, {use.reserved}, {use.used}")
    return use


def nested(record: dict[str, Any], key: str) -> Any:
    """The value of a dotted key in what torch.cuda.memory_stats_as_nested_dict() gives."""
    found: Any = record
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def fit(problem: ns.ShardingProblem, plan: ns.Plan, uses: Sequence[Use]) -> Fit:
    """The reserves: each is the most that any rank needed beyond what the plan predicts."""
    if problem.memory_model != "full":
        raise InputError("the workload counts weights alone (memory_model), so it has no reserves; "
                         "give one with memory_model full")
    memory = ns.inspect(problem, plan, cost_model="roofline").memory
    ranks = []
    for device, use in zip(memory.devices, uses, strict=True):
        tables = device.peak_bytes - device.reserved_bytes
        ranks.append(RankFit(tables, use, use.allocated - tables, use.reserved - use.allocated,
                             None if use.used is None else use.used - use.reserved))
    beyond = [one.beyond for one in ranks if one.beyond is not None]
    communicator = max(beyond) if len(beyond) == len(ranks) else None
    reserves = ns.Reserves(
        dense_bytes=max(0, *(one.rest for one in ranks)),
        fragmentation_bytes=max(one.fragmentation for one in ranks),
        communicator_bytes=communicator)
    return Fit(reserves, tuple(ranks), tuple(remarks_on(ranks, communicator)))


def machine_file_with(path: str, problem: ns.ShardingProblem, reserves: ns.Reserves
                      ) -> dict[str, object]:
    """The machine file at a path with these reserves; if there is none, one that corrects no times."""
    topology = problem.topology
    if os.path.exists(path):
        return _machine_file.file_with_reserves(path, reserves, topology.device_count)
    return _machine_file.machine_file({}, 0.0, "auto",
                                      _machine_file.with_reserves(topology, reserves),
                                      problem.target)


def remarks_on(ranks: Sequence[RankFit], communicator: int | None) -> list[str]:
    remarks = []
    low = [rank for rank, one in enumerate(ranks) if one.rest < 0]
    if low:
        remarks.append(f"{name_ranks(low)} allocated less than the plan predicts for its "
                       "tables alone: p99_pooling may be too high, or the run had another batch "
                       "or plan")
    rests = [one.rest for one in ranks]
    if max(rests) > 0 and max(rests) - min(rests) > max(rests) / 2:
        remarks.append("what is allocated beside the tables differs by more than half between "
                       "ranks; a dense model is alike on all, so the prediction for the tables "
                       "may be off")
    if communicator is None:
        remarks.append(f"without {USED} of every rank the communicator's reserve stays as it was")
    return remarks
