"""Builds the runtime from source here, with g++ and nvcc, and runs a case with it."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import building
from processes import run_child

RUN_CASE = Path(__file__).resolve().parents[1] / "programs" / "run_case.py"


def run(context):
    if context.dry:
        context.attempt("rebuild", lambda: {"skipped": "a dry run"})
        return
    folder = context.work / "rebuilt"
    context.attempt("build", lambda: build_all(context, folder))
    context.attempt("case", lambda: run_case(context, folder))


def build_all(context, folder):
    with ThreadPoolExecutor(2) as pool:
        times = list(pool.map(lambda name: building.build(name, context.artifacts, folder / name),
                              building.LIBRARIES))
    return {"build_s": dict(zip(building.LIBRARIES, times)), "cores": os.cpu_count()}


def run_case(context, folder):
    name = context.catalogue("cases")[0]
    code, output = run_child(
        [sys.executable, RUN_CASE, context.artifacts, name], 60,
        {**os.environ, "NEUROSHARD_CUDA_LIBRARY": str(folder / building.CUDA)})
    return {"passed": True, "case": name} if code == 0 else {"error": output[-1500:]}
