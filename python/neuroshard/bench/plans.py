r"""Runs the plans of every algorithm on the ranks of a process group, side by side.

    torchrun --nproc-per-node 2 -m neuroshard.bench.plans -o plans.json
    python -m neuroshard.bench.cluster 2x2@200mbit -m neuroshard.bench.plans \
        --topology 2x2xCPU@200mbit -o plans.json

All plans of a task are open at once and take turns step by step. A step is the lookups and updates
of one batch, without a dense part; its time is that of the slowest rank.

--no-copies adds the default plan that copies no table ("no copies").

--torchrec also runs TorchRec's DistributedModelParallel, under the plan of TorchRec's own planner
("dmp torchrec"), which knows the poolings and the links of the topology, and under ours for it
("dmp default")."""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import asdict, dataclass, field

import torch
import torch.distributed as dist

import neuroshard as ns
from neuroshard._arguments import Parser, real, whole
from neuroshard._group.agreement import gather
from neuroshard._vocabulary import KINDS, WIRE_TYPES
from neuroshard.bench._output import parsed, write_output
from neuroshard.bench._plans.report import print_report
from neuroshard.calibration import (Steps, Tables, exposed_exchange_ms, make_task, measure_steps,
                                    of_ranks, open_plan)
from neuroshard.constraints import TableRule
from neuroshard.errors import Unsupported

NO_COPIES = "no copies"


@dataclass
class Measured:
    """One plan of one task. Times in milliseconds per step; predicted and measured have the same
    terms: step, forward, backward (the slowest rank's kernels), and exchange (ids, and what results
    and gradients add to the slowest kernels). TorchRec's engine has a measured step alone.
    sent_bytes: of a step, over the network cards of all hosts. memory_bytes: of the fullest
    device, planned."""

    task: int
    algorithm: str
    engine: str = "neuroshard"
    predicted: dict[str, float] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)
    sent_bytes: float = 0
    memory_bytes: int = 0
    spread: float = 0  # half the distance of the quartiles over the median of the step
    failure: str = ""


def predict(result: ns.PlanResult) -> dict[str, float]:
    parts = result.breakdown
    return {"step": parts.cost_ms, "forward": parts.max_forward_ms,
            "backward": parts.max_backward_ms, "exchange": parts.exchange_ms,
            "low": parts.low_ms, "high": parts.high_ms}


def searches_of(options: argparse.Namespace) -> dict[str, dict]:
    """The arguments of plan() by the name of a row."""
    searches = {name: {"algorithm": name} for name in options.algorithms.split(",")}
    if options.wire_types:
        searches[f"wire {options.wire_types}"] = {"wire_types": options.wire_types}
    if options.no_copies:
        searches[NO_COPIES] = {}
    return searches


def without_copies(problem: ns.ShardingProblem) -> ns.ShardingProblem:
    kinds = [kind for kind in KINDS if kind != "replicated"]
    rules = tuple(TableRule(table.name, kinds) for table in problem.tables)
    return problem.replace(constraints=problem.constraints.replace(tables=rules))


def plan_all(problem: ns.ShardingProblem, searches: dict[str, dict],
             cost_model: str) -> dict[str, tuple]:
    """(plan, predicted terms, bytes of the fullest device, failure) by search, as rank 0 plans
    them."""
    plans = {}
    if dist.get_rank() == 0:
        for name, search in searches.items():
            try:
                given = without_copies(problem) if name == NO_COPIES else problem
                result = ns.plan(given, cost_model=cost_model, **search)
                plans[name] = (result.plan.to_json(), predict(result), result.memory.peak_bytes,
                               "")
            except ns.PlanningError as error:
                plans[name] = (None, {}, 0, str(error).splitlines()[0])
    return gather(plans, None)[0]


def measure_task(task: int, problem: ns.ShardingProblem,
                 options: argparse.Namespace) -> list[Measured]:
    plans = plan_all(problem, searches_of(options), options.cost_model)
    rows = {name: Measured(task, name, predicted=predicted, memory_bytes=memory, failure=failure)
            for name, (_, predicted, memory, failure) in plans.items()}
    opened = {name: open_plan(text, problem) for name, (text, *_) in plans.items() if text}
    if options.torchrec is not None:
        try:
            opened |= open_torchrec(problem, options.torchrec or options.cost_model)
        except Unsupported as error:  # FBGEMM has no Adam for CPUs
            rows["dmp torchrec"] = Measured(task, "dmp torchrec", "torchrec", failure=str(error))
    for name, steps in measure_steps(problem, opened, options.rounds).items():
        summarise(rows.setdefault(name, Measured(task, name, "torchrec")), steps)
    return list(rows.values())


