"""The engine for GPUs, which runs a plan's tables on the GPU of each rank."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import pathlib
from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist

from neuroshard import _binaries, cuda
from neuroshard._dtypes import DTYPES, ID_DTYPES
from neuroshard._gpu.place import pick_place
from neuroshard._group.watched_group import watched_group_of, explain, is_watched
from neuroshard._manifest import Manifest
from neuroshard.distributed._engine.operators import learning_rate_of
from neuroshard.distributed._gpu import operators
from neuroshard.distributed._gpu.layout import make_layout
from neuroshard.distributed._gpu.norms import NormExchange
from neuroshard.distributed._gpu.shard_memory import ShardMemory
from neuroshard.distributed._gpu.step_state import Step
from neuroshard.distributed._gpu.stepper import Stepper
from neuroshard.distributed._gpu.transport import Transport
from neuroshard.errors import GroupError, TensorError
from neuroshard._jagged import Jagged


class GpuEngine:
    """Kernels of libneuroshard_cuda, and collectives on device tensors by NCCL; or by Gloo with
    the emulator as driver, whose memory is the host's."""

    def __init__(self, place: torch.device) -> None:
        if place.type == "cuda" and not torch.cuda.is_available():
            raise TensorError("there is no GPU that torch can use; the emulator "
                              "(NEUROSHARD_CUDA_DRIVER) takes engine=\"cuda\", device=\"cpu\"")
        self.place = pick_place(place)
        self.backend = "nccl" if self.place.type == "cuda" else "gloo"
        self.steps: dict[int, Step] = {}
        self.stepper: Stepper | None = None
        self.name = ""
        self._numbers = itertools.count()

    @property
    def compile_options(self) -> tuple[str, ...]:
        if self.place.type == "cpu":
            return ("--emulate", "-O", "0")  # compiling takes longer than emulated steps
        major, minor = torch.cuda.get_device_capability(self.place)
        toolkit = _binaries.cuda_toolkit()
        return ("--gpu", f"sm_{major}{minor}",
                *(("--cuda-toolkit", str(toolkit)) if toolkit else ()))

    def load(self) -> None:
        operators.register()
        cuda.load_library()

    def code_version(self) -> str:
        """A hash of the library and of the code of the exchanges."""
        digest = hashlib.sha256(pathlib.Path(cuda.library_path()).read_bytes())
        for file in sorted(pathlib.Path(__file__).parent.glob("*.py")):
            digest.update(file.read_bytes())
        return digest.hexdigest()[:16]

    def join(self, name: str, folder: pathlib.Path, manifest: Manifest,
             group: dist.ProcessGroup | None, threads: int,
             watched: dist.ProcessGroup | None = None) -> None:
        self._watched = watched or (dist.group.WORLD if group else None)
        rank = dist.get_rank(group) if group else 0
        cuda.check_artifact(folder, rank)
        layout = make_layout(manifest)
        wire = DTYPES[manifest.plain.get("wire_type", "f32")]
        require_going = None
        if self._watched is not None and is_watched(self._watched):
            require_going = watched_group_of(self._watched).require_going
        transport = Transport(group, rank, layout.ranks, wire, require_going)
        shards = ShardMemory(os.fspath(folder), manifest, rank, self.place)
        self._shards = shards
        self.stepper = Stepper(layout, transport, shards,
                               NormExchange(manifest, transport, self.place),
                               ID_DTYPES[manifest.exchange["id_type"]])
        operators.add(name, self)
        self.name = name

    def initialize(self, seed: int) -> None:
        if self._shards.device is not None:
            self._shards.device.initialize(seed)

    def set_gradient_scale(self, scale: float) -> None:
        self.stepper.scale = scale

    def num_updates(self) -> int:
        return self.stepper.updates

    def set_num_updates(self, count: int) -> None:
        self.stepper.updates = count

    # Steps, which the operators call by number

    def start(self, token: torch.Tensor, ids: torch.Tensor, offsets: torch.Tensor,
              weights: torch.Tensor | None, learns: bool) -> torch.Tensor:
        return torch.ops.neuroshard.sharded_start(self.name, token, ids, offsets, weights, learns)

    def look_up(self, token: torch.Tensor, ticket: torch.Tensor) -> torch.Tensor:
        return ticket  # wait does it

    def wait(self, token: torch.Tensor, ticket: torch.Tensor, ids: torch.Tensor,
             offsets: torch.Tensor, weights: torch.Tensor | None,
             anchor: torch.Tensor | None) -> list[torch.Tensor]:
        return torch.ops.neuroshard.sharded_wait(self.name, token, ticket, ids, offsets, weights,
                                                 anchor)

    def start_step(self, given: Jagged, learns: bool) -> int:
        number = next(self._numbers)
        with self._ending_all():
            self.steps[number] = self.stepper.start(given, learns)
        return number

    def finish_step(self, number: int, learns: bool) -> list[torch.Tensor]:
        step = self._step(number)
        if learns and not step.learns:
            raise TensorError("these ids were started without gradients, but are waited for with "
                              "them: start and wait in the same mode")
        with self._ending_all():
            return self.stepper.finish(step)

    def update_step(self, number: int, gradients: Sequence[torch.Tensor]) -> torch.Tensor | None:
        step = self._step(number)
        rate = learning_rate_of(self.name)
        del self.steps[number]
        with self._ending_all():
            return self.stepper.update(step, gradients, rate)

    @contextlib.contextmanager
    def _ending_all(self) -> Iterator[None]:
        """Ends the group after an error within a step on any rank, so that no rank waits for ever,
        and raises the first cause on all."""
        try:
            yield
        except GroupError:
            raise
        except (RuntimeError, cuda.CudaError) as error:
            if self._watched is None or not is_watched(self._watched):
                raise
            raise GroupError(explain(error, self._watched)) from error

    def _step(self, number: int) -> Step:
        step = self.steps.get(number)
        if step is None:
            raise TensorError(f"step {number} is over: a backward runs once for each forward")
        return step

    def refuse(self, text: str) -> None:
        """Does nothing: messages between devices have no room for a text. The other ranks learn the
        error when this rank's program ends (_group/watched_group.py)."""

    def settle(self) -> None:
        """Waits for the steps, and raises if kernels found ids out of range."""
        self.stepper.check()

    def shard_tensors(self, shard: int) -> Sequence[torch.Tensor]:
        return self._shards.tensors[shard]

    def phases(self) -> dict[str, tuple[float, int]]:
        raise TensorError("phases are not timed on GPUs; use torch.profiler")

    def reset_phases(self) -> None:
        self.phases()

    def close(self) -> None:
        operators.remove(self.name)
        self.steps.clear()
        if self.stepper is not None:
            self.stepper.close()
            self.stepper = None
