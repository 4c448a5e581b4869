r"""A training step whose ids travel during the step before, beside one that sends them itself.

    python -m neuroshard.bench.cluster 2x2@200mbit -m neuroshard.bench.pipelined \
        --topology machine.json

First a step without dense work is measured, and its exchanges. Then dense work is added that makes
all computation as long as all exchanges: sleeps, as an accelerator's work looks to the host. A part
of it, as long as the exchanges of results and gradients, needs no embeddings and is done while these
travel. Steps with and without `ns.distributed.pipeline` take turns. Predicted are the costs of the same plan with
that dense work under pipeline_depth --depth and 1."""

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
TERMS = ("input", "forward_communication", "backward_communication")
WARM_UP = 4


@dataclass
class Measured:
    """Milliseconds per step, of the slowest rank. ids, results, gradients: the exchanges of a step
    without dense work. kernels: the rest of it. plain, ahead: steps with dense work, without and with
    a pipeline, and the costs that the planner gives them. spread: half the distance of the quartiles
    over the median, of ahead."""

    model: str
    ids: float
    results: float
    gradients: float
    kernels: float
    plain: float
    ahead: float
    spread: float
    predicted_plain: float
    predicted_ahead: float

    @property
    def least(self) -> float:
        """The longer of all exchanges and all computation."""
        exchange = self.ids + self.results + self.gradients
        return max(exchange, self.kernels + dense_of(self.ids, self.kernels) + self.results
                   + self.gradients)


class Dense(torch.autograd.Function):
    """Dense work that needs no embeddings: sleeps in its forward and in its backward."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor, forward_ms: float,
                backward_ms: float) -> torch.Tensor:
        ctx.backward_ms = backward_ms
        time.sleep(forward_ms / 1e3)
        return x.clone()

    @staticmethod
    def backward(ctx: object, gradient: torch.Tensor) -> tuple:
        time.sleep(ctx.backward_ms / 1e3)
        return gradient, None, None


class Loop:
    """Steps of one module over the same batches."""

    def __init__(self, problem: ns.ShardingProblem, plan: ns.Plan, batch: int) -> None:
        self.tables = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.1, threads=1)
        self.batches = [draw_ids(problem, batch, one * size_of(None) + rank_of(None))
                        for one in range(4)]
        # Milliseconds of dense work: while results and gradients travel, and between.
        self.bottom, self.rest = (0.0, 0.0), 0.0
        self.dense_input = torch.zeros(batch, 1, requires_grad=True)

    def run(self, steps: int, depth: int) -> tuple[float, ...]:
        """Milliseconds of a step and, in it, of the terms TERMS, on this rank. The first batch, whose
        ids no step hides, does not count."""
        begin = 0.0
        batches = (self.batches[one % len(self.batches)] for one in range(steps + 1))
        for number, batch in enumerate(self._batches(batches, depth)):
            if number == 1:
                dist.barrier()
                self.tables.reset_phases()
                begin = time.perf_counter()
            self._step(batch)
        took = (time.perf_counter() - begin) * 1e3 / steps
        terms = self.tables.terms()
        return took, *(terms[name] / steps for name in TERMS)

    def _batches(self, batches: Iterator[ns.distributed.Jagged], depth: int) -> Iterator:
        if depth == 1:
            return batches
        return ns.distributed.pipeline(batches, {self.tables: lambda ids: ids}, depth=depth)

    def _step(self, batch: ns.distributed.Jagged) -> None:
        pending = self.tables.start(batch)
        pending.look_up()
        dense = Dense.apply(self.dense_input, *self.bottom)
        results = list(pending.wait().values())
        time.sleep(self.rest / 1e3)
        torch.cat([dense, *results], 1).square().sum().backward()


def dense_of(ids: float, kernels: float) -> float:
    """The dense work that the exchange of ids has beside kernels, in milliseconds."""
    return max(0.0, ids - kernels)


def slowest(turns: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Of each turn, the largest figures of the ranks."""
    return [tuple(map(max, zip(*ranks))) for ranks in zip(*gather(turns, None))]


def measure(name: str, problem: ns.ShardingProblem, options: argparse.Namespace) -> Measured:
    plan = ns.distributed.plan(problem)
    loop = Loop(problem, plan, problem.batch.global_size // size_of(None))
    loop.run(WARM_UP, 1)
    alone = slowest([loop.run(options.steps, 1) for _ in range(options.rounds)])
    step, *exchanges = (statistics.median(column) for column in zip(*alone))
    kernels = step - sum(exchanges)
    ids, *loop.bottom = exchanges
    loop.rest = dense_of(ids, kernels)
    turns = {1: [], options.depth: []}
    for _ in range(options.rounds):
        for depth, taken in turns.items():
            taken.append(loop.run(options.steps, depth))
    plain, ahead = ([one[0] for one in slowest(taken)] for taken in turns.values())
    low, middle, high = statistics.quantiles(ahead, n=4)
    costs = [ns.evaluate(problem, plan, objective=ns.Objective(
        dense_bottom_ms=loop.bottom[0], dense_rest_ms=loop.rest + loop.bottom[1],
        pipeline_depth=depth)).cost_ms for depth in turns]
    loop.tables.close()
    return Measured(name, *exchanges, kernels, statistics.median(plain), middle,
                    (high - low) / 2 / middle, *costs)


def print_report(rows: list[Measured], ranks: int) -> None:
    print(f"milliseconds of a step on {ranks} ranks, one thread each")
    print(f"{'model':<14} {'ids':>8} {'results':>8} {'grads':>8} {'kernels':>8} {'plain':>8} "
          f"{'ahead':>8} {'spread':>7} {'over least':>10} {'saved':>8} {'predicted':>9}")
    for row in rows:
        print(f"{row.model:<14} {row.ids:>8.2f} {row.results:>8.2f} {row.gradients:>8.2f} "
              f"{row.kernels:>8.2f} {row.plain:>8.2f} {row.ahead:>8.2f} {row.spread:>7.1%} "
              f"{row.ahead / row.least:>10.2f} {row.plain - row.ahead:>8.2f} "
              f"{row.predicted_plain - row.predicted_ahead:>9.2f}")


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
    parser.add_argument("--depth", type=whole(2, 64), default=2, help="batches in flight")
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
