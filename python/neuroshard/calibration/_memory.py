"""What the process of a rank takes beside what plans predict for their tables, in bytes.

A process has memory before it holds any table: Python, torch, our runtime, the process group. Libraries
that the ranks of a host share count in parts. Then tables are opened and run some steps; what the process
grows by, at its peak, is beside what the plan predicts without its reserves."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from neuroshard._group.agreement import gather, rank_of, size_of
from neuroshard._jagged import Jagged
from neuroshard.calibration._engines import Tables
from neuroshard.calibration._models import draw_ids
from neuroshard.constraints import Reserves
from neuroshard.planning import inspect
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

STEPS = 2


@dataclass(frozen=True)
class Use:
    """Of one plan, by rank. process: before it was opened. grown: at the peak. predicted: without
    reserves."""

    process: list[int]
    grown: list[int]
    predicted: list[int]


@dataclass(frozen=True)
class Memory:
    """process: the least before a plan was opened, of the rank with most. beyond: the most that a
    process has grown by beyond what was predicted, not below 0. least, most: what processes have grown
    by, over what was predicted."""

    process: int
    beyond: int
    least: float
    most: float

    @property
    def reserves(self) -> Reserves:
        """No dense model has run, so its reserve is not among them."""
        return Reserves(fragmentation_bytes=self.beyond, communicator_bytes=self.process)


def fit(uses: Sequence[Use]) -> Memory:
    """The first plan does not count, unless it is the only one: the libraries of the engine are loaded
    with it, which no plan predicts and all later ones find there."""
    later = uses[1:] or uses
    before = [max(use.process) for use in later]
    pairs = [pair for use in later for pair in zip(use.grown, use.predicted)]
    shares = [grown / predicted for grown, predicted in pairs if predicted > 0]
    return Memory(min(before), max(0, *(grown - predicted for grown, predicted in pairs)),
                  min(shares), max(shares))


def opened(open_one: Callable[[str, ShardingProblem], Tables], plan: str, problem: ShardingProblem
           ) -> tuple[Tables, Use]:
    """Opens a plan, JSON, and runs some steps of it. All ranks call it together."""
    rank, size = rank_of(None), size_of(None)
    ids = draw_ids(problem, problem.batch.global_size // size, rank)
    give_back()
    process, before = proportional_bytes(), resident_bytes()
    # No rank opens before all have looked at themselves.
    has_peak = all(gather(reset_peak(), None))
    tables = open_one(plan, problem)
    given = tables.given(ids)
    for _ in range(STEPS):
        tables.step(given)
    most = peak_bytes() if has_peak else resident_bytes()
    grown = most - before + problem.batch.input_copies * bytes_of(ids)
    predicted = inspect(problem, Plan.from_json(plan), cost_model="roofline").memory.devices
    return tables, Use(*zip(*gather((process, grown), None)),
                       [one.peak_bytes - one.reserved_bytes for one in predicted])


def bytes_of(ids: Jagged) -> int:
    return sum(one.numel() * one.element_size() for one in ids if isinstance(one, torch.Tensor))


def give_back() -> None:
    """Lets malloc give back what is free, so that it does not hide what a plan takes."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def entry_of(file: str, name: str) -> int:
    """Bytes of a line such as "VmHWM:  1234 kB" in a file of /proc/self."""
    with open(f"/proc/self/{file}", encoding="ascii") as lines:
        for line in lines:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/{file} has no line {name}")


def resident_bytes() -> int:
    return entry_of("status", "VmRSS")


def proportional_bytes() -> int:
    """Resident, pages that several processes share counted in parts."""
    return entry_of("smaps_rollup", "Pss")


def peak_bytes() -> int:
    """Most that was resident since reset_peak()."""
    return entry_of("status", "VmHWM")


def reset_peak() -> bool:
    """False where the system does not allow it; memory is then measured after the steps alone."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return False
    return True
