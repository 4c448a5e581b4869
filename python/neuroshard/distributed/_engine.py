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
        self.averaged_at = 0  # the update after which copies that drift were averaged, loaded or moved, hence alike
        self.renumbered_at = 0  # the last number of updates that was set: only later ones were done and averaged
        self._ops = torch.ops.neuroshard

    def load(self) -> None:
        """Loads the library and defines its operators; raises what is missing."""
        _operators.register()

    def join(self, name: str, folder: pathlib.Path, groups: Sequence[str], threads: int,
             checks_late: bool = False, tier_directory: pathlib.Path | None = None) -> None:
        """Opens the shards. groups: names of process groups for this engine alone: none for one
        rank; one; or two, of which the second is for what relays send on. checks_late: settle()
        tells of wrong ids, where a device can. tier_directory: of the files of shards in tier
        "ssd"."""
        self._ops.join(name, str(folder.resolve()), list(groups), self.device.name, threads,
                       checks_late, "" if tier_directory is None else str(tier_directory))
        self.name = name  # not before: other tables may have it, which close() would free

    def initialize(self, seed: int) -> None:
        self._ops.initialize(self.name, seed)

    def num_updates(self) -> int:
        return self._ops.num_updates(self.name)

    def set_num_updates(self, count: int) -> None:
        if count != self.num_updates():
            # Copies stay as they are, alike or not.
            self.averaged_at = count if self.averaged_at == self.num_updates() else -1
            self.renumbered_at = count
        self._ops.set_num_updates(self.name, count)

    def note_alike(self) -> None:
        """Says that the copies of each shard are alike after the updates so far."""
        self.averaged_at = self.num_updates()

    def advance(self, learning_rates: Sequence[float]) -> None:
        """Called before a CUDA graph that updates is replayed."""
        self._ops.advance(self.name, learning_rates)

    def update_kept(self, learning_rates: Sequence[float]) -> None:
        """Updates the tables by the gradients that backwards have left, if there are any."""
        self._ops.update_kept(self.name, learning_rates)

    def average_copies(self) -> None:
        """Averages copies that drift; called on all ranks."""
        self._ops.average_copies(self.name)
        self.note_alike()

    def squared_norm(self) -> float:
        """Of these, by row, of the shards whose first copy this rank has. No more can be left then."""
        return self._ops.squared_norm(self.name)

    def scale_kept(self, factor: float) -> None:
        """Multiplies the gradients whose norm was taken."""
        self._ops.scale_kept(self.name, factor)

    def freeze(self, tables: Sequence[int]) -> None:
        """Whose gradients do not travel in steps that start from now on."""
        self._ops.freeze(self.name, tables)

    def drop_kept(self) -> None:
        """Drops these."""
        self._ops.drop_kept(self.name)

    def start(self, *inputs: Jagged) -> torch.Tensor:
        """Sends the ids; gives a ticket."""
        call = torch.empty((), dtype=torch.float32, device="cpu")
        return self._ops.embeddings_start(self.name, call, tensors_of(inputs))

    def look_up(self, ticket: torch.Tensor) -> torch.Tensor:
        """Waits for the ids, looks rows up and starts to send them; gives a ticket for wait."""
        return self._ops.embeddings_lookup(self.name, ticket)

    def anchor(self, ticket: torch.Tensor, *inputs: Jagged, anchor: torch.Tensor) -> torch.Tensor:
        """An anchor for wait, whose own backward is the update; that of wait then sends gradients.
        They travel during the backward of what is computed between the two."""
        return self._ops.embeddings_anchor(self.name, ticket, tensors_of(inputs), anchor)

    def wait(self, ticket: torch.Tensor, *inputs: Jagged, anchor: torch.Tensor | None,
             updates: bool = True, joined: bool = False) -> list[torch.Tensor]:
        """The results of all lookups, whose backward sends gradients and, with `updates`, updates
        the tables. inputs: those of start. joined: gives one tensor with the columns of all; only
        if Manifest.joins."""
        return self._ops.embeddings_wait(self.name, ticket, tensors_of(inputs), anchor, updates,
                                         joined)

    def refuse(self, text: str) -> None:
        """Called instead of start(): ends the step on the other ranks with this error text."""
        self._ops.refuse(self.name, text)

    def note_purpose(self, purpose: int) -> None:
        """Says what the next start() or refuse() is for; ranks that say other numbers are told so."""
        self._ops.note_purpose(self.name, purpose)

    def settle(self) -> None:
        """Waits until weights may be read and written. Raises a ValueError for ids that were
        checked late and wrong."""
        self._ops.settle(self.name)

    def synchronize(self) -> None:
        """Waits for what torch has begun on the device, such as copies of shard_tensors()."""
        if self.device.place.type == "cuda":
            torch.cuda.synchronize(self.device.place)

    def require_idle(self) -> None:
        """Raises a ValueError if a step is not over, or its backward can still come."""
        self._ops.require_idle(self.name)

    def rename(self, name: str) -> None:
        self._ops.rename(self.name, name)
        self.name = name

    def shard_tensors(self, shard: int) -> Sequence[torch.Tensor]:
        """Weights and states as tensors on the shard's own memory."""
        return self._ops.shard_tensors(self.name, shard)

    def cache_figures(self, shard: int) -> Sequence[int]:
        """The fields of a CacheFigures, the last in nanoseconds."""
        return self._ops.cache_figures(self.name, shard)

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


def tensors_of(inputs: Sequence[Jagged]) -> list[torch.Tensor]:
    return [tensor for one in inputs for tensor in (one.ids, one.offsets, one.weights)
            if tensor is not None]
