"""Builds the runtime libraries here, if those that were carried do not load: with g++ and nvcc
of this machine, without CMake or LLVM."""

import ctypes
import shutil
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CUDA, SORT = "libneuroshard_cuda.so", "libneuroshard_cuda_sort.so"


def run(context):
    records = context.records("build")
    for name, command in ((CUDA, command_cuda), (SORT, command_sort)):
        if name in records and not records.items[name].get("error"):
            continue
        path = context.artifacts / "lib" / name
        reason = why_not_loadable(path)
        if not reason:
            records.add(name, path=str(path), built=False)
        elif context.dry and name == SORT:
            records.add(name, skipped="the emulator sorts")
        else:
            records.add(name, **build(context, name, reason, command(context)))
    if error := records.items[CUDA].get("error"):
        raise RuntimeError(f"{CUDA} can neither be loaded nor built: {error}")


def why_not_loadable(path):
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        return str(error)
    return ""


def build(context, name, reason, command):
    target = context.out / "lib" / name
    target.parent.mkdir(exist_ok=True)
    begin = time.monotonic()
    try:
        done = subprocess.run([*map(str, command), "-o", str(target)], capture_output=True,
                              text=True, check=False)
    except OSError as error:
        return {"error": str(error), "reason": reason}
    if done.returncode:
        return {"error": done.stderr[-1500:], "reason": reason}
    return {"path": str(target), "built": True, "reason": reason,
            "wall_s": time.monotonic() - begin}


def command_cuda(context):
    """One line of g++; nlohmann-json was carried along."""
    sources = sorted((ROOT / "lib" / "RuntimeCuda").glob("*.cpp"))
    shared = [ROOT / "lib" / "Runtime" / name for name in shared_sources()]
    return ["g++", "-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden",
            "-I", ROOT / "include", "-isystem", context.artifacts / "include", *sources, *shared,
            "-ldl", "-lpthread"]


def shared_sources():
    """Files of lib/Runtime that the CUDA runtime is made of, too."""
    return (ROOT / "lib" / "RuntimeCuda" / "shared_sources.txt").read_text().split()


def command_sort(_context):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin") or "nvcc"
    return [nvcc, "-O3", "-std=c++20", "-shared", "-cudart", "static", "-arch=native",
            "-Xcompiler", "-fPIC,-fvisibility=hidden", "-Xlinker", "--exclude-libs=ALL",
            ROOT / "lib" / "RuntimeCuda" / "Sort.cu"]
