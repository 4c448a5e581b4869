"""Moves pieces of tensors between the ranks of a group, a few blocks at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor

from neuroshard.distributed._reshard.boxes import Box, inside
from neuroshard.distributed._reshard.pieces import Piece

BLOCK_BYTES = 4 << 20
# Blocks of a rank on their way at a time, which with their size bounds the memory that moving takes.
IN_FLIGHT = 4


@dataclass(frozen=True)
class Move:
    """The pieces of one tensor. held, wanted: by rank, the boxes that pieces number. sources,
    targets: the tensors of this rank's boxes."""

    pieces: Sequence[Piece]
    held: Sequence[Sequence[Box]]
    wanted: Sequence[Sequence[Box]]
    sources: Sequence[Tensor]
    targets: Sequence[Tensor]

    def source(self, piece: Piece) -> Tensor:
        """This rank's elements of a piece that it sends or copies."""
        if piece.again:
            return self.targets[piece.source][
                inside(piece.box, self.wanted[piece.receiver][piece.source])]
        return self.sources[piece.source][inside(piece.box, self.held[piece.sender][piece.source])]

    def target(self, piece: Piece) -> Tensor:
        """Where this rank puts a piece."""
        return self.targets[piece.target][inside(piece.box, self.wanted[piece.receiver][piece.target])]


@dataclass
class Transfer:
    """Runs the moves of all ranks of a group, which call it alike. group: a group of Gloo for this
    alone; None: of one rank. sent, received: bytes of this rank so far; copied: those that it had."""

    group: dist.ProcessGroup | None
    rank: int
    size: int
    sent: int = 0
    received: int = 0
    copied: int = 0
    _on_their_way: deque[Callable[[], None]] = field(default_factory=deque)

    def run(self, moves: Sequence[Move]) -> None:
        for again in (False, True):
            if again:
                self._exchange(moves)
            for move in moves:
                for piece in move.pieces:
                    if piece.receiver == self.rank and not piece.travels and piece.again == again:
                        self.copied += bytes_of(move.target(piece).copy_(move.source(piece)))

    def _exchange(self, moves: Sequence[Move]) -> None:
        """Blocks travel in an order that all ranks share. The first of them that has not arrived is
        then on its way at both of its ends, so that no two ranks wait for each other."""
        for number, piece, move in self._in_order(moves):
            if piece.sender == self.rank:
                self._send(block(move.source(piece), number), piece.receiver)
            elif piece.receiver == self.rank:
                self._receive(block(move.target(piece), number), piece.sender)
            while len(self._on_their_way) >= IN_FLIGHT:
                self._on_their_way.popleft()()
        while self._on_their_way:
            self._on_their_way.popleft()()

    def _in_order(self, moves: Sequence[Move]) -> list[tuple[int, Piece, Move]]:
        """The blocks of this rank, by their number in a piece; for each number, ranks send to their
        neighbours first, then to those one further, so that all have something to do."""
        travelling = [(piece, move) for move in moves for piece in move.pieces
                      if piece.travels and self.rank in (piece.sender, piece.receiver)]
        blocks = [(number, piece, move) for piece, move in travelling
                  for number in range(num_blocks(self._tensor(piece, move)))]
        blocks.sort(key=lambda one: (one[0], (one[1].receiver - one[1].sender) % self.size,
                                     one[1].sender))
        return blocks

    def _tensor(self, piece: Piece, move: Move) -> Tensor:
        return move.source(piece) if piece.sender == self.rank else move.target(piece)

    def _send(self, values: Tensor, receiver: int) -> None:
        message = values.cpu().contiguous()
        work = dist.isend(as_bytes(message), group=self.group, group_dst=receiver)
        self.sent += bytes_of(message)
        self._on_their_way.append(work.wait)

    def _receive(self, place: Tensor, sender: int) -> None:
        is_direct = place.device.type == "cpu" and place.is_contiguous()
        message = place if is_direct else torch.empty(place.shape, dtype=place.dtype)
        work = dist.irecv(as_bytes(message), group=self.group, group_src=sender)

        def finish() -> None:
            work.wait()
            if not is_direct:
                place.copy_(message)

        self.received += bytes_of(message)
        self._on_their_way.append(finish)


def rows_of_block(piece: Tensor) -> int:
    """Whole rows of at most BLOCK_BYTES, but at least one."""
    return max(1, BLOCK_BYTES // max(1, bytes_of(piece[:1])))


def num_blocks(piece: Tensor) -> int:
    return -(-piece.shape[0] // rows_of_block(piece))


def block(piece: Tensor, number: int) -> Tensor:
    rows = rows_of_block(piece)
    return piece[number * rows:(number + 1) * rows]


def bytes_of(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def as_bytes(tensor: Tensor) -> Tensor:
    """The memory of a contiguous tensor, as Gloo takes it whatever the type is. (A dimension of one
    element may have any stride.)"""
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)