def open_torchrec(problem: ns.ShardingProblem, cost_model: str) -> dict[str, Tables]:
    from neuroshard.calibration import torchrec_engine as torchrec

    torchrec.check(problem)
    planned = torchrec.problem_for_torchrec(problem)
    ours = plan_all(planned, {"default": {}}, cost_model)["default"][0]
    plans = {"dmp torchrec": torchrec.plan_of_torchrec(problem)}
    if ours:
        plans["dmp default"] = torchrec.plan_for_torchrec(ours, problem)
    return {name: torchrec.open_torchrec(plan, problem) for name, plan in plans.items()}


def summarise(row: Measured, steps: Steps) -> None:
    quarters = statistics.quantiles(steps.step, n=4)
    row.spread = (quarters[2] - quarters[0]) / 2 / quarters[1]
    row.measured = {"step": quarters[1]}
    row.sent_bytes = steps.sent_bytes
    if row.engine == "neuroshard":
        row.measured |= {
            "forward": max(of_ranks(steps, "forward")),
            "backward": max(of_ranks(steps, "backward")),
            "exchange": exposed_exchange_ms(steps)}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="neuroshard-bench plans", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write all figures to this JSON file")
    parser.add_argument("--tasks", type=whole(1, 10000), default=10)
    parser.add_argument("--rounds", type=whole(4, 1000000), default=20,
                        help="timed steps of each plan")
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), default=1, help="of the first task")
    parser.add_argument("--batch", type=whole(1, 2**31), default=2048,
                        help="samples over all ranks")
    parser.add_argument("--megabytes", type=real(0.001, 1e6), default=120,
                        help="of a task's weights, about")
    parser.add_argument("--fewest-rows", type=whole(1, 1000), default=1000,
                        help="of a table; their logarithms are spread evenly")
    parser.add_argument("--topology", help="that plans are made for (default: one node of the ranks)")
    parser.add_argument("--cost-model", default="auto", help="of the plans, such as a machine file")
    parser.add_argument("--algorithms", default=",".join(ns.algorithms()))
    parser.add_argument("--wire-types", default="",
                        help="also the default plan whose wire type is chosen among these, or auto")
    parser.add_argument("--no-copies", action="store_true",
                        help="also the default plan that copies no table")
    parser.add_argument("--torchrec", nargs="?", const="", metavar="COST_MODEL",
                        help="also runs TorchRec's engine; the cost model of our plan for it, such as "
                             "a machine file of its steps (default: that of --cost-model)")
    options = parsed(parser, arguments)
    unknown = set(options.algorithms.split(",")) - set(ns.algorithms())
    if unknown:
        parser.error(f"unknown algorithm {sorted(unknown)[0]}; there are "
                     f"{', '.join(ns.algorithms())}")
    strange = set(options.wire_types.split(",")) - {"", "auto", *WIRE_TYPES}
    if strange:
        parser.error(f"--wire-types: unknown wire type {sorted(strange)[0]}; there are auto, "
                     f"{', '.join(WIRE_TYPES)}")
    return options


def main() -> None:
    options = parse(sys.argv[1:])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    topology = options.topology or f"{dist.get_world_size()}xCPU"
    rows: list[Measured] = []
    for task in range(options.tasks):
        problem = make_task(options.seed + task, topology, options.batch, options.megabytes,
                            options.fewest_rows)
        rows += measure_task(task, problem, options)
        if dist.get_rank() == 0:
            print(f"task {task + 1} of {options.tasks}: {len(problem.tables)} tables",
                  file=sys.stderr, flush=True)
    if dist.get_rank() == 0:
        print_report([asdict(row) for row in rows], dist.get_world_size())
        if options.output:
            write_output(options.output, {
                "schema": "neuroshard.run_plans/1", "ranks": dist.get_world_size(),
                "options": vars(options), "plans": [asdict(row) for row in rows]})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
