"""compute-sanitizer over a few correctness cases, where it is installed and runs."""

import os
import shutil
import sys
from pathlib import Path

from processes import run_child

RUN_CASE = Path(__file__).resolve().parents[1] / "programs" / "run_case.py"
# No kernel of ours has shared memory, so racecheck comes last: CUB's sort has.
CHECKS = (("memcheck", 0), ("memcheck", 1), ("synccheck", 0), ("memcheck", 2), ("racecheck", 0))
FOUND, LIMIT_S = 9, 60


def run(context):
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer",
                                                             path="/usr/local/cuda/bin")
    names = context.catalogue("cases")
    for kind, number in CHECKS if tool and not context.dry else ():
        if number < len(names):
            context.attempt(f"{kind} {names[number]}",
                            lambda kind=kind, name=names[number]: check(context, tool, kind, name))
    if context.dry or not tool:
        context.attempt("compute-sanitizer", lambda: {
            "skipped": "a dry run" if context.dry else "not installed"})


def check(context, tool, kind, name):
    command = [tool, "--tool", kind, "--error-exitcode", str(FOUND), sys.executable,
               str(RUN_CASE), str(context.artifacts), name]
    # Each tensor an allocation of its own: what is read or written beside one shows.
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    code, output = run_child(command, LIMIT_S, environment)
    if code is None:
        return {"skipped": f"not done after {LIMIT_S} s"}
    if code not in (0, FOUND):
        return {"skipped": f"did not run (exit code {code}): {output[-400:]}"}
    if code == FOUND:
        return {"error": output[:3000]}
    return {"passed": True, "output": output[-300:]}
