"""Checks which parts of NeuroShard work here, for `neuroshard doctor`. Needs nothing but Python."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import NamedTuple

from neuroshard._native import binaries, torch_version
from neuroshard._native.torch_version import TORCH, TORCHREC

TOOL_LIMIT_S = 20


class Check(NamedTuple):
    """The check of one part. state: "ok", "missing" or "broken". what: where it was found, or what
    is wrong. advice: what to do. needed: whether the planner needs it."""

    part: str
    state: str
    what: str
    advice: str = ""
    needed: bool = False


def own_version() -> str:
    try:
        return metadata.version("neuroshard")
    except metadata.PackageNotFoundError:
        return "of a build tree"


def checks() -> Iterator[Check]:
    yield Check("neuroshard", "ok", f"{own_version()}, Python {platform.python_version()}, "
                                    f"{binaries.PACKAGE}")
    for check in (planner, models, command_line, compiler, torch_package, torch_library,
                  torchrec_package, gpu_library, cuda_driver):
        yield check()


def works(found: list[Check]) -> bool:
    """Whether the planner itself works."""
    return all(one.state == "ok" for one in found if one.needed)


def planner() -> Check:
    part = "planner"
    if find_spec("neuroshard._planner") is None:
        return Check(part, "missing", "the compiled module neuroshard._planner", "pip install "
                     "neuroshard, or PYTHONPATH=build/release/python of a build", True)
    try:
        import neuroshard as ns

        problem = ns.ShardingProblem(tables=[ns.Table("table", 1000, 16)],
                                     features=[ns.Feature("feature", "table")], batch=64,
                                     topology="2xCPU")
        ns.plan(problem, progress=False).plan.verify(problem)
    except Exception as error:
        return Check(part, "broken", f"{type(error).__name__}: {error}", "it was built for "
                     f"another Python or machine: install it again for Python "
                     f"{platform.python_version()}", True)
    return Check(part, "ok", "plans and verifies", needed=True)


def models() -> Check:
    found = sorted(one.name for one in (binaries.PACKAGE / "models").glob("*.safetensors"))
    if found:
        return Check("cost models", "ok", ", ".join(found))
    return Check("cost models", "missing", "no .safetensors files in "
                 f"{binaries.PACKAGE / 'models'}", "install the package again; until then the "
                 "closed form predicts (--cost-model roofline)")


def command_line() -> Check:
    from neuroshard.cli._process import NEEDED

    missing = [package for module, package in NEEDED.items() if find_spec(module) is None]
    if missing:
        return Check("command line", "missing", ", ".join(missing),
                     "pip install \"neuroshard[cli]\"")
    return Check("command line", "ok", ", ".join(f"{name} {version_of(name)}"
                                                 for name in NEEDED.values()))


def compiler() -> Check:
    part, named = binaries.COMPILER, os.environ.get("NEUROSHARD_COMPILE")
    advice = ("needed to compile plans, not to plan nor to run artifacts: "
              f"{binaries.BUILD_WITH_COMPILER} (docs/install.md), or name one in "
              "NEUROSHARD_COMPILE")
    path = named or binaries.tool(part) or shutil.which(part)
    if path is None or not os.path.exists(path):
        return Check(part, "missing", named or "neither in bin of the package, its build or "
                     "installation, nor in PATH", advice)
    try:
        done = subprocess.run([path, "--help"], capture_output=True, timeout=TOOL_LIMIT_S,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(part, "broken", f"{path}: {error}", advice)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        if "libMLIR" in said[-1] or "libLLVM" in said[-1]:
            advice = ("install the shared libraries of the LLVM 22 that it was built with, such "
                      "as Debian's libmlir-22, and lld-22")
        return Check(part, "broken", f"{path}: exit code {done.returncode}: {said[-1]}", advice)
    return Check(part, "ok", str(path))


def torch_library() -> Check:
    part, named = binaries.TORCH_LIBRARY, os.environ.get("NEUROSHARD_TORCH_LIBRARY")
    path = named or binaries.library(part)
    advice = ("needed to run artifacts and to train with sharded tables: "
              f"{binaries.BUILD_WITH_TORCH} (docs/install.md), or name one in "
              "NEUROSHARD_TORCH_LIBRARY")
    if path is None or not os.path.exists(path):
        return Check(part, "missing", named or "not in lib of the package, its build or "
                     "installation", advice)
    built = torch_version.torch_of(path)
    if find_spec("torch") is None:
        return Check(part, "broken", f"{path}, built for torch {built or TORCH}, cannot be loaded "
                     "without torch",
                     f"pip install \"torch=={torch_version.release(built or TORCH)}.*\"")
    if mismatch := torch_version.torch_mismatch(path, version_of("torch")):
        return Check(part, "broken", *mismatch.split(": ", 1))
    return guarded(part, lambda: load_library(str(path), built), advice)


def gpu_library() -> Check:
    part, sort = binaries.CUDA_LIBRARY, "libneuroshard_cuda_sort.so"
    path = binaries.cuda_library()
    try:
        ctypes.CDLL(path)
    except OSError as error:
        if path == part:
            return Check(part, "missing", "not in lib of the package, its build or installation",
                         "needed to run artifacts on GPUs: install the package again")
        return Check(part, "broken", f"{path}: {error}", "install the package again")
    if path == part:
        return Check(part, "ok", f"{path}, which the system finds")
    if pathlib.Path(path).with_name(sort).exists():
        return Check(part, "ok", f"{path}, with {sort}")
    return Check(part, "ok", f"{path}, without {sort}: it looks tables up on GPUs, but does not "
                 "train them", "for that install nvcc (tools/dev/requirements/build.txt) and the "
                 f"package again: {binaries.BUILD_WITH_TORCH}")


def load_library(path: str, built: str | None) -> str:
    import_module("torch").ops.load_library(path)
    return f"{path}, for torch {built}" if built else path


def torch_package() -> Check:
    return package("torch", "torch", TORCH, "needed to train with sharded tables, and to plan "
                   "torch modules")


def torchrec_package() -> Check:
    return package("torchrec", "torchrec", TORCHREC, "needed for plans in TorchRec")


def package(part: str, module: str, wanted: str, purpose: str) -> Check:
    advice = f"{purpose}: pip install \"{module}=={wanted}.*\""
    if find_spec(module) is None:
        return Check(part, "missing", "not installed", advice)
    version = version_of(module)
    if not version.startswith(f"{wanted}."):
        return Check(part, "broken", f"{version}; what is tested is {wanted}", advice)
    return guarded(part, lambda: f"{version}{import_module(module) and ''}", advice)


def cuda_driver() -> Check:
    part = "CUDA driver"
    advice = "needed to run on GPUs, not to plan for them: install NVIDIA's driver"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Check(part, "missing", "no libcuda.so.1", advice)
    version, devices = ctypes.c_int(), ctypes.c_int()
    code = driver.cuInit(0)
    if code or driver.cuDriverGetVersion(ctypes.byref(version)) or driver.cuDeviceGetCount(
            ctypes.byref(devices)):
        return Check(part, "broken", f"libcuda.so.1 is there, but finds no GPU (error {code})",
                     advice)
    return Check(part, "ok", f"CUDA {version.value // 1000}.{version.value % 1000 // 10}, "
                             f"{devices.value} GPU")


def guarded(part: str, attempt: Callable[[], str], advice: str) -> Check:
    try:
        return Check(part, "ok", attempt())
    except Exception as error:
        return Check(part, "broken", f"{type(error).__name__}: {str(error).splitlines()[0]}"
                     if str(error) else type(error).__name__, advice)


def version_of(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def as_json(found: list[Check]) -> str:
    return json.dumps({"planner_works": works(found),
                       "checks": [one._asdict() for one in found]}, indent=1)


def print_plain(json_asked: bool) -> int:
    """Without rich; returns the exit code."""
    found = list(checks())
    if json_asked:
        print(as_json(found))
    else:
        for one in found:
            print(f"{one.part}: {one.state}: {one.what}" + (f"; {one.advice}" if one.advice else
                                                           ""))
    sys.stdout.flush()
    return 0 if works(found) else 1
