r"""A training step whose ids travel during the step before, beside one that sends them itself.

    python -m neuroshard.bench.cluster 2x2@200mbit -m neuroshard.bench.pipelined \
        --topology machine.json

First a step without dense work is measured, and the exchange of ids in it. Then the dense work, a
sleep as an accelerator's looks to the host, makes the rest of a step as long as that exchange, and
steps with and without `ns.distributed.pipeline` take turns. Predicted are the costs of the same
plan under pipeline_depth 2 and 1 with that dense work."""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist

import neuroshard as ns
from neuroshard._arguments import Parser, whole
from neuroshard._group.agreement import gather, rank_of, size_of
from neuroshard.bench._output import parsed, write_output
from neuroshard.bench.step import model_of
from neuroshard.calibration import draw_ids

MODELS = ("8x4,4096,40", "16x8,2048,40")
ROWS = 100_000
WARM_UP = 4


@dataclass
class Measured:
    """Milliseconds per step, of the slowest rank. ids: the exchange of ids. dense: the work that was
    added. rest: a step without the exchange of ids, dense work included. plain, ahead: steps without
    and with a pipeline, and the costs that the planner gives them. spread: half the distance of the
    quartiles over the median, of ahead."""

    model: str
    ids: float
    dense: float
    rest: float
    plain: float
    ahead: float
    spread: float
    predicted_plain: float
    predicted_ahead: float


class Loop:
    """Steps of one module over the same batches."""

    def __init__(self, problem: ns.ShardingProblem, plan: ns.Plan, batch: int) -> None:
        self.tables = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.1, threads=1)
        self.batches = [draw_ids(problem, batch, one * size_of(None) + rank_of(None))
                        for one in range(4)]
        self.dense = 0.0

    def run(self, steps: int, depth: int) -> tuple[float, float]:
        """Milliseconds of a step, and of the exchange of ids in it, on this rank. The first batch,
        whose ids no step hides, does not count."""
        self.tables.reset_phases()
        begin = 0.0
        batches = (self.batches[one % len(self.batches)] for one in range(steps + 1))
        for number, batch in enumerate(self._batches(batches, depth)):
            if number == 1:
                dist.barrier()
                self.tables.reset_phases()
                begin = time.perf_counter()
            self._step(batch)
        took = (time.perf_counter() - begin) * 1e3 / steps
        return took, self.tables.terms()["input"] / steps

    def _batches(self, batches: Iterator[ns.distributed.Jagged], depth: int) -> Iterator:
        if depth == 1:
            return batches
        return ns.distributed.pipeline(batches, {self.tables: lambda ids: ids}, depth=depth)

    def _step(self, batch: ns.distributed.Jagged) -> None:
        results = list(self.tables(batch).values())
        time.sleep(self.dense / 1e3)
        torch.cat(results, 1).square().sum().backward()


def slowest(values: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of each turn, the largest figures of the ranks."""
    return [tuple(map(max, zip(*ranks))) for ranks in zip(*gather(values, None))]


def measure(name: str, problem: ns.ShardingProblem, options: argparse.Namespace) -> Measured:
    plan = ns.distributed.plan(problem)
    loop = Loop(problem, plan, problem.batch.global_size // size_of(None))
    loop.run(WARM_UP, 1)
    alone = slowest([loop.run(options.steps, 1) for _ in range(options.rounds)])
    step, ids = (statistics.median(column) for column in zip(*alone))
    loop.dense = max(0.0, 2 * ids - step)
    turns = {1: [], 2: []}
    for _ in range(options.rounds):
        for depth, taken in turns.items():
            taken.append(loop.run(options.steps, depth))
    plain, ahead = ([one for one, _ in slowest(taken)] for taken in turns.values())
    low, middle, high = statistics.quantiles(ahead, n=4)
    costs = [ns.evaluate(problem, plan, objective=ns.Objective(
        dense_rest_ms=loop.dense, pipeline_depth=depth)).cost_ms for depth in (1, 2)]
    loop.tables.close()
    return Measured(name, ids, loop.dense, step - ids + loop.dense, statistics.median(plain), middle,
                    (high - low) / 2 / middle, *costs)


def print_report(rows: list[Measured], ranks: int) -> None:
    print(f"milliseconds of a step on {ranks} ranks, one thread each")
    print(f"{'model':<14} {'ids':>8} {'dense':>8} {'rest':>8} {'plain':>8} {'ahead':>8} {'spread':>7} "
          f"{'ahead/max':>9} {'saved':>8} {'predicted':>9}")
    for row in rows:
        print(f"{row.model:<14} {row.ids:>8.2f} {row.dense:>8.2f} {row.rest:>8.2f} {row.plain:>8.2f} "
              f"{row.ahead:>8.2f} {row.spread:>7.1%} {row.ahead / max(row.ids, row.rest):>9.2f} "
              f"{row.plain - row.ahead:>8.2f} {row.predicted_plain - row.predicted_ahead:>9.2f}")


def problem_of(name: str, topology: ns.Topology | str) -> ns.ShardingProblem:
    tables, dim, batch, pooling = map(int, re.findall(r"\d+", name))
    return ns.ShardingProblem(
        tables=[ns.Table(f"t{one}", ROWS, dim, optimizer="rowwise_adagrad")
                for one in range(tables)],
        features=[ns.Feature(f"f{one}", f"t{one}", mean_pooling=pooling) for one in range(tables)],
        batch=batch * size_of(None), topology=topology)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="python -m neuroshard.bench.pipelined", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write all figures to this JSON file")
    parser.add_argument("--topology", help="machine file of neuroshard calibrate, or a topology as "
                                           "text (default: as many CPUs as ranks)")
    parser.add_argument("--model", type=model_of, action="append", dest="models",
                        help="TABLESxDIM,BATCH,POOLING, batch of each rank; may be given again "
                             f"(default: {' '.join(MODELS)})")
    parser.add_argument("--rounds", type=whole(2, 100000), default=5, help="turns of each loop")
    parser.add_argument("--steps", type=whole(1, 100000), default=20, help="of a turn")
    return parsed(parser, arguments)


def main() -> None:
    options = parse(sys.argv[1:])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    topology = options.topology or f"{size_of(None)}xCPU"
    rows = [measure(name, problem_of(name, topology), options)
            for name in options.models or MODELS]
    if rank_of(None) == 0:
        print_report(rows, size_of(None))
        if options.output:
            write_output(options.output, {
                "schema": "neuroshard.pipelined/1", "ranks": size_of(None),
                "options": vars(options), "steps": [asdict(row) for row in rows]})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
