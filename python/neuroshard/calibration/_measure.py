"""Runs a model under several plans on all ranks in turns, and times their steps term by term.

All of them are open at once and take turns step by step, so that other load on the machine affects all
of them alike. A step is the lookups and updates of one batch, without a dense part; its time is that
of the slowest rank."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch.distributed as dist

from neuroshard._group.agreement import gather, rank_of, size_of
from neuroshard.calibration._engines import Tables
from neuroshard.calibration._models import draw_ids
from neuroshard.problem import ShardingProblem

INPUT_SETS = 4
WARM_UP = 3


@dataclass(frozen=True)
class Steps:
    """The steps of one plan. Milliseconds. step: of the slowest rank, step by step. phases: per step,
    by rank, then by phase; without any if the engine does not say. sent_bytes: that a step sends over
    the network cards of all hosts, with headers and all that its waiting costs."""

    step: list[float]
    phases: list[dict[str, float]]
    sent_bytes: float = 0


def card_bytes() -> int:
    """Sent so far by the network cards that this rank sees, if it is the first one of its host."""
    devices = Path("/proc/self/net/dev")
    if os.environ.get("LOCAL_RANK", "0") != "0" or not devices.exists():
        return 0
    lines = [line.split(":") for line in devices.read_text().splitlines()[2:]]
    return sum(int(numbers.split()[8]) for name, numbers in lines if name.strip() != "lo")


def measure_steps(problem: ShardingProblem, opened: Mapping[str, Tables],
                  rounds: int) -> dict[str, Steps]:
    """Runs so many steps of each, after some to warm up, and closes them. All ranks have the same
    names."""
    rank, size = rank_of(None), size_of(None)
    ids = [draw_ids(problem, problem.batch.global_size // size, one * size + rank)
           for one in range(INPUT_SETS)]
    given = {name: [tables.given(one) for one in ids] for name, tables in opened.items()}
    times: dict[str, list[float]] = {name: [] for name in opened}
    sent = dict.fromkeys(opened, 0)
    for turn in range(WARM_UP + rounds):
        for name, tables in opened.items():
            if turn == WARM_UP:
                tables.reset()
            if size > 1:
                dist.barrier()
            sent_before = card_bytes()
            begin = time.perf_counter()
            tables.step(given[name][turn % INPUT_SETS])
            if turn >= WARM_UP:
                times[name].append((time.perf_counter() - begin) * 1e3)
                sent[name] += card_bytes() - sent_before
    found = {name: Steps([max(one) for one in zip(*gather(times[name], None))],
                        gather({phase: spent / rounds
                                for phase, spent in tables.phases().items()}, None),
                         sum(gather(sent[name], None)) / rounds)
            for name, tables in opened.items()}
    for tables in opened.values():
        tables.close()
    return found
