r"""Our copies of tables beside TorchRec's, on the ranks of a process group.

    PYTHONOPTIMIZE=1 python -m neuroshard.bench.cluster 2x2@200mbit -m neuroshard.bench.replicas \
        --topology machine.json --cost-model machine.json

Runs our default plan, TorchRec's DistributedModelParallel, and its DMPCollection with every size of
groups, each of which has all tables; groups do not exchange rows, and are averaged by sync() every so
many steps. TorchRec plans by its own planner. PYTHONOPTIMIZE=1 skips TorchRec's assertion that
DMPCollection has a GPU.

A step is the lookups and updates of one batch, without a dense part; its time is that of the slowest
rank. Then all engines train from the same weights on the same batches, and are compared with training
without sharding."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist

import neuroshard as ns
from neuroshard._arguments import Parser, real, whole
from neuroshard._group.agreement import gather, rank_of, size_of
from neuroshard._jagged import Jagged
from neuroshard.bench._output import parsed, write_output
from neuroshard.bench._replicas import engines
from neuroshard.bench._replicas.engines import Engine
from neuroshard.calibration import card_bytes, draw_ids, make_task, torchrec_engine

WARM_UP = 3


@dataclass
class Row:
    """step_ms, sync_ms: medians; sync 0 if there is none. bytes: that a step, or a sync, sends over the
    network cards of all hosts. difference: largest of a weight to unsharded training, by the steps
    between two syncs; 0 steps: none."""

    engine: str
    step_ms: float
    step_bytes: float
    sync_ms: float
    sync_bytes: float
    difference: dict[int, float]

    def step_with_sync_ms(self, every: int) -> float:
        return self.step_ms + self.sync_ms / every


def timed(function: Callable[[], None], rounds: int) -> tuple[float, float]:
    """Median milliseconds of the slowest rank, and bytes over the cards of all hosts a round."""
    times, sent = [], 0
    for turn in range(WARM_UP + rounds):
        dist.barrier()
        before, begin = card_bytes(), time.perf_counter()
        function()
        if turn >= WARM_UP:
            times.append((time.perf_counter() - begin) * 1e3)
            sent += card_bytes() - before
    slowest = [max(one) for one in zip(*gather(times, None))]
    return statistics.median(slowest), sum(gather(sent, None)) / rounds


def join(parts: list[Jagged], features: int) -> Jagged:
    """The global batch of the local ones."""
    lengths = [part.offsets.diff().view(features, -1) for part in parts]
    ids = [part.ids.split([int(one.sum()) for one in length])
           for part, length in zip(parts, lengths)]
    joined = torch.cat([one[feature] for feature in range(features) for one in ids])
    all_lengths = torch.cat(lengths, dim=1).flatten()
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), all_lengths.cumsum(0)])
    return Jagged(joined, offsets)


class Training:
    """Weights to begin with, batches, and the weights after training without sharding."""

    def __init__(self, problem: ns.ShardingProblem, steps: int) -> None:
        size, rank = size_of(None), rank_of(None)
        local = problem.batch.global_size // size
        parts = [[draw_ids(problem, local, 1000 + step * size + one) for one in range(size)]
                 for step in range(steps)]
        self.batches = [part[rank] for part in parts]
        generator = torch.Generator().manual_seed(1)
        self.begin = {table.name: torch.randn(table.rows, table.dim, generator=generator)
                      / table.dim for table in problem.tables}
        self.end = {name: torch.empty_like(one) for name, one in self.begin.items()}
        if rank == 0:
            joined = [join(part, len(problem.features)) for part in parts]
            self.end = engines.train_whole(problem, self.begin, joined, size)
        for name in sorted(self.end):
            dist.broadcast(self.end[name], 0)

    def difference(self, engine: Engine, sync_every: int) -> float:
        """Largest of a weight on any rank. sync_every: 0 for never; after the last step always."""
        for piece in engine.pieces():
            piece.weights.copy_(self.begin[piece.table][piece.rows, piece.cols])
        for step, ids in enumerate(self.batches, start=1):
            engine.step(ids)
            if sync_every and (step % sync_every == 0 or step == len(self.batches)):
                engine.sync()
        found = max((float((piece.weights - self.end[piece.table][piece.rows, piece.cols]).abs().max())
                     for piece in engine.pieces() if piece.weights.numel()), default=0.0)
        return max(gather(found, None))


def openers(problem: ns.ShardingProblem, cost_model: str) -> Iterator[tuple[str, Callable[[], Engine]]]:
    """(name, function that opens it) of all engines."""
    def ours() -> Engine:
        text = ns.plan(problem, cost_model=cost_model).plan.to_json() if rank_of(None) == 0 else ""
        return engines.open_ours(gather(text, None)[0], problem)

    yield "neuroshard", ours
    yield "dmp", lambda: engines.open_dmp(problem)
    size = size_of(None)
    for group in range(1, size):
        if size % group:
            continue
        for inside in (True, False):
            if group == 1 and not inside:
                continue  # the same
            order = "" if group == 1 else " that follow each other" if inside else " of all hosts"
            yield (f"collection, groups of {group}{order}",
                   lambda group=group, inside=inside: engines.open_collection(problem, group, inside))


def measure(problem: ns.ShardingProblem, options: argparse.Namespace) -> list[Row]:
    training = Training(problem, options.steps)
    ids = draw_ids(problem, problem.batch.global_size // size_of(None), rank_of(None))
    rows = []
    for name, opener in openers(problem, options.cost_model):
        # Anew for each training, as optimizers have states.
        every = options.sync_every if name.startswith("collection") else [0]
        difference = {}
        for one in every:
            engine = opener()
            difference[one] = training.difference(engine, one)
            if one != every[-1]:
                engine.close()
        step = timed(lambda: engine.step(ids), options.rounds)
        sync = timed(engine.sync, options.rounds) if engine.sync else (0, 0)
        engine.close()
        rows.append(Row(name, *step, *sync, difference))
        if rank_of(None) == 0:
            print(f"{name}: {step[0]:.0f} ms", file=sys.stderr, flush=True)
    return rows


def report(rows: list[Row]) -> None:
    ours = rows[0].step_ms
    print(f"{'engine':50} {'sync every':>10} {'step, ms':>9} {'x ours':>7} {'MB a step':>10} "
          f"{'largest difference':>18}")
    for row in rows:
        for every, difference in row.difference.items():
            step = row.step_with_sync_ms(every) if every else row.step_ms
            sent = row.step_bytes + (row.sync_bytes / every if every else 0)
            print(f"{row.engine:50} {every or '':>10} {step:9.1f} {step / ours:7.2f} "
                  f"{sent / 1e6:10.2f} {difference:18.1e}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="neuroshard.bench.replicas", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write all figures to this JSON file")
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), default=501, help="of the model")
    parser.add_argument("--rounds", type=whole(1, 10000), default=5, help="timed steps")
    parser.add_argument("--steps", type=whole(1, 10000), default=50, help="of training")
    parser.add_argument("--sync-every", type=whole(1, 10000), nargs="+", default=[10, 1],
                        help="steps between two syncs of a DMPCollection")
    parser.add_argument("--batch", type=whole(1, 2**31), default=2048, help="samples over all ranks")
    parser.add_argument("--megabytes", type=real(0.001, 1e6), default=60, help="of weights, about")
    parser.add_argument("--fewest-rows", type=whole(1, 1000), default=10,
                        help="of a table; their logarithms are spread evenly")
    parser.add_argument("--topology", help="that plans are made for (default: one node of the ranks)")
    parser.add_argument("--cost-model", default="auto", help="of our plan, such as a machine file")
    return parsed(parser, arguments)


def main() -> None:
    options = parse(sys.argv[1:])
    if __debug__:
        sys.exit("neuroshard.bench.replicas: TorchRec's DMPCollection asserts a GPU; set PYTHONOPTIMIZE=1, "
                 "without which it does not run on CPUs")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    given = make_task(options.seed, options.topology or f"{dist.get_world_size()}xCPU",
                      options.batch, options.megabytes, options.fewest_rows)
    # With an optimizer that TorchRec has on CPUs.
    problem = given.replace(tables=torchrec_engine.problem_for_torchrec(given).tables)
    rows = measure(problem, options)
    if dist.get_rank() == 0:
        report(rows)
        if options.output:
            write_output(options.output, {"schema": "neuroshard.replicas/1", "options": vars(options),
                                          "engines": [asdict(row) for row in rows]})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
