"""A whole tensor of which this rank holds some chunks, as torch.distributed.checkpoint takes it.

torch's own ShardedTensor and DTensor support neither replicated chunks nor uneven cuts by rows and
columns at once.
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

# A reader reads whole blocks, so their size bounds the extra memory of loading under another plan.
BLOCK_BYTES = 32 << 20


class Chunk(NamedTuple):
    """A rectangle of a tensor that this rank holds.

    offsets: where it begins in the whole tensor. tensor: the memory itself, whose rows may be
    padded. written: whether this chunk is saved; if not, another has the same values.
    """

    offsets: tuple[int, ...]
    tensor: Tensor
    written: bool = True

    def blocks(self) -> Iterator[Chunk]:
        """The chunk in blocks of rows of at most BLOCK_BYTES, but at least one row."""
        rows = self.tensor.shape[0]
        row_bytes = max(1, self.tensor[:1].numel() * self.tensor.element_size())
        step = max(1, BLOCK_BYTES // row_bytes)
        for begin in range(0, rows, step):
            yield Chunk((self.offsets[0] + begin, *self.offsets[1:]),
                        self.tensor[begin:begin + step])

    @property
    def metadata(self) -> ChunkStorageMetadata:
        return ChunkStorageMetadata(torch.Size(self.offsets), self.tensor.shape)


class RowState(NamedTuple):
    """A row-wise state of a shard: a mean over the columns [begin, end) for each row from `row`
    on."""

    row: int
    columns: Span
    tensor: Tensor


class RowWise(NamedTuple):
    """A table's row-wise state. dim: columns of the table. states: those of this rank's shards.
    suffix: end of the key if the state is of some columns only. spanning: whether a shard, on any
    rank, has columns of several keys."""

    dim: int
    states: tuple[RowState, ...]
    suffix: str
    spanning: bool


class Sharded(Tensor):
    """A value of a state dict: a whole tensor, of which this rank holds some chunks.

    torch.distributed.checkpoint saves it and loads it, also under other cuts. Operators other than
    clone work on the tensors of its chunks. row_wise: set for row-wise optimizer states.
    """

    chunks: tuple[Chunk, ...]
    row_wise: RowWise | None
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, size: Iterable[int], dtype: torch.dtype, chunks: Iterable[Chunk],
                row_wise: RowWise | None = None) -> Sharded:
        held = tuple(chunks)
        device = held[0].tensor.device if held else torch.device("cpu")
        self = Tensor._make_wrapper_subclass(cls, tuple(size), dtype=dtype, device=device)
        self.chunks = held
        self.row_wise = row_wise
        self._listed = ()
        return self

    def with_tensors(self, change: Any) -> Sharded:
        """The same chunks of changed tensors."""
        chunks = [chunk._replace(tensor=change(chunk.tensor)) for chunk in self.chunks]
        return Sharded(self.size(), self.dtype, chunks)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        changes = {torch.ops.aten.detach.default: lambda tensor: tensor,
                   torch.ops.aten.clone.default: torch.clone,
                   torch.ops.aten.new_empty.default: torch.empty_like}
        if func in changes:
            return args[0].with_tensors(changes[func])
        raise NotImplementedError(
            f"{func}: a Sharded tensor stands for the chunks that this rank holds; compute with "
            "the tensors of its chunks, or save it with torch.distributed.checkpoint")

    def __deepcopy__(self, memo: dict[int, Any]) -> Sharded:
        return self.with_tensors(torch.clone)

    def __reduce_ex__(self, protocol: int) -> object:
        raise TypeError("a value of this state_dict is whole on all ranks together, and here are "
                        "the chunks of one; save it with neuroshard.distributed.save or "
                        "torch.distributed.checkpoint")

    def __repr__(self) -> str:
        places = ", ".join(f"{list(chunk.tensor.shape)} at {list(chunk.offsets)}"
                           for chunk in self.chunks)
        return f"Sharded({list(self.size())}, {self.dtype}, here: {places or 'nothing'})"

    # The protocol of torch.distributed.checkpoint. It asks for the tensors of the list that it got
    # last: blocks when it saves, whole chunks when it loads. A block and a chunk, or chunks with
    # equal values, may begin at the same place.

    def __create_write_items__(self, fqn: str, _: object) -> list[WriteItem]:
        self._listed = tuple(block for chunk in self.chunks if chunk.written
                             for block in chunk.blocks())
        properties = TensorProperties(dtype=self.dtype)
        return [WriteItem(MetadataIndex(fqn, block.offsets), WriteItemType.SHARD,
                          tensor_data=TensorWriteData(block.metadata, properties, self.size()))
                for block in self._listed]

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        self._listed = self.chunks
        return [chunk.metadata for chunk in self.chunks]

    def __get_tensor_shard__(self, index: MetadataIndex) -> Tensor:
        offsets, hint = tuple(index.offset or ()), index.index
        if hint is not None and hint < len(self._listed) and self._listed[hint].offsets == offsets:
            return self._listed[hint].tensor
        for chunk in self._listed:
            if chunk.offsets == offsets:
                return chunk.tensor
        raise ValueError(f"{index.fqn}: nothing of this rank begins at {list(offsets)}")
