"""The device of a collection: CPUs, GPUs, or GPUs that are emulated."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from neuroshard import _fields
from neuroshard._native import binaries
from neuroshard.errors import TensorError

EMULATOR = "emulator"


@dataclass(frozen=True)
class Device:
    """name: as lib/RuntimeTorch takes it, "cpu", "cuda:0" or "emulator". place: of ids and
    results."""

    name: str
    place: torch.device

    @property
    def kind(self) -> str:
        """What must be the same on all ranks."""
        return self.name.split(":")[0]

    @property
    def backend(self) -> str:
        """Of the process group that it uses: numbers travel between hosts, rows between GPUs."""
        return "cpu:gloo,cuda:nccl" if self.place.type == "cuda" else "gloo"

    @property
    def compile_options(self) -> tuple[str, ...]:
        """Options of neuroshard-compile for its artifacts."""
        if self.name == EMULATOR:
            return ("--emulate", "-O", "0")  # compiling takes longer than emulated steps
        if self.place.type == "cpu":
            return ()
        major, minor = torch.cuda.get_device_capability(self.place)
        toolkit = binaries.cuda_toolkit()
        return ("--gpu", f"sm_{major}{minor}",
                *(("--cuda-toolkit", str(toolkit)) if toolkit else ()))


def pick_device(device: torch.device | str | int | None) -> Device:
    """None: the CPU. Raises a TensorError for what is no device, or not there."""
    if device is None or device == EMULATOR:
        return Device(device or "cpu", torch.device("cpu"))
    try:
        place = torch.device(device)
    except (RuntimeError, TypeError):
        place = None
    if place is None or place.type not in ("cpu", "cuda") or place.type == "cpu" and place.index:
        raise TensorError("device: expected \"cpu\", \"cuda\", a GPU such as \"cuda:0\", or "
                          f"\"{EMULATOR}\", found {_fields.shown(device)}")
    if place.type == "cpu":
        return Device("cpu", torch.device("cpu"))
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (place.index or 0) >= count:
        raise TensorError(f"device: there is no {place}: this PyTorch sees {count} GPUs; device="
                          f"\"{EMULATOR}\" needs none")
    if place.index is None:
        place = torch.device("cuda", torch.cuda.current_device())
    return Device(str(place), place)
