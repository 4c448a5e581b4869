"""What an exported model is made of: its tables, lookups, inputs with their sources of ids, and
results, with the types of values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from neuroshard._artifact.dtypes import ELEMENT_TYPES

# Types of values, as the IR has them.
VALUE_TYPES = {**ELEMENT_TYPES, torch.float64: "f64", torch.int64: "i64", torch.int32: "i32",
               torch.int16: "i16", torch.int8: "i8", torch.uint8: "ui8", torch.bool: "i1"}
DTYPES = {name: dtype for dtype, name in VALUE_TYPES.items()}


@dataclass(frozen=True)
class Table:
    """A parameter that lookups read. parameter: its name in the model's state_dict."""

    name: str
    parameter: str
    rows: int
    dim: int
    type: str
    trained: bool


@dataclass(frozen=True)
class Lookup:
    """A lookup of a table. pooling: "sum", "mean" or "unpooled". input: number of the jagged input.
    shape: of the rows in the model, None where it depends on the data. location: in MLIR's
    syntax."""

    table: str
    pooling: str
    input: int
    feature: str
    weighted: bool
    padding_idx: int | None
    shape: tuple[int | None, ...]
    type: str
    location: str

    @property
    def dim(self) -> int:
        return self.shape[-1]

    @property
    def rows_per_sample(self) -> int:
        """Rows per sample: more than 1 if the model has the rows as [batch, ..., dim]."""
        return math.prod(self.shape[1:-1])

    def shaped(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows [n, dim] in the shape that the model has."""
        return rows.view(-1, *self.shape[1:]) if len(self.shape) > 2 else rows


@dataclass(frozen=True)
class Source:
    """The source of the ids of one feature, or of all keys of a KeyedJaggedTensor, as numbers of
    results of the ids program.

    kind: "keyed" (values, lengths), "rows" (ids [batch, ...], one bag for each sample), "bags"
    (ids, first offsets) or "closed bags" (ids, offsets with the last one)."""

    kind: str
    ids: int
    offsets: int | None
    weights: int | None


@dataclass(frozen=True)
class Input:
    """A jagged argument of the program. One source for each feature; or a keyed one for all."""

    name: str
    features: tuple[str, ...]
    id_type: str
    weighted: bool
    sources: tuple[Source, ...]

    @property
    def keyed(self) -> bool:
        return self.sources[0].kind == "keyed"


@dataclass(frozen=True)
class Value:
    """A tensor that enters or leaves the dense part. shape: None where it depends on the batch.
    parameter: its name in the state_dict, for tensors of the model itself; constant: whether it is
    in no state_dict."""

    name: str
    shape: tuple[int | None, ...]
    type: str
    per_sample: bool
    location: str = ""
    parameter: str | None = None
    constant: bool = False


@dataclass
class Dense:
    """The model without its tables: module(*rows, *inputs, *parameters) -> results.

    rows: one tensor for each lookup, of its shape. results: also numbers and None. linalg: the
    text of torch-mlir, if asked for."""

    module: torch.fx.GraphModule
    inputs: list[Value]
    parameters: list[Value]
    results: list[object]
    linalg: str | None = None

    @property
    def tensors(self) -> list[Value]:
        """The results that are tensors."""
        return [one for one in self.results if isinstance(one, Value)]


@dataclass
class Ids:
    """module(*inputs, *parameters) -> the tensors that sources number."""

    module: torch.fx.GraphModule
    inputs: list[str]
    parameters: list[Value] = field(default_factory=list)
