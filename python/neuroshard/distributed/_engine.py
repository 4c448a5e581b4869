"""Calls torch.ops.neuroshard (lib/RuntimeTorch) for a plan's tables on one rank."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import torch

from neuroshard.distributed import _operators
from neuroshard.distributed._device import Device
from neuroshard._jagged import Jagged


class Engine:
    """The tables of an artifact, open under a name. All ranks call join, start, wait and, through
    autograd, the update in the same order."""

    def __init__(self, device: Device) -> None:
        self.device, self.name = device, ""
        self._ops = torch.ops.neuroshard

    def load(self) -> None:
        """Loads the library and defines its operators; raises what is missing."""
        _operators.register()

    def join(self, name: str, folder: pathlib.Path, group: str, threads: int) -> None:
        """Opens the shards. group: the name of a process group for this engine alone; "": one
        rank."""
        self.name = name
        self._ops.join(name, str(folder.resolve()), group, self.device.name, threads)

    def initialize(self, seed: int) -> None:
        self._ops.initialize(self.name, seed)

    def set_gradient_scale(self, scale: float) -> None:
        self._ops.set_gradient_scale(self.name, scale)

    def num_updates(self) -> int:
        return self._ops.num_updates(self.name)

    def set_num_updates(self, count: int) -> None:
        self._ops.set_num_updates(self.name, count)

    def start(self, token: torch.Tensor, ids: Jagged) -> torch.Tensor:
        """Sends the ids; gives a ticket."""
        return self._ops.embeddings_start(self.name, token, tensors_of(ids))

    def look_up(self, token: torch.Tensor, ticket: torch.Tensor) -> torch.Tensor:
        """Waits for the ids, looks rows up and starts to send them; gives a ticket for wait."""
        return self._ops.embeddings_lookup(self.name, token, ticket)

    def wait(self, token: torch.Tensor, ticket: torch.Tensor, ids: Jagged,
             anchor: torch.Tensor | None) -> list[torch.Tensor]:
        """The results of all lookups, whose backward is the update. ids: those of start."""
        return self._ops.embeddings_wait(self.name, token, ticket, tensors_of(ids), anchor)

    def refuse(self, text: str) -> None:
        """Called instead of start(): ends the step on the other ranks with this error text."""
        self._ops.refuse(self.name, text)

    def settle(self) -> None:
        """Waits until weights may be read and written."""
        self._ops.settle(self.name)

    def shard_tensors(self, shard: int) -> Sequence[torch.Tensor]:
        """Weights and states as tensors on the shard's own memory."""
        return self._ops.shard_tensors(self.name, shard)

    def phases(self) -> dict[str, tuple[float, int]]:
        return dict(zip(self._ops.phase_names(), zip(self._ops.phase_ms(self.name),
                                                     self._ops.phase_bytes(self.name))))

    def terms(self) -> dict[str, float]:
        terms = dict.fromkeys(self._ops.phase_terms(), 0.0)
        for term, ms in zip(self._ops.phase_terms(), self._ops.phase_ms(self.name)):
            terms[term] += ms
        return terms

    def reset_phases(self) -> None:
        self._ops.reset_phases(self.name)

    def close(self) -> None:
        self._ops.leave(self.name)


def tensors_of(ids: Jagged) -> list[torch.Tensor]:
    return [ids.ids, ids.offsets] if ids.weights is None else [ids.ids, ids.offsets, ids.weights]
