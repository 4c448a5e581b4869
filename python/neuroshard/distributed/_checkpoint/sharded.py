"""A whole tensor of which this rank holds some pieces, as torch.distributed.checkpoint takes it.

torch's own ShardedTensor and DTensor know neither pieces that lie on several ranks nor uneven
cuts by rows and columns at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed.checkpoint.metadata import (ChunkStorageMetadata, MetadataIndex,
                                                   TensorProperties)
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType

Span = tuple[int, int]

# A reader takes whole blocks, so their size bounds what resharding holds beside the shards.
BLOCK_BYTES = 32 << 20


class Piece(NamedTuple):
    """A rectangle of a tensor that this rank holds.

    offsets: where it begins in the whole. tensor: the memory itself; rows may lie further
    apart than they are wide. written: whether this piece goes into a checkpoint, as another
    has the same values if not.
    """

    offsets: tuple[int, ...]
    tensor: Tensor
    written: bool = True

    def blocks(self) -> Iterator[Piece]:
        """The piece in runs of rows of at most BLOCK_BYTES each, or of one row."""
        rows = self.tensor.shape[0]
        row_bytes = max(1, self.tensor[:1].numel() * self.tensor.element_size())
        step = max(1, BLOCK_BYTES // row_bytes)
        for begin in range(0, rows, step):
            yield Piece((self.offsets[0] + begin, *self.offsets[1:]),
                        self.tensor[begin:begin + step])

    @property
    def chunk(self) -> ChunkStorageMetadata:
        return ChunkStorageMetadata(torch.Size(self.offsets), self.tensor.shape)


class RowState(NamedTuple):
    """A row-wise state of a shard: the mean over the columns [begin, end) of what the optimizer
    sums up, for rows that begin at `row`."""

    row: int
    columns: Span
    tensor: Tensor


class RowWise(NamedTuple):
    """What else there is to a row-wise state: all of this rank's for the table, of `dim` columns;
    what the key ends in when it is of some columns only; whether some shard, of any rank, has
    columns of several keys."""

    dim: int
    states: tuple[RowState, ...]
    suffix: str
    spanning: bool


class Sharded(Tensor):
    """A value of a state dict: a whole tensor, of which this rank holds some pieces.

    torch.distributed.checkpoint saves it, loads it and cuts it anew. Other than that it can be
    cloned; everything else is done on the tensors of its pieces. row_wise: of a row-wise
    optimizer state.
    """

    pieces: tuple[Piece, ...]
    row_wise: RowWise | None
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, size: Iterable[int], dtype: torch.dtype, pieces: Iterable[Piece],
                row_wise: RowWise | None = None) -> Sharded:
        held = tuple(pieces)
        device = held[0].tensor.device if held else torch.device("cpu")
        self = Tensor._make_wrapper_subclass(cls, tuple(size), dtype=dtype, device=device)
        self.pieces = held
        self.row_wise = row_wise
        self._listed = ()
        return self

    def with_tensors(self, change: Any) -> Sharded:
        """The same pieces of changed tensors."""
        pieces = [piece._replace(tensor=change(piece.tensor)) for piece in self.pieces]
        return Sharded(self.size(), self.dtype, pieces)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        changes = {torch.ops.aten.detach.default: lambda tensor: tensor,
                   torch.ops.aten.clone.default: torch.clone,
                   torch.ops.aten.new_empty.default: torch.empty_like}
        if func in changes:
            return args[0].with_tensors(changes[func])
        raise NotImplementedError(
            f"{func}: a Sharded tensor stands for the pieces that this rank holds; compute with "
            "the tensors of its pieces, or save it with torch.distributed.checkpoint")

    def __deepcopy__(self, memo: dict[int, Any]) -> Sharded:
        return self.with_tensors(torch.clone)

    def __repr__(self) -> str:
        places = ", ".join(f"{list(piece.tensor.shape)} at {list(piece.offsets)}"
                           for piece in self.pieces)
        return f"Sharded({list(self.size())}, {self.dtype}, here: {places or 'nothing'})"

    # What torch.distributed.checkpoint asks for. It then wants the tensors of what it was told
    # last: blocks when it saves, whole pieces when it loads. A block and a piece may begin at
    # the same place, and so may pieces that hold the same values.

    def __create_write_items__(self, fqn: str, _: object) -> list[WriteItem]:
        self._listed = tuple(block for piece in self.pieces if piece.written
                             for block in piece.blocks())
        properties = TensorProperties(dtype=self.dtype)
        return [WriteItem(MetadataIndex(fqn, block.offsets), WriteItemType.SHARD,
                          tensor_data=TensorWriteData(block.chunk, properties, self.size()))
                for block in self._listed]

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        self._listed = self.pieces
        return [piece.chunk for piece in self.pieces]

    def __get_tensor_shard__(self, index: MetadataIndex) -> Tensor:
        offsets, hint = tuple(index.offset or ()), index.index
        if hint is not None and hint < len(self._listed) and self._listed[hint].offsets == offsets:
            return self._listed[hint].tensor
        for piece in self._listed:
            if piece.offsets == offsets:
                return piece.tensor
        raise ValueError(f"{index.fqn}: nothing of this rank begins at {list(offsets)}")
