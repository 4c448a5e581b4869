"""Trains the model three times on the same batches: sharded by NeuroShard's plan, by TorchRec
under the same plan, and by PyTorch without sharding; and compares what comes out.

    torchrun --nproc-per-node 4 -m movielens.train --out results
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.distributed as dist
from torchmetrics.functional.classification import binary_auroc

import neuroshard as ns

from movielens import report
from movielens.checks import LEARNING_RATES, SMALLER_WIRE_TYPES, Update, one_update
from movielens.data import Batch, MovieLens
from movielens.model import Dlrm, Trainer
from movielens.neuroshard_tables import NeuroShardTables
from movielens.problem import sharding_problem
from movielens.served_tables import FrozenTables
from movielens.torchrec_tables import TorchRecTables
from movielens.unsharded import UnshardedTables

# A large eps moves rarely seen rows less, so that the model overfits less.
OPTIMIZER = ns.Optimizer("adagrad", eps=1e-2)
LEARNING_RATE = 0.02
# Steps of one run before the next takes its turn, so that other load affects all runs alike.
TURN = 10
TEST_BATCH = 1000


@dataclass
class Run:
    """One of the three runs, its losses and the seconds of its steps. cpu_seconds: of this process
    over all steps."""

    name: str
    trainer: Trainer
    distributed: bool
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: float = 0
    auc: float = float("nan")

    def train(self, batches: list[Batch]) -> None:
        for batch in batches:
            started, cpu_started = time.perf_counter(), time.process_time()
            self.losses.append(self.trainer.step(batch))
            self.seconds.append(time.perf_counter() - started)
            self.cpu_seconds += time.process_time() - cpu_started


class Job:
    """One process of the training."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.data = MovieLens()
        self.problem = sharding_problem(self.data, dim=options.dim, batch=options.batch,
                                        devices=self.size, optimizer=OPTIMIZER)
        self.plan = ns.distributed.plan(self.problem)
        if self.rank == 0:
            report.print_problem(self.data, self.plan)

    def main(self) -> bool:
        """Trains and compares; returns whether everything agrees."""
        updates = self.check_updates()
        runs = self.make_runs()
        if self.rank == 0:
            report.print_start(self.options.steps, self.options.batch)
        self.train(runs)
        for run in runs:
            run.auc = self.auc(run)
            self.gather(run)
        served = self.serve(runs[0])
        if self.rank != 0:
            return True
        report.print_runs(runs)
        agrees = report.conclude(self.options.out, self.plan, updates, runs)
        return report.conclude_served(runs[0], served) and agrees

    def check_updates(self) -> list[Update]:
        if self.rank == 0:
            report.print_updates_head()
        updates = []
        for kind in LEARNING_RATES:
            updates.append(one_update(self.data, kind, dim=self.options.dim,
                                      batch=self.options.batch))
            if self.rank == 0:
                report.print_update(updates[-1])
        return updates

    def make_runs(self) -> list[Run]:
        """The runs, which all start from the first weights of NeuroShard's shards."""
        sharded = NeuroShardTables(self.plan, self.problem, LEARNING_RATE)
        weights, _ = sharded.whole()
        torchrec = TorchRecTables(self.data, self.plan, weights, OPTIMIZER, LEARNING_RATE)
        runs = [Run("NeuroShard", self.trainer(sharded, True), True),
                Run("TorchRec", self.trainer(torchrec, True), True)]
        for wire_type in self.options.wire:
            smaller = self.problem.replace(batch=self.problem.batch.replace(wire_type=wire_type))
            tables = NeuroShardTables(self.plan, smaller, LEARNING_RATE)
            runs.append(Run(wire_type, self.trainer(tables, True), True))
        unsharded = UnshardedTables(self.data, weights, OPTIMIZER, LEARNING_RATE)
        return [*runs, Run("unsharded", self.trainer(unsharded, False), False)]

    def serve(self, trained: Run) -> dict[str, float]:
        """The AUCs of a trained model whose tables are frozen, by type; on the first rank."""
        weights, _ = trained.trainer.embeddings.whole()
        aucs = {}
        for dtype in self.options.serve:
            tables = FrozenTables(weights, self.problem, dtype) if self.rank == 0 else None
            aucs[dtype] = self.auc(Run(dtype, Trainer(tables, trained.trainer.dense, False), False))
        return aucs

    def trainer(self, embeddings: object, distributed: bool) -> Trainer:
        dense = Dlrm(list(self.data.features), self.options.dim, self.data.dense_width)
        return Trainer(embeddings, dense, distributed)

    def train(self, runs: list[Run]) -> None:
        """Trains the runs in turns; the unsharded one in the first process alone."""
        options = self.options
        steps = self.data.global_batches(options.batch, options.steps)
        local = [self.data.batch(self.data.share(one, self.rank, self.size)) for one in steps]
        whole = [self.data.batch(one) for one in steps] if self.rank == 0 else []
        with report.Progress(len(runs) * len(steps), self.rank) as progress:
            for begin in range(0, len(steps), TURN):
                turn = slice(begin, begin + TURN)
                for run in runs:
                    dist.barrier()
                    if run.distributed:
                        run.train(local[turn])
                    elif self.rank == 0:
                        run.train(whole[turn])
                    progress.show(run, len(local[turn]), self.mean(run, run.losses[turn]))

    def mean(self, run: Run, losses: list[float]) -> float:
        """The mean of the losses of all processes; this process's if the run is not distributed."""
        total = torch.tensor(losses, dtype=torch.float64).mean()
        if run.distributed:
            dist.all_reduce(total)
            total /= self.size
        return total.item()

    def auc(self, run: Run) -> float:
        """The AUC on the test part; on the first rank."""
        logits, labels = [], []
        for begin in range(0, len(self.data.test), TEST_BATCH):
            samples = self.data.test[begin:begin + TEST_BATCH]
            samples = samples[:len(samples) // self.size * self.size]
            if run.distributed:
                mine = run.trainer.logits(self.data.batch(
                    self.data.share(samples, self.rank, self.size)))
                parts = [torch.empty_like(mine) for _ in range(self.size)]
                dist.all_gather(parts, mine)
                logits += parts
            elif self.rank == 0:
                logits.append(run.trainer.logits(self.data.batch(samples)))
            labels.append(self.data.labels[samples])
        if self.rank != 0:
            return float("nan")
        target = torch.from_numpy(np.concatenate(labels)).long()
        return binary_auroc(torch.cat(logits).sigmoid(), target).item()

    def gather(self, run: Run) -> None:
        """Replaces losses by those of the global batches, and cpu_seconds by those of all ranks."""
        if not run.distributed:
            return
        losses = torch.tensor(run.losses, dtype=torch.float64)
        cpu = torch.tensor(run.cpu_seconds, dtype=torch.float64)
        dist.all_reduce(losses)
        dist.all_reduce(cpu)
        run.losses, run.cpu_seconds = (losses / self.size).tolist(), cpu.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--batch", type=int, default=2048, help="samples of all processes")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--dim", type=int, default=64, help="columns of every table")
    parser.add_argument("--wire", nargs="+", default=[], choices=SMALLER_WIRE_TYPES, metavar="TYPE",
                        help="a run more for each type in which results and gradients travel: "
                             + ", ".join(SMALLER_WIRE_TYPES))
    parser.add_argument("--serve", nargs="*", default=["int8"], choices=("f16", "int8", "int4", "fp8"),
                        metavar="TYPE", help="freezes the trained tables in each of these types and tells the AUC: "
                                             "f16, int8 (default), int4, fp8")
    parser.add_argument("--out", help="folder for the plot, the plan and the figures")
    options = parser.parse_args()
    processes = int(os.environ.get("WORLD_SIZE", "0"))
    if processes < 2:
        parser.error("expected at least 2 processes; start it with torchrun")
    if options.batch < 1 or options.batch % processes:
        parser.error(f"--batch: expected a multiple of {processes}, the number of processes, "
                     f"got: {options.batch}")
    if options.steps < 2 * TURN:
        parser.error(f"--steps: expected at least {2 * TURN}, got: {options.steps}")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        agrees = Job(options).main()
    finally:
        dist.destroy_process_group()
    if not agrees:
        raise SystemExit("error: the runs differ by more than is allowed")


if __name__ == "__main__":
    main()
