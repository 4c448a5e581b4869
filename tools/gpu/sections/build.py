"""Builds the runtime libraries here, if those that were carried do not load: with g++ and nvcc
of this machine, without CMake or LLVM."""

import ctypes
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CUDA, SORT = "libneuroshard_cuda.so", "libneuroshard_cuda_sort.so"
# Files of lib/Runtime that are part of the CUDA runtime, too.
SHARED = ("JsonValue", "Manifest", "ManifestCheck", "Memory", "ThreadPool")


def run(context):
    records = context.records("build")
    for name, compile_library in ((CUDA, compile_cuda), (SORT, compile_sort)):
        if name in records and not records.items[name].get("error"):
            continue
        path = context.artifacts / "lib" / name
        reason = why_not_loadable(path)
        if not reason:
            records.add(name, path=str(path), built=False)
        elif context.dry and name == SORT:
            records.add(name, skipped="the emulator sorts")
        else:
            records.add(name, **build(context, name, reason, compile_library))
    if error := records.items[CUDA].get("error"):
        raise RuntimeError(f"{CUDA} can neither be loaded nor built: {error}")


def why_not_loadable(path):
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        return str(error)
    return ""


class BuildError(Exception):
    """A compiler that is missing or has failed."""


def build(context, name, reason, compile_library):
    target = context.out / "lib" / name
    target.parent.mkdir(exist_ok=True)
    begin = time.monotonic()
    try:
        compile_library(context, target)
    except BuildError as error:
        return {"error": str(error), "reason": reason}
    return {"path": str(target), "built": True, "reason": reason,
            "wall_s": time.monotonic() - begin}


def call(*command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise BuildError(str(error)) from None
    if done.returncode:
        raise BuildError(done.stderr[-1500:])


def compile_cuda(context, target):
    """The files one by one, in parallel, then together; nlohmann-json was carried along."""
    sources = [*(ROOT / "lib" / "RuntimeCuda").glob("*.cpp"),
               *(ROOT / "lib" / "Runtime" / f"{name}.cpp" for name in SHARED)]
    objects = [target.parent / f"{source.stem}.o" for source in sources]
    flags = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-I", ROOT / "include",
             "-isystem", context.artifacts / "include"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda pair: call("g++", "-c", *flags, pair[0], "-o", pair[1]),
                      zip(sources, objects)))
    call("g++", "-shared", "-Wl,--no-undefined", *objects, "-ldl", "-lpthread", "-o", target)


def compile_sort(_context, target):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin") or "nvcc"
    call(nvcc, "-O3", "-std=c++20", "-shared", "-cudart", "static", "-arch=native", "-Xcompiler",
         "-fPIC,-fvisibility=hidden", "-Xlinker", "--exclude-libs=ALL",
         ROOT / "lib" / "RuntimeCuda" / "Sort.cu", "-o", target)
