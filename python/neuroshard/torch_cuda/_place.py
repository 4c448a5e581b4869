"""The device of tables: a GPU, or the CPU with the emulator as driver."""

from __future__ import annotations

import torch

from neuroshard import _fields, cuda
from neuroshard.errors import TensorError


def pick_place(device: torch.device | str | int | None) -> torch.device:
    """The device, with an index as devices of tensors have it. None: the current GPU, else the
    CPU."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        place = torch.device(device)
    except (RuntimeError, TypeError):
        raise TensorError("expected a CUDA device, such as \"cuda:0\", or \"cpu\" with the "
                          f"{cuda.EMULATOR} as driver, found {_fields.shown(device)}") from None
    if place.type not in ("cuda", "cpu") or place.type == "cpu" and place.index:
        raise TensorError(f"expected a CUDA device, found {place}")
    if place.type == "cpu":
        return torch.device("cpu")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (place.index or 0) >= count:
        raise TensorError(f"there is no {place}: this PyTorch sees {count} GPUs")
    return torch.device("cuda", torch.cuda.current_device()) if place.index is None else place


def require_driver(device: cuda.Device, place: torch.device) -> None:
    """Raises unless the driver is the emulator exactly when the device is the CPU."""
    gpu = device.info.gpu.decode()
    if (gpu == cuda.EMULATOR) == (place.type == "cpu"):
        return
    if gpu == cuda.EMULATOR:
        raise TensorError(f"the driver that NEUROSHARD_CUDA_DRIVER names is the {gpu}, whose "
                          f"memory is that of the host: use device=\"cpu\", not {place}")
    raise TensorError(f"tables on \"cpu\" need the {cuda.EMULATOR} as driver "
                      f"(NEUROSHARD_CUDA_DRIVER), found {gpu}: use a PyTorch with CUDA and "
                      "device=\"cuda\"")
