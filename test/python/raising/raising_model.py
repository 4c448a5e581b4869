"""A module of another dialect, what should be raised of it, and what it computes, by torch."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

ROWS, DIM, BAG = 23, 4, 3
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Table:
    """An argument that is a table. name: that of the table when it is raised."""

    name: str
    element: str = "f32"
    rows: int = ROWS
    dim: int = DIM

    def draw(self, _samples, generator):
        return torch.randn((self.rows, self.dim), generator=generator).to(DTYPES[self.element])

    def parts(self, value, _sizes, _offsets):
        raise AssertionError("tables are no arguments of a raised function")


@dataclass(frozen=True)
class PerSample:
    """Ids or weights with `shape` of each sample. low, high: the range of ids."""

    shape: tuple = (BAG,)
    element: str = "i64"
    low: int = 0
    high: int = ROWS

    def draw(self, samples, generator):
        shape = (samples, *self.shape)
        if self.element == "f32":
            return torch.randn(shape, generator=generator)
        ids = torch.randint(self.low, self.high, shape, generator=generator)
        return ids.to(torch.int32 if self.element == "i32" else torch.int64)

    def parts(self, value, sizes, _offsets):
        return [part.contiguous() for part in value.split(sizes)]


@dataclass(frozen=True)
class Offsets:
    """Begins of the bags, and with `last` the end of the last one."""

    last: bool = True
    element: str = "i64"
    first: int = 0

    def draw(self, samples, generator):
        lengths = torch.randint(0, 4, (samples,), generator=generator)
        ends = self.first + lengths.cumsum(0)
        offsets = torch.cat([torch.tensor([self.first]), ends])
        return offsets.to(torch.int32 if self.element == "i32" else torch.int64)

    def parts(self, value, sizes, _offsets):
        parts, begin = [], 0
        for size in sizes:
            part = value[begin:begin + size + 1]
            parts.append((part - part[0] + self.first)[:None if self.last else -1])
            begin += size
        return [part.contiguous() for part in parts]


@dataclass(frozen=True)
class PerId:
    """Ids or weights of bags with offsets, which are the argument before."""

    element: str = "i64"

    def draw_for(self, offsets, generator):
        count = (int(offsets[-1]),)
        if self.element == "f32":
            return torch.randn(count, generator=generator)
        return torch.randint(0, ROWS, count, generator=generator)

    def parts(self, value, sizes, offsets):
        parts, begin, first = [], 0, int(offsets[0])
        for size in sizes:
            local = value[int(offsets[begin]):int(offsets[begin + size])]
            parts.append(torch.cat([value[:first], local]))
            begin += size
        return parts


@dataclass(frozen=True)
class RaisedModel:
    """text: the module, with @forward. lookups: the poolings that it is raised to, in any order.
    forward: the results from the arguments; offsets have their last one. options: of the pass.
    runs: whether MLIR itself runs the module as it is. samples: the only batch that it takes."""

    name: str
    text: str
    arguments: tuple
    lookups: tuple
    forward: Callable
    results: tuple = ((2, "f32"),)
    runs: bool = True
    options: tuple = ()
    samples: int = 0
    constants: dict = field(default_factory=dict)

    def has_offsets_first(self):
        """Whether the first argument that is no table has one entry more than samples."""
        others = [argument for argument in self.arguments if not isinstance(argument, Table)]
        return isinstance(others[0], Offsets)

    def draw(self, samples, generator):
        values, offsets = [], None
        for argument in self.arguments:
            if isinstance(argument, PerId):
                values.append(argument.draw_for(offsets, generator))
            else:
                values.append(argument.draw(samples, generator))
            if isinstance(argument, Offsets):
                offsets = values[-1]
        return values

    def passed(self, values):
        """The values as the module before raising takes them."""
        return [value[:-1] if isinstance(argument, Offsets) and not argument.last else value
                for argument, value in zip(self.arguments, values)]

    def local(self, values, sizes):
        """What the raised function takes on devices with `sizes` samples."""
        offsets, parts = None, []
        for argument, value in zip(self.arguments, values):
            if isinstance(argument, Table):
                continue
            if isinstance(argument, Offsets):
                offsets = value
            parts.append(argument.parts(value, sizes, offsets))
        return [list(device) for device in zip(*parts)]


def rows(table, ids):
    return table[ids.long()]


def bags(table, ids, offsets, weights=None, mode="sum"):
    """float32 sums or means of ids[offsets[i]:offsets[i + 1]], zeros for an empty bag."""
    results = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        taken = table[ids[begin:end].long()].float()
        if weights is not None:
            taken = taken * weights[begin:end, None]
        total = taken.sum(0)
        results.append(total / max(end - begin, 1) if mode == "mean" else total)
    return torch.stack(results) if results else torch.zeros((0, table.shape[1]))
