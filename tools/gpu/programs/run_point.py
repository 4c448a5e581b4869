#!/usr/bin/env python3
"""Runs forward and training step of one speed point without timing them, for a profiler:
ncu ... tools/gpu/programs/run_point.py ARTIFACTS NAME [--dry-run]. The steps come after two to warm up."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import processes  # noqa: E402

processes.die_with_parent()

import torch  # noqa: E402

import paths  # noqa: E402, F401
from contenders import Ours  # noqa: E402
from inputs import make_sets  # noqa: E402
from machine import Machine  # noqa: E402
from points import TABLES, listed, tiny  # noqa: E402
from support.model import DTYPES  # noqa: E402

WARM_UP, SETS = 2, 2


def main():
    folder, name, dry = Path(sys.argv[1]), sys.argv[2], "--dry-run" in sys.argv[3:]
    machine = Machine(dry)
    point = next(point for point in (tiny() if dry else listed()) if point.name == name)
    weights = torch.zeros((TABLES * point.rows, point.dim), dtype=DTYPES[point.dtype],
                          device=machine.place).uniform_(-0.01, 0.01)
    state = torch.zeros(TABLES * point.rows, device=machine.place)
    sets = make_sets(point, TABLES, SETS, machine.place)
    ours = Ours(folder / "speed" / point.program, machine,
                list(zip(weights.chunk(TABLES), state.chunk(TABLES))), sets, point.bags)
    for number in range(WARM_UP + 1):
        if number == WARM_UP and not dry:
            machine.synchronize()
            torch.cuda.profiler.start()
        for given in sets if number < WARM_UP else sets[:1]:
            ours.forward(given)
            ours.step(given)
    machine.synchronize()
    if not dry:
        torch.cuda.profiler.stop()
    ours.check()
    ours.close()


if __name__ == "__main__":
    main()
