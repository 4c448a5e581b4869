"""Ways to train tables that lie on disk, or in memory, by row-wise Adagrad: ours, and what a user would
write today. Each step looks all ids up, sums them by bag, and updates with gradients of 1."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

import neuroshard as ns
from neuroshard._jagged import Jagged
from neuroshard.bench._tiers.trace import Shape

LEARNING_RATE, EPS = 0.01, 1e-8
FILLED_AT_A_TIME = 1 << 18


class OurTables:
    """A collection of one rank. cache_rows: of each table; 0: all is in memory."""

    def __init__(self, shape: Shape, folder: Path, cache_rows: int, depth: int) -> None:
        names = [f"t{i}" for i in range(shape.tables)]
        problem = ns.ShardingProblem(
            tables=[ns.Table(name, shape.rows, shape.dim, optimizer="rowwise_adagrad")
                    for name in names],
            features=[ns.Feature(name, name, mean_pooling=shape.pooling) for name in names],
            batch=shape.batch, topology="1xCPU@4096GiB")
        tier = {"tier": "ssd", "cache_rows": cache_rows} if cache_rows else {}
        plan = ns.Plan(device_count=1, shards=[
            ns.Shard(table=name, rows=(0, shape.rows), cols=(0, shape.dim), devices=0, **tier)
            for name in names])
        self.depth = depth
        self.tables = ns.ShardedEmbeddingBagCollection(
            plan, problem, learning_rate=LEARNING_RATE, tier_directory=folder,
            threads=os.cpu_count())
        self.before = self._figures()

    def steps(self, batches: Iterator[Jagged]) -> Iterator[None]:
        for batch in ns.distributed.pipeline(batches, {self.tables: lambda ids: ids},
                                             depth=self.depth):
            sum(value.sum() for value in self.tables(batch).values()).backward()
            yield

    def _figures(self) -> tuple[int, int]:
        caches = self.tables.caches().values()
        return sum(one.rows for one in caches), sum(one.hits for one in caches)

    def hit_rate(self) -> float | None:
        """Of the distinct rows since the last call."""
        rows, hits = self._figures()
        found = (hits - self.before[1]) / max(1, rows - self.before[0])
        self.before = rows, hits
        return found if rows else None

    def close(self) -> None:
        self.tables.close()


class MappedTables:
    """Rows and states in mapped files. advice: of mmap.madvise, such as MADV_RANDOM."""

    def __init__(self, shape: Shape, folder: Path, advice: int) -> None:
        self.shape = shape
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.weights, self.states = [], []
        for i in range(shape.tables):
            self.weights.append(mapped(self.folder / f"weights{i}", shape.rows * shape.dim, advice)
                                .view(shape.rows, shape.dim))
            self.states.append(mapped(self.folder / f"states{i}", shape.rows, advice))
            for first in range(0, shape.rows, FILLED_AT_A_TIME):
                self.weights[i][first:first + FILLED_AT_A_TIME].uniform_(-0.01, 0.01)
            self.states[i].zero_()

    def steps(self, batches: Iterator[Jagged]) -> Iterator[None]:
        shape = self.shape
        count = shape.batch * shape.pooling
        bags = torch.arange(shape.batch).repeat_interleave(shape.pooling)
        gradients = torch.ones(shape.batch, shape.dim)
        for batch in batches:
            for i, (weights, states) in enumerate(zip(self.weights, self.states)):
                ids = batch.ids[i * count:(i + 1) * count]
                torch.nn.functional.embedding_bag(ids, weights, torch.arange(
                    shape.batch) * shape.pooling, mode="sum").sum()
                rows, places = torch.unique(ids, return_inverse=True)
                sums = torch.zeros(len(rows), shape.dim).index_add_(0, places, gradients[bags])
                state = states[rows] + sums.square().mean(1)
                states[rows] = state
                weights.index_add_(0, rows, sums * (-LEARNING_RATE / (state.sqrt() + EPS))[:, None])
            yield

    def hit_rate(self) -> None:
        return None

    def close(self) -> None:
        shutil.rmtree(self.folder)


def mapped(path: Path, count: int, advice: int) -> torch.Tensor:
    """f32 values in a new file."""
    with path.open("w+b") as file:
        file.truncate(4 * count)
        values = mmap.mmap(file.fileno(), 4 * count)
    values.madvise(advice)
    return torch.frombuffer(values, dtype=torch.float32)


class LmdbTables:
    """Rows with their states as values of an LMDB environment, whose Python binding is `lmdb`."""

    def __init__(self, shape: Shape, folder: Path) -> None:
        import lmdb
        self.shape = shape
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.store = lmdb.open(str(self.folder), map_size=4 * shape.tables * shape.rows
                               * (4 * shape.dim + 64) + (1 << 30), sync=False, writemap=True,
                               readahead=False)
        for first in range(0, shape.tables * shape.rows, FILLED_AT_A_TIME):
            rows = range(first, min(first + FILLED_AT_A_TIME, shape.tables * shape.rows))
            values = torch.zeros(len(rows), shape.dim + 1)
            values[:, :-1].uniform_(-0.01, 0.01)
            with self.store.begin(write=True) as change:
                change.cursor().putmulti(((row.to_bytes(8, "big"), value.tobytes())
                                          for row, value in zip(rows, values.numpy())), append=True)

    def steps(self, batches: Iterator[Jagged]) -> Iterator[None]:
        shape = self.shape
        count = shape.batch * shape.pooling
        bags = torch.arange(shape.batch).repeat_interleave(shape.pooling)
        gradients = torch.ones(shape.batch, shape.dim)
        for batch in batches:
            for i in range(shape.tables):
                rows, places = torch.unique(batch.ids[i * count:(i + 1) * count],
                                            return_inverse=True)
                keys = [(i * shape.rows + row).to_bytes(8, "big") for row in rows.tolist()]
                with self.store.begin() as reading:
                    found = reading.cursor().getmulti(keys)
                values = torch.frombuffer(bytearray(b"".join(value for _, value in found)),
                                          dtype=torch.float32).view(len(rows), -1)
                torch.nn.functional.embedding_bag(places, values[:, :-1].contiguous(), torch.arange(
                    shape.batch) * shape.pooling, mode="sum").sum()
                sums = torch.zeros(len(rows), shape.dim).index_add_(0, places, gradients[bags])
                values[:, -1] += sums.square().mean(1)
                values[:, :-1] -= sums * (LEARNING_RATE / (values[:, -1].sqrt() + EPS))[:, None]
                with self.store.begin(write=True) as change:
                    change.cursor().putmulti((key, value.tobytes()) for key, value
                                             in zip(keys, values.numpy()))
            yield

    def hit_rate(self) -> None:
        return None

    def close(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)
