"""Trains two towers that predict the next item of a sequence: a transformer over the items that a user has seen,
and the vector of each item. Both read one table, which is sharded over the ranks of torchrun.

    torchrun --standalone --nproc-per-node 2 -m two_tower.train --steps 200
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pad_sequence

import neuroshard as ns

LONGEST, GROUP = 12, 20
AT = 20


class Batch(NamedTuple):
    """What the module is called with: the items seen, jagged, and the one that came next, of each sample."""

    ids: dict[str, tuple[torch.Tensor, torch.Tensor]]


def sequences(items: int, samples: int, steps: int, rank: int, ranks: int, part: str) -> Iterator[Batch]:
    """Made up: items come in groups of GROUP, and who has seen items of one group goes on with another of it, but
    for one time in five."""
    for step in range(steps):
        generator = torch.Generator().manual_seed((2 * step + (part == "test")) * ranks + rank)
        lengths = torch.randint(1, LONGEST + 1, (samples,), generator=generator)
        groups = torch.randint(items // GROUP, (samples,), generator=generator)
        of_groups = torch.cat([groups.repeat_interleave(lengths), groups])
        ids = of_groups * GROUP + torch.randint(GROUP, of_groups.shape, generator=generator)
        chance = torch.rand(ids.shape, generator=generator) < 0.2
        ids = torch.where(chance, torch.randint(items, ids.shape, generator=generator), ids)
        offsets = nn.functional.pad(lengths.cumsum(0), (1, 0))
        yield Batch({"seen": (ids[:-samples], offsets), "next": (ids[-samples:], torch.arange(samples + 1))})


class UserTower(nn.Module):
    """From the vectors of the items seen to the vector of a user: a transformer, and the mean over positions."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(LONGEST, dim) / 10)
        layer = nn.TransformerEncoderLayer(dim, nhead=2, dim_feedforward=2 * dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)

    def forward(self, values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """values: [items seen, dim], of sample i from offsets[i] to offsets[i + 1]; [samples, dim]."""
        lengths = offsets.diff()
        padded = pad_sequence(list(values.split(lengths.tolist())), batch_first=True)
        empty = torch.arange(padded.shape[1]) >= lengths[:, None]
        encoded = self.encoder(padded + self.positions[:padded.shape[1]], src_key_padding_mask=empty)
        return encoded.masked_fill(empty[:, :, None], 0).sum(1) / lengths[:, None]


class Training:
    """One rank's part of the training."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        problem = ns.ShardingProblem(
            tables=[ns.Table("item", rows=options.items, dim=options.dim, optimizer="rowwise_adagrad")],
            features=[ns.Feature("seen", "item", pooling="none", mean_pooling=(1 + LONGEST) / 2),
                      ns.Feature("next", "item", pooling="none")],
            batch=options.batch, topology=f"{self.ranks}xCPU",
            # Small enough for a copy on each rank; a table worth sharding is not.
            constraints=ns.Constraints(tables=[ns.TableRule("item", allowed_kinds=["row_wise", "column_wise"])]))
        self.tables = ns.ShardedEmbeddingCollection(ns.distributed.plan(problem), problem, learning_rate=0.2)
        torch.manual_seed(0)
        self.tower = DistributedDataParallel(UserTower(options.dim))
        self.optimizer = torch.optim.Adam(self.tower.parameters(), lr=0.003)

    def batches(self, part: str, steps: int) -> Iterator[Batch]:
        return sequences(self.options.items, self.options.batch // self.ranks, steps, self.rank, self.ranks, part)

    def run(self) -> None:
        batches = self.batches("train", self.options.steps)
        for batch in ns.distributed.pipeline(batches, {self.tables: lambda batch: batch.ids}):
            found = self.tables(batch.ids)
            users, items = self.tower(*found["seen"]), found["next"][0]
            # The other samples' items are the wrong answers; of equal ones none is.
            scores = users @ items.T / self.options.dim ** 0.5
            next_items = batch.ids["next"][0]
            same = (next_items[:, None] == next_items).fill_diagonal_(False)
            loss = nn.functional.cross_entropy(scores.masked_fill(same, float("-inf")), torch.arange(len(scores)))
            self.optimizer.zero_grad()
            loss.backward()                       # updates the table, too
            self.optimizer.step()
        recall = self.recall()
        if self.rank == 0:
            print(f"{self.tables.step} steps, recall at {AT} of {self.options.items} items: {recall:.3f}", flush=True)
        self.tables.close()

    @torch.no_grad()
    def recall(self) -> float:
        """How often the next item is among the AT best, over the test sequences of all ranks."""
        items = self.vectors_of_all_items()
        hits = torch.zeros(2)
        for batch in self.batches("test", self.options.test_steps):
            users = self.tower.module(*self.tables(batch.ids)["seen"])
            best = (users @ items.T).topk(AT).indices
            hits += torch.tensor([(best == batch.ids["next"][0][:, None]).any(1).sum(), len(best)])
        dist.all_reduce(hits)
        return (hits[0] / hits[1]).item()

    def vectors_of_all_items(self) -> torch.Tensor:
        """[items, dim], on every rank: each looks up all items in the feature "next"."""
        nothing = torch.zeros(self.options.items + 1, dtype=torch.int64)
        every = torch.arange(self.options.items)
        return self.tables({"seen": (every[:0], nothing),
                            "next": (every, torch.arange(self.options.items + 1))})["next"][0]


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains two towers that predict the next item of a sequence.")
    parser.add_argument("--items", type=int, default=2000, help="rows of the table")
    parser.add_argument("--dim", type=int, default=32, help="columns of the table")
    parser.add_argument("--batch", type=int, default=512, help="sequences of all ranks")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--test-steps", type=int, default=4, help="batches to evaluate on")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    try:
        if options.batch < 1 or options.batch % dist.get_world_size():
            parser.error(f"--batch: expected a multiple of {dist.get_world_size()}, the number of ranks, got: "
                         f"{options.batch}")
        if options.items < 2 * GROUP or options.items % GROUP:
            parser.error(f"--items: expected a multiple of {GROUP}, from {2 * GROUP} on, got: {options.items}")
        Training(options).run()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
