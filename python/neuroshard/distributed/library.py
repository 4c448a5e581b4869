"""Finds and loads libneuroshard_torch.so, and finds neuroshard-compile."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
from functools import cache

import torch

from neuroshard import parts
from neuroshard.errors import Error


class MissingLibrary(Error, ImportError):
    """A part of NeuroShard that is needed here is not there; the text says where it is looked
    for, and what brings it."""


@cache
def library_path() -> pathlib.Path:
    """NEUROSHARD_TORCH_LIBRARY, or lib/ of this package, or of its build or installation."""
    if named := os.environ.get("NEUROSHARD_TORCH_LIBRARY"):
        return pathlib.Path(named)
    if found := parts.library(parts.TORCH_LIBRARY):
        return found
    raise MissingLibrary(
        f"{parts.TORCH_LIBRARY} is neither in lib/ of this package, its build or installation, "
        "nor named by NEUROSHARD_TORCH_LIBRARY; it is built with PyTorch: "
        f"{parts.BUILD_WITH_TORCH} (docs/install.md)")


@cache
def load_library() -> None:
    """Defines the operators of lib/RuntimeTorch in torch.ops.neuroshard."""
    path = library_path()
    try:
        if mismatch := parts.torch_mismatch(path, torch.__version__):
            raise MissingLibrary(mismatch)
        torch.ops.load_library(str(path))
    except (OSError, ValueError) as error:
        raise MissingLibrary(f"cannot load {path}: {error}; it must be built with this version "
                             f"of PyTorch ({torch.__version__})") from error


@cache
def code_version() -> str:
    """Changes with the code that exchanges: a hash of the libraries."""
    digest = hashlib.sha256()
    path = library_path()
    for name in (path, path.with_name("libneuroshard_runtime.so")):
        if name.exists():
            digest.update(name.read_bytes())
    return digest.hexdigest()[:16]


@cache
def compiler_path() -> pathlib.Path:
    """NEUROSHARD_COMPILE, or bin/ of this package, of its build or installation, or PATH."""
    if named := os.environ.get("NEUROSHARD_COMPILE"):
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise MissingLibrary(f"NEUROSHARD_COMPILE names {named}, which is no program")
        return pathlib.Path(named)
    if found := parts.tool(parts.COMPILER) or shutil.which(parts.COMPILER):
        return pathlib.Path(found)
    raise MissingLibrary(
        f"{parts.COMPILER} is neither in bin/ of this package, its build or installation, nor in "
        "PATH, nor named by NEUROSHARD_COMPILE; give artifact= a folder that it has written "
        f"elsewhere, or build it: {parts.BUILD_WITH_COMPILER} (docs/install.md)")
