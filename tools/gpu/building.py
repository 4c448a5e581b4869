"""Builds the runtime libraries from the sources of this checkout with g++ and nvcc alone,
without CMake or LLVM."""

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CUDA, SORT = LIBRARIES = ("libneuroshard_cuda.so", "libneuroshard_cuda_sort.so")
# Files of lib/Runtime that are part of the CUDA runtime, too.
SHARED = ("Host/BufferPool.cpp", "Host/PageBlock.cpp", "Host/ThreadPool.cpp")
LINKED_WITH_TORCH = ("libneuroshard_runtime.so", "libNeuroShardArtifact.a", "libNeuroShardModel.a")


class BuildError(Exception):
    """A compiler that is missing or has failed."""


def build(name, artifacts, target):
    """Seconds that it took. artifacts: where headers of other libraries were carried along."""
    target.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    if name == CUDA:
        compile_cuda(artifacts / "include", target)
    else:
        compile_sort(target)
    return round(time.monotonic() - begin, 1)


def call(*command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise BuildError(str(error)) from None
    if done.returncode:
        raise BuildError(f"{' '.join(map(str, command))}:\n{done.stderr[:1500]}")


def sources():
    return [*sorted((ROOT / "lib" / "RuntimeCuda").rglob("*.cpp")),
            *sorted((ROOT / "lib" / "Artifact").rglob("*.cpp")),
            *(ROOT / "lib" / "Runtime" / name for name in SHARED),
            # The names of types, optimizers and tiers, as files have them, and settings of optimizers.
            *(ROOT / "lib" / "Model" / name for name in ("Drift.cpp", "Names.cpp", "Optimizer.cpp"))]


def compile_cuda(include, target):
    """The files one by one, in parallel, then together."""
    folder = target.parent / "objects"
    folder.mkdir(exist_ok=True)
    objects = [folder / f"{source.parent.name}.{source.stem}.o" for source in sources()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda source, made: call(
            "g++", "-c", *flags(include, library_of(source)), source, "-o", made),
                      sources(), objects))
    link(objects, target)


def library_of(source):
    """The folder of lib that it lies in, whose private headers it includes."""
    return ROOT / "lib" / source.relative_to(ROOT / "lib").parts[0]


def flags(include, library):
    """Of the compiler, for a file of a library."""
    carried = ["-isystem", include] if include.exists() else []
    return ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-I", ROOT / "include",
            "-I", library, *carried]


def link(objects, target):
    call("g++", "-shared", "-Wl,--no-undefined", *objects, "-ldl", "-lpthread", "-o", target)


def compile_torch(torch, build, target):
    """libneuroshard_torch.so for another PyTorch. torch: the folder of its Python package; build:
    where the libraries that it is linked with were built."""
    unit = target.with_suffix(".cpp")
    unit.write_text("".join(f'#include "{source}"\n' for source in
                            sorted((ROOT / "lib" / "RuntimeTorch").glob("*.cpp"))))
    headers = torch / "include"
    # By GCC, as PyTorch is: clang writes names of some templates in another way.
    call("g++", "-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared",
         "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-Wno-deprecated-declarations",
         "-I", ROOT / "include", "-isystem", headers,
         "-isystem", headers / "torch" / "csrc" / "api" / "include", unit,
         *(build / "lib" / name for name in LINKED_WITH_TORCH),
         *(torch / "lib" / name for name in ("libtorch_cpu.so", "libc10.so")),
         "-ldl", "-Wl,-rpath,$ORIGIN", "-Wl,-soname,libneuroshard_torch.so", "-o", target)
    unit.unlink()


def architecture():
    """Of the GPU here, as nvcc calls it."""
    import torch
    if not torch.cuda.is_available():
        return "sm_90"
    return "sm_{}{}".format(*torch.cuda.get_device_capability())


def compile_sort(target):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin") or "nvcc"
    call(nvcc, "-O3", "-std=c++20", "-shared", "-cudart", "static", f"-arch={architecture()}",
         "-Xcompiler", "-fPIC,-fvisibility=hidden", "-Xlinker", "--exclude-libs=ALL",
         ROOT / "lib" / "RuntimeCuda" / "Sort.cu", "-o", target)
