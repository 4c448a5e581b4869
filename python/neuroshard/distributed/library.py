"""Finds and loads libneuroshard_torch.so, and finds neuroshard-compile."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
from functools import cache

import torch

from neuroshard.errors import Error

NAME = "libneuroshard_torch.so"


class MissingLibrary(Error, ImportError):
    """A part of NeuroShard that is needed here is not there; the text says where it is looked
    for."""


def _roots() -> list[pathlib.Path]:
    """Where a build tree or an installation may begin, seen from this package."""
    package = pathlib.Path(os.path.abspath(__file__)).parent.parent
    return list(package.parents)[:5]


@cache
def library_path() -> pathlib.Path:
    """NEUROSHARD_TORCH_LIBRARY, or lib/ of the build or installation of this package."""
    if named := os.environ.get("NEUROSHARD_TORCH_LIBRARY"):
        return pathlib.Path(named)
    for root in _roots():
        for folder in ("lib", "lib/x86_64-linux-gnu"):
            if (root / folder / NAME).exists():
                return root / folder / NAME
    raise MissingLibrary(
        f"{NAME} is neither in lib/ of the build or installation of this package nor named by "
        "NEUROSHARD_TORCH_LIBRARY; it is built when CMake finds PyTorch (docs/install.md)")


@cache
def load_library() -> None:
    """Defines the operators of lib/RuntimeTorch in torch.ops.neuroshard."""
    path = library_path()
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
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
    """NEUROSHARD_COMPILE, or bin/ of the build or installation, or PATH."""
    if named := os.environ.get("NEUROSHARD_COMPILE"):
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise MissingLibrary(f"NEUROSHARD_COMPILE names {named}, which is no program")
        return pathlib.Path(named)
    for root in _roots():
        if (root / "bin" / "neuroshard-compile").exists():
            return root / "bin" / "neuroshard-compile"
    if found := shutil.which("neuroshard-compile"):
        return pathlib.Path(found)
    raise MissingLibrary("neuroshard-compile is neither in bin/ of the build or installation of "
                         "this package, nor in PATH, nor named by NEUROSHARD_COMPILE; give "
                         "artifact= a folder that it has written elsewhere")
