"""Engine, which runs a plan's tables on one rank: the interface, and the engine for CPUs."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist

from neuroshard._manifest import Manifest
from neuroshard._torch_library import code_version
from neuroshard.distributed._engine import operators


class Engine(Protocol):
    """Runs a plan's tables on this rank. All ranks call join, start, wait and, through autograd,
    the update in the same order. backend: of the process group it uses. compile_options: options
    of neuroshard-compile for its artifacts."""

    backend: str
    compile_options: tuple[str, ...]

    def load(self) -> None:
        """Loads libraries and defines operators; raises what is missing."""

    def code_version(self) -> str:
        """Must be the same on all ranks."""

    def join(self, name: str, folder: pathlib.Path, manifest: Manifest,
             group: dist.ProcessGroup | None, threads: int,
             watched: dist.ProcessGroup | None = None) -> None:
        """Opens the shards. group: a process group for this engine alone; None: one rank. watched:
        the user's group, whose WatchedGroup (_group/watched_group.py) knows why the other has
        ended."""

    def initialize(self, seed: int) -> None: ...

    def set_gradient_scale(self, scale: float) -> None: ...

    def num_updates(self) -> int: ...

    def set_num_updates(self, count: int) -> None: ...

    def start(self, token: torch.Tensor, ids: torch.Tensor, offsets: torch.Tensor,
              weights: torch.Tensor | None, learns: bool) -> torch.Tensor:
        """Sends the ids; gives a ticket. learns: an update may follow."""

    def look_up(self, token: torch.Tensor, ticket: torch.Tensor) -> torch.Tensor:
        """Waits for the ids, looks rows up and starts to send them; gives a ticket for wait."""

    def wait(self, token: torch.Tensor, ticket: torch.Tensor, ids: torch.Tensor,
             offsets: torch.Tensor, weights: torch.Tensor | None,
             anchor: torch.Tensor | None) -> list[torch.Tensor]:
        """The results of all lookups, whose backward is the update."""

    def refuse(self, text: str) -> None:
        """Called instead of start(): ends the step on the other ranks with this error text."""

    def settle(self) -> None:
        """Waits until weights may be read and written."""

    def shard_tensors(self, shard: int) -> Sequence[torch.Tensor]:
        """Weights and states as tensors on the shard's own memory."""

    def phases(self) -> dict[str, tuple[float, int]]: ...

    def reset_phases(self) -> None: ...

    def close(self) -> None: ...


class CpuEngine:
    """lib/RuntimeTorch: compiled kernels on CPUs, and Gloo."""

    backend = "gloo"
    compile_options = ()

    def __init__(self) -> None:
        self.name = ""
        self._ops = torch.ops.neuroshard

    def load(self) -> None:
        operators.register()

    def code_version(self) -> str:
        return code_version()

    def join(self, name: str, folder: pathlib.Path, manifest: Manifest,
             group: dist.ProcessGroup | None, threads: int,
             watched: dist.ProcessGroup | None = None) -> None:
        self.name = name
        self._ops.join(name, str(folder.resolve()), group.group_name if group else "", threads)

    def initialize(self, seed: int) -> None:
        self._ops.initialize(self.name, seed)

    def set_gradient_scale(self, scale: float) -> None:
        self._ops.set_gradient_scale(self.name, scale)

    def num_updates(self) -> int:
        return self._ops.num_updates(self.name)

    def set_num_updates(self, count: int) -> None:
        self._ops.set_num_updates(self.name, count)

    def start(self, token: torch.Tensor, ids: torch.Tensor, offsets: torch.Tensor,
              weights: torch.Tensor | None, learns: bool) -> torch.Tensor:
        return torch.ops.neuroshard.embeddings_start(self.name, token, ids, offsets, weights)

    def look_up(self, token: torch.Tensor, ticket: torch.Tensor) -> torch.Tensor:
        return torch.ops.neuroshard.embeddings_lookup(self.name, token, ticket)

    def wait(self, token: torch.Tensor, ticket: torch.Tensor, ids: torch.Tensor,
             offsets: torch.Tensor, weights: torch.Tensor | None,
             anchor: torch.Tensor | None) -> list[torch.Tensor]:
        return torch.ops.neuroshard.embeddings_wait(self.name, token, ticket, ids, offsets,
                                                    weights, anchor)

    def refuse(self, text: str) -> None:
        self._ops.refuse(self.name, text)

    def settle(self) -> None:
        self._ops.settle(self.name)

    def shard_tensors(self, shard: int) -> Sequence[torch.Tensor]:
        return self._ops.shard_tensors(self.name, shard)

    def phases(self) -> dict[str, tuple[float, int]]:
        return dict(zip(self._ops.phase_names(), zip(self._ops.phase_ms(self.name),
                                                     self._ops.phase_bytes(self.name))))

    def reset_phases(self) -> None:
        self._ops.reset_phases(self.name)

    def close(self) -> None:
        self._ops.leave(self.name)


def make_engine(device: torch.device | str | int | None, engine: str | None) -> Engine:
    """engine: "cpu" or "cuda"; None: that of the device. device: of ids and results; None: that of
    the engine. The engine "cuda" runs on the device "cpu" only with the emulator as driver."""
    if engine not in (None, "cpu", "cuda"):
        raise ValueError(f"engine: expected \"cpu\" or \"cuda\", found {engine!r}")
    place = torch.device(device if device is not None else engine or "cpu")
    if (engine or place.type) == "cuda":
        from neuroshard.distributed._gpu.engine import GpuEngine
        return GpuEngine(place)
    if place.type != "cpu":
        raise ValueError(f"the engine for CPUs cannot run on {place}; leave engine= out, or make "
                         "it \"cuda\"")
    return CpuEngine()
