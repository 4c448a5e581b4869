"""Batches of Zipf-distributed ids whose hot rows lie anywhere in their table."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from neuroshard._jagged import Jagged

SPREAD = 0x9E3779B97F4A7C15 % 2**61


@dataclass(frozen=True)
class Shape:
    """Tables of equal size, each read by one feature with so many ids per sample."""

    tables: int
    rows: int
    dim: int
    batch: int
    pooling: int
    zipf: float


def batch_of(shape: Shape, number: int) -> Jagged:
    """The same for every call with this number."""
    generator = torch.Generator().manual_seed(number)
    count = shape.tables * shape.batch * shape.pooling
    draws = torch.rand(count, generator=generator, dtype=torch.float64)
    ids = spread(ranks(draws, shape.rows, shape.zipf), shape.rows)
    bags = shape.tables * shape.batch
    return Jagged(ids, torch.arange(bags + 1) * shape.pooling)


def ranks(draws: torch.Tensor, rows: int, exponent: float) -> torch.Tensor:
    """Ranks from 0 of a Zipf distribution, by the inverse of its continuous form."""
    if exponent == 0:
        return (draws * rows).long().clamp(max=rows - 1)
    power = 1 - exponent
    if abs(power) < 1e-9:
        values = torch.exp(draws * torch.log(torch.tensor(float(rows + 1))))
    else:
        values = (draws * ((rows + 1) ** power - 1) + 1) ** (1 / power)
    return (values.long() - 1).clamp(0, rows - 1)


def spread(numbers: torch.Tensor, rows: int) -> torch.Tensor:
    """A permutation of the numbers below `rows`: multiplied by one without a common divisor."""
    factor = SPREAD % rows | 1
    while torch.gcd(torch.tensor(factor), torch.tensor(rows)) != 1:
        factor += 2
    high, low = numbers >> 20, numbers & (2**20 - 1)  # products below 2^63
    shifted = high * factor % rows
    for _ in range(20):
        shifted = shifted * 2 % rows
    return (shifted + low * factor % rows) % rows
