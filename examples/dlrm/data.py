"""Clicks to train on: files in the format of the Criteo logs, or ones that are made up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch

import neuroshard as ns

DENSE, CATEGORIES = 13, 26
MADE_UP_CATEGORIES = 8


class Batch(NamedTuple):
    """Of one rank: dense [samples, DENSE]; one id per sample and category, feature-major; labels [samples]."""

    dense: torch.Tensor
    ids: ns.distributed.Jagged
    labels: torch.Tensor


def jagged(ids: torch.Tensor) -> ns.distributed.Jagged:
    """ids: [categories, samples]."""
    return ns.distributed.Jagged(ids.flatten(), torch.arange(ids.numel() + 1))


class MadeUp:
    """Clicks by chance, from a hidden effect of each id and of the dense numbers. Ids are skewed, as real ones."""

    categories = MADE_UP_CATEGORIES

    def __init__(self, rows: int, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.rows = rows
        self.effects = torch.randn(self.categories, rows, generator=generator)
        self.slopes = torch.randn(DENSE, generator=generator) / 4

    def batches(self, samples: int, rank: int, ranks: int, steps: int, part: str) -> Iterator[Batch]:
        """The rank's share of each global batch of `samples`; `part`: "train" or "test"."""
        for step in range(steps):
            generator = torch.Generator().manual_seed((2 * step + (part == "test")) * ranks + rank)
            count = samples // ranks
            drawn = torch.rand(self.categories, count, generator=generator) ** 4
            ids = (drawn * self.rows).long()
            dense = torch.randn(count, DENSE, generator=generator)
            logits = self.effects.gather(1, ids).sum(0) / 2 + dense @ self.slopes
            labels = torch.bernoulli(logits.sigmoid(), generator=generator)
            yield Batch(dense, jagged(ids), labels)


class Criteo:
    """Lines of label, 13 whole numbers and 26 categories in hexadecimal, with tabs between; any of the latter may
    be missing. Categories become rows by the remainder, and row 0 stands for those that are missing."""

    categories = CATEGORIES

    def __init__(self, train: Path, test: Path, rows: int) -> None:
        self.files = {"train": train, "test": test}
        self.rows = rows

    def batches(self, samples: int, rank: int, ranks: int, steps: int, part: str) -> Iterator[Batch]:
        """As those of MadeUp; fewer when the file ends, and a last batch that is not full is left out."""
        with open(self.files[part], encoding="ascii") as lines:
            for step in range(steps):
                chunk = list(islice(lines, samples))
                if len(chunk) < samples:
                    return
                share = samples // ranks
                first = step * samples + rank * share
                yield self._batch(chunk[rank * share:(rank + 1) * share], f"{self.files[part]}", first)

    def _batch(self, lines: list[str], file: str, first: int) -> Batch:
        fields = [line.rstrip("\n").split("\t") for line in lines]
        for number, one in enumerate(fields):
            if len(one) != 1 + DENSE + CATEGORIES:
                raise ValueError(f"{file}, line {first + number + 1}: expected {1 + DENSE + CATEGORIES} fields with "
                                 f"tabs between, found {len(one)}")
        dense = torch.tensor([[float(field or 0) for field in one[1:1 + DENSE]] for one in fields])
        ids = torch.tensor([[1 + int(field, 16) % (self.rows - 1) if field else 0 for field in one[1 + DENSE:]]
                            for one in fields])
        return Batch(dense.clamp(min=0).log1p(), jagged(ids.T.contiguous()),
                     torch.tensor([float(one[0]) for one in fields]))
