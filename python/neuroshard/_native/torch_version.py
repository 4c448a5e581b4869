"""The versions of PyTorch and TorchRec that NeuroShard is tested with, the version of PyTorch that
the operators' library was built for, and whether the library may be loaded into another."""

from __future__ import annotations

import mmap
import os
import re

from neuroshard._native.binaries import BUILD_WITH_TORCH

# Tested; pyproject.toml asks for these.
TORCH, TORCHREC = "2.14", "1.9"

# The text in lib/RuntimeTorch/TorchVersion.cpp.
_BUILT_FOR = re.compile(rb"neuroshard built for torch ([0-9A-Za-z.+]+)\0")


def torch_of(path: str | os.PathLike) -> str | None:
    """The version of PyTorch that a libneuroshard_torch.so was built for, as 2.14.1. Read from
    the file, since with another version it cannot be loaded."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        found = _BUILT_FOR.search(text)
        return found[1].decode() if found else None


def torch_mismatch(path: str | os.PathLike, version: str) -> str:
    """Why the library cannot be loaded into a PyTorch of this version; "" if it can. PyTorch
    keeps its C++ interface within a release such as 2.14."""
    built = torch_of(path)
    if built is None or release(built) == release(version):
        return ""
    return (f"{path} was built for PyTorch {built}, but the one installed is {version}: either "
            f"pip install \"torch=={release(built)}.*\", or build NeuroShard for yours "
            f"({BUILD_WITH_TORCH})")


def release(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])
