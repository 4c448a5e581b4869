r"""The experiments of the NeuroShard paper on its search, on random tasks like its own.

    python -m neuroshard.bench.paper ablations
    python -m neuroshard.bench.paper sweeps --tasks 50
    python -m neuroshard.bench.paper dims --devices 4 -o dims.json

ablations: the published search without its beam over column cuts, without the grid of dim limits,
and without both. sweeps: its candidates N, beam width K, rounds L and grid points M. dims: tables of
at most 4, 8, ..., 128 columns, each algorithm beside the best of four greedy ones. Costs are those of
the objective "published" under the cost model; nothing runs. Prints Markdown."""

from __future__ import annotations

import argparse
import sys

import neuroshard as ns
from neuroshard._arguments import Parser, whole
from neuroshard.bench._output import parsed, write_output
from neuroshard.bench._paper.experiments import (ABLATIONS, BASELINES, GREEDY, SWEEPS, Searches,
                                                 Solved, best_of, ratio, solve)
from neuroshard.bench._paper.tasks import make_task

LARGEST_DIM = 128
DIMS = (4, 8, 16, 32, 64, 128)


def tasks_of(options: argparse.Namespace, largest_dim: int) -> list[ns.ShardingProblem]:
    return [make_task(options.seed + one, options.devices, largest_dim)
            for one in range(options.tasks)]


def print_settings(title: str, solved: dict[str, Solved]) -> None:
    """Each row over the first."""
    base = next(iter(solved.values()))
    print(f"\n| {title} | solved | cost over the first row's | CPU s a task |\n|---|---:|---:|---:|")
    for name, one in solved.items():
        count = sum(cost is not None for cost in one.costs)
        print(f"| {name} | {count} of {len(one.costs)} | {ratio(one, base):.4f} | "
              f"{one.seconds / len(one.costs):.3f} |", flush=True)


def run_settings(options: argparse.Namespace, title: str, searches: Searches) -> dict[str, Solved]:
    solved = solve(tasks_of(options, LARGEST_DIM), searches, options.cost_model)
    print_settings(title, solved)
    return solved


def run_dims(options: argparse.Namespace) -> dict[str, Solved]:
    print("\n| largest dim | " + " | ".join(BASELINES)
          + " |\n|---:|" + "---:|" * len(BASELINES))
    found = {}
    for dim in DIMS:
        solved = solve(tasks_of(options, dim), BASELINES, options.cost_model)
        base = best_of(solved, GREEDY)
        print(f"| {dim} | " + " | ".join(f"{ratio(one, base):.3f}" for one in solved.values())
              + " |", flush=True)
        found |= {f"{name}, dims to {dim}": one for name, one in solved.items()}
    return found


def run(options: argparse.Namespace) -> dict[str, Solved]:
    if options.experiment == "ablations":
        return run_settings(options, "search", ABLATIONS)
    if options.experiment == "dims":
        return run_dims(options)
    found = {}
    for letter, searches in SWEEPS.items():
        found |= run_settings(options, letter, searches)
    return found


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="neuroshard.bench.paper", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=("ablations", "sweeps", "dims"))
    parser.add_argument("-o", "--output", help="write all costs to this JSON file")
    parser.add_argument("--tasks", type=whole(1, 100000), default=50)
    parser.add_argument("--devices", type=whole(1, 1024), default=4)
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), default=1, help="of the first task")
    parser.add_argument("--cost-model", default="reference",
                        help="one that serves the objective published")
    return parsed(parser, arguments)


def main() -> int:
    options = parse(sys.argv[1:])
    try:
        solved = run(options)
    except (OSError, ns.Error) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.output:
        write_output(options.output, {
            "schema": "neuroshard.paper/1", "options": vars(options),
            "costs_ms": {name: one.costs for name, one in solved.items()}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
