"""Trains a DLRM whose tables are sharded over the ranks of torchrun, evaluates it, and saves checkpoints.

    torchrun --standalone --nproc-per-node 2 -m dlrm.train --steps 200
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torchmetrics.functional.classification import binary_auroc

import neuroshard as ns

from dlrm.data import DENSE, Batch, Criteo, MadeUp


class Dlrm(nn.Module):
    """The dense part: a bottom MLP, dot products between all pairs of vectors, a top MLP."""

    def __init__(self, categories: int, dim: int) -> None:
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(DENSE, 64), nn.ReLU(), nn.Linear(64, dim), nn.ReLU())
        pairs = (categories + 1) * categories // 2
        self.top = nn.Sequential(nn.Linear(dim + pairs, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, dense: torch.Tensor, pending: ns.distributed.Pending) -> torch.Tensor:
        """Logits [samples]. The results of the lookup travel while the bottom MLP runs."""
        pending.look_up()
        bottom = self.bottom(dense)
        vectors = torch.stack([bottom, *pending.wait().values()], dim=1)
        row, column = torch.triu_indices(vectors.shape[1], vectors.shape[1], offset=1)
        dots = (vectors @ vectors.transpose(1, 2))[:, row, column]
        return self.top(torch.cat([bottom, dots], dim=1)).squeeze(1)


class Training:
    """One rank's part of the training."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.data = (Criteo(options.criteo, options.criteo_test, options.rows) if options.criteo
                     else MadeUp(options.rows))
        problem = ns.ShardingProblem(
            tables=[ns.Table(f"category{one}", rows=options.rows, dim=options.dim, optimizer="rowwise_adagrad")
                    for one in range(self.data.categories)],
            features=[ns.Feature(f"id{one}", f"category{one}") for one in range(self.data.categories)],
            batch=options.batch, topology=options.topology or f"{self.ranks}xCPU")
        self.tables = ns.ShardedEmbeddingBagCollection(ns.distributed.plan(problem), problem,
                                                       learning_rate=options.learning_rate)
        torch.manual_seed(0)
        self.dense = DistributedDataParallel(Dlrm(self.data.categories, options.dim))
        self.optimizer = torch.optim.Adagrad(self.dense.parameters(), lr=options.learning_rate)
        self.state = {"tables": self.tables, "dense": self.dense.module, "optimizer": self.optimizer}

    def batches(self, part: str, steps: int) -> Iterator[Batch]:
        return self.data.batches(self.options.batch, self.rank, self.ranks, steps, part)

    def run(self) -> None:
        options = self.options
        newest = ns.distributed.latest(options.checkpoints) if options.checkpoints else None
        if newest:
            ns.distributed.load(newest, self.state)
        begin = self.tables.step
        batches = self.batches("train", options.steps)
        for _ in zip(range(begin), batches):       # those that the checkpoint has seen
            pass
        for batch in ns.distributed.pipeline(batches, {self.tables: lambda batch: batch.ids}):
            logits = self.dense(batch.dense, self.tables.start(batch.ids))
            loss = nn.functional.binary_cross_entropy_with_logits(logits, batch.labels)
            self.optimizer.zero_grad()
            loss.backward()                        # updates the tables, too
            self.optimizer.step()
            if self.tables.step % options.evaluate_every == 0 or self.tables.step == options.steps:
                self.report(loss.item())
        self.tables.close()

    def report(self, loss: float) -> None:
        auc = self.auc()
        if self.options.checkpoints:
            ns.distributed.save(f"{self.options.checkpoints}/step-{self.tables.step}", self.state, keep=2)
        if self.rank == 0:
            print(f"step {self.tables.step}: loss {loss:.4f} of rank 0, AUC {auc:.4f}", flush=True)

    @torch.no_grad()
    def auc(self) -> float:
        """On the test part, of the logits of all ranks."""
        found = []
        for batch in self.batches("test", self.options.test_steps):
            logits = self.dense.module(batch.dense, self.tables.start(batch.ids))
            found.append(torch.stack([logits, batch.labels]))
        mine = torch.cat(found, dim=1)
        parts = [torch.empty_like(mine) for _ in range(self.ranks)]
        dist.all_gather(parts, mine)
        logits, labels = torch.cat(parts, dim=1)
        return binary_auroc(logits.sigmoid(), labels.long()).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--criteo", type=Path, help="file of clicks in Criteo's format; without it they are made up")
    parser.add_argument("--criteo-test", type=Path, help="file to evaluate on (default: that of --criteo)")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of each table")
    parser.add_argument("--dim", type=int, default=16, help="columns of each table")
    parser.add_argument("--batch", type=int, default=1024, help="samples of all ranks")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--test-steps", type=int, default=8, help="batches to evaluate on")
    parser.add_argument("--evaluate-every", type=int, default=50, help="steps between evaluations and checkpoints")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--topology", help="such as 2x2xCPU@16GiB (default: a CPU for each rank)")
    parser.add_argument("--checkpoints", help="folder; training goes on from the newest in it")
    options = parser.parse_args()
    options.criteo_test = options.criteo_test or options.criteo
    dist.init_process_group("gloo")
    try:
        if options.batch < 1 or options.batch % dist.get_world_size():
            parser.error(f"--batch: expected a multiple of {dist.get_world_size()}, the number of ranks, got: "
                         f"{options.batch}")
        Training(options).run()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
