r"""Wall and CPU time of a training step: our module, and TorchRec's DistributedModelParallel with
its own planner.

    torchrun --nproc-per-node 2 -m neuroshard.bench.step
    torchrun --nproc-per-node 1 -m neuroshard.bench.step --model 20x32,256,4 --engines apart

All engines are open at once and take turns; a figure is the median over the turns, of the slowest
rank. "apart" is our module with the dense work told apart: CPU is that of the module alone, and on
one rank "outside" is its CPU time without the phases of the runtime (routing, lookups, updates):
what the host spends to get there."""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
import warnings
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist

from neuroshard._arguments import Parser, whole
from neuroshard._group.agreement import gather
from neuroshard.bench._output import parsed, write_output
from neuroshard.bench._step.engines import ENGINES, Engine, Model

MODELS = ("20x32,256,4", "26x64,1024,4", "26x128,2048,8")
OPTIMIZERS = ("sgd", "adagrad", "rowwise_adagrad")
WARM_UP = 10


@dataclass
class Turn:
    """Milliseconds per step. cpu: without the dense work, where the engine tells it apart."""

    wall: float
    cpu: float
    phases: float


@dataclass
class Measured:
    """Milliseconds per step, of the slowest rank. spread: half the distance of the quartiles over the
    median, of wall."""

    model: str
    engine: str
    wall: float
    cpu: float
    phases: float
    spread: float


def take_turn(engine: Engine, steps: int) -> Turn:
    dist.barrier()
    engine.reset()
    wall, cpu = time.perf_counter(), time.process_time()
    dense = sum(engine.step(number) or 0.0 for number in range(steps))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu - dense
    return Turn(wall * 1e3 / steps, cpu * 1e3 / steps, engine.phases() / steps)


def measure(name: str, model: Model, options: argparse.Namespace) -> list[Measured]:
    engines = {engine: ENGINES[engine](model, options.input) for engine in options.engines}
    turns: dict[str, list[Turn]] = {engine: [] for engine in engines}
    for engine in engines.values():
        take_turn(engine, WARM_UP)
    for _ in range(options.rounds):
        for one, engine in engines.items():
            turns[one].append(take_turn(engine, options.steps))
    for engine in engines.values():
        engine.close()
    return [summarise(name, one, gather(own, None)) for one, own in turns.items()]


def summarise(model: str, engine: str, turns: list[list[Turn]]) -> Measured:
    """turns: by rank."""
    def middle(figure: str) -> float:
        return max(statistics.median(getattr(turn, figure) for turn in rank) for rank in turns)

    walls = [max(turn.wall for turn in ranks) for ranks in zip(*turns)]
    low, _, high = statistics.quantiles(walls, n=4)
    wall = statistics.median(walls)
    return Measured(model, engine, wall, middle("cpu"), middle("phases"), (high - low) / 2 / wall)


def print_report(rows: list[Measured], ranks: int) -> None:
    print(f"milliseconds of a step on {ranks} rank{'s' if ranks > 1 else ''}, one thread each")
    print(f"{'model':<16} {'engine':<12} {'wall':>9} {'spread':>8} {'CPU':>9} {'outside':>9} "
          f"{'wall over ours':>15}")
    for row in rows:
        same = {other.engine: other for other in rows if other.model == row.model}
        outside = over = ""
        if row.engine == "apart" and ranks == 1:
            outside = f"{row.cpu - row.phases:.3f}"
        if row.engine == "torchrec" and "neuroshard" in same:
            over = f"{row.wall / same['neuroshard'].wall:.2f}"
        print(f"{row.model:<16} {row.engine:<12} {row.wall:>9.3f} {row.spread:>8.1%} "
              f"{row.cpu:>9.3f} {outside:>9} {over:>15}")


def model_of(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d{0,3}x[1-9]\d{0,3},[1-9]\d{0,6},[1-9]\d{0,3}", text):
        raise argparse.ArgumentTypeError(
            f"expected TABLESxDIM,BATCH,POOLING such as {MODELS[0]}, got: {text!r}")
    return text


def engines_of(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in ENGINES:
            raise argparse.ArgumentTypeError(
                f"unknown engine {name!r}; there are {', '.join(ENGINES)}")
    return names


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="neuroshard-bench step", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write all figures to this JSON file")
    parser.add_argument("--model", type=model_of, action="append", dest="models",
                        help="TABLESxDIM,BATCH,POOLING, batch of each rank; may be given again "
                             f"(default: {' '.join(MODELS)})")
    parser.add_argument("--engines", type=engines_of, default=list(ENGINES),
                        help=f"of {', '.join(ENGINES)} (default: all)")
    parser.add_argument("--input", choices=("keyed", "jagged"), default="keyed",
                        help="of \"neuroshard\": KeyedJaggedTensor or ns.Jagged")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="rowwise_adagrad")
    parser.add_argument("--rounds", type=whole(2, 100000), default=7, help="turns of each engine")
    parser.add_argument("--steps", type=whole(1, 100000), default=30, help="of a turn")
    return parsed(parser, arguments)


def main() -> None:
    options = parse(sys.argv[1:])
    warnings.filterwarnings("ignore", module="torchrec|torch|fbgemm_gpu")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rows: list[Measured] = []
    for name in options.models or MODELS:
        tables, dim, batch, pooling = map(int, re.findall(r"\d+", name))
        rows += measure(name, Model(tables, dim, batch, pooling, options.optimizer), options)
    if dist.get_rank() == 0:
        print_report(rows, dist.get_world_size())
        if options.output:
            write_output(options.output, {
                "schema": "neuroshard.step/1", "ranks": dist.get_world_size(),
                "options": vars(options), "steps": [asdict(row) for row in rows]})
    sys.stdout.flush()
    os._exit(0)  # TorchRec's threads outlive destroy_process_group()


if __name__ == "__main__":
    main()
