"""Finds and loads libneuroshard_torch.so, the runtime and operators of lib/RuntimeTorch."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pathlib
from collections.abc import Iterable, Sequence
from functools import cache

import torch

from neuroshard._native import binaries, torch_version
from neuroshard.errors import MissingLibrary

RUNTIME = "libneuroshard_runtime.so"


@cache
def library_path() -> pathlib.Path:
    """NEUROSHARD_TORCH_LIBRARY, or lib/ of this package, or of its build or installation."""
    if named := os.environ.get("NEUROSHARD_TORCH_LIBRARY"):
        return pathlib.Path(named)
    if found := binaries.library(binaries.TORCH_LIBRARY):
        return found
    raise MissingLibrary(
        f"{binaries.TORCH_LIBRARY} is neither in lib/ of this package, its build or installation, "
        "nor named by NEUROSHARD_TORCH_LIBRARY; it is built with PyTorch: "
        f"{binaries.BUILD_WITH_TORCH} (docs/install.md)")


@cache
def load_library() -> None:
    """Defines the operators of lib/RuntimeTorch in torch.ops.neuroshard."""
    path = library_path()
    try:
        if mismatch := torch_version.torch_mismatch(path, torch.__version__):
            raise MissingLibrary(mismatch)
        torch.ops.load_library(str(path))
    except (OSError, ValueError) as error:
        raise MissingLibrary(f"cannot load {path}: {error}; it must be built with this version "
                             f"of PyTorch ({torch.__version__})") from error


def load_runtime(functions: Iterable[tuple[str, type | None, Sequence[type]]]) -> ctypes.CDLL:
    """The runtime beside the operators' library, which shares it, with C functions of
    include/neuroshard/Runtime: name, type of the result, types of the arguments."""
    path = library_path().with_name(RUNTIME)
    try:
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise MissingLibrary(f"cannot load {path}: {error}") from error
    for name, result, arguments in functions:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@cache
def code_version() -> str:
    """A hash of the libraries: ranks that run different code have different ones."""
    digest = hashlib.sha256()
    path = library_path()
    for name in (path, *map(path.with_name, (RUNTIME, "libneuroshard_cuda.so"))):
        if name.exists():
            digest.update(name.read_bytes())
    return digest.hexdigest()[:16]
