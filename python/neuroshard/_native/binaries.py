"""Finds the compiled libraries and tools of NeuroShard; it needs nothing but Python.

In a wheel they lie inside the package, in an installation or a build tree above it."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from typing import NoReturn

# Not resolved: the package of a build tree is made of links.
PACKAGE = pathlib.Path(os.path.abspath(__file__)).parents[1]
LIBRARY_FOLDERS = ("lib", "lib64", "lib/x86_64-linux-gnu")
TORCH_LIBRARY = "libneuroshard_torch.so"
CUDA_LIBRARY = "libneuroshard_cuda.so"
COMPILER = "neuroshard-compile"

# How to build them into the package (docs/install.md).
BUILD_WITH_TORCH = ("pip install . --no-build-isolation, where torch is installed, or ./dev demo in a "
                    "checkout")
BUILD_WITH_COMPILER = "pip install . --config-settings=cmake.define.NEUROSHARD_BUILD_COMPILER=ON"


def roots() -> list[pathlib.Path]:
    """Folders that may have lib/ and bin/, the package itself first."""
    return [PACKAGE, *list(PACKAGE.parents)[:5]]


def library(name: str) -> pathlib.Path | None:
    """The path of a library in this package's wheel, installation or build tree; None if it is
    not there."""
    return first(root / folder / name for root in roots() for folder in LIBRARY_FOLDERS)


def cuda_library() -> str:
    """NEUROSHARD_CUDA_LIBRARY, or lib/ of this package, of its build or installation, else the
    name, for the system to find."""
    return os.environ.get("NEUROSHARD_CUDA_LIBRARY") or str(library(CUDA_LIBRARY) or CUDA_LIBRARY)


def tool(name: str) -> pathlib.Path | None:
    """The path of a tool there."""
    return first(root / "bin" / name for root in roots())


def cuda_toolkit() -> pathlib.Path | None:
    """The folder of NVIDIA's compiler among this interpreter's packages: the one that
    neuroshard-compile was built with may not exist on this machine."""
    try:
        found = find_spec("nvidia.cu13")
    except ModuleNotFoundError:
        return None
    folders = found.submodule_search_locations if found else None
    return next((pathlib.Path(one) for one in folders or ()
                 if (pathlib.Path(one) / "bin" / "ptxas").is_file()), None)


def run_tool(name: str) -> NoReturn:
    """Replaces this process by a tool, with the arguments of the command line."""
    path = tool(name)
    if path is None:
        sys.exit(f"{name} is not in bin of the package in {PACKAGE}: {BUILD_WITH_COMPILER}")
    os.execv(path, [str(path), *sys.argv[1:]])


def first(paths: Iterable[pathlib.Path]) -> pathlib.Path | None:
    return next((path for path in paths if path.is_file()), None)
