"""Makes and runs programs with one change, which something must notice."""

import faulthandler
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

NOTICED = 64  # an exit code
LIMIT_S = 1200


def llvm_tool(name):
    """A tool of LLVM 22, from the search path or from beside the build's LLVM."""
    if found := shutil.which(f"{name}-22"):
        return found
    cache = Path(os.environ["NEUROSHARD_BUILD_DIR"], "CMakeCache.txt").read_text()
    folder = re.search(r"^LLVM_DIR:\w+=(.*)/lib/cmake/llvm$", cache, re.M)
    return str(Path(folder[1], "bin", name)) if folder else name


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          timeout=LIMIT_S)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stderr}"


def run_check(check, path, errors):
    faulthandler.disable()  # that a mutant ends its process is expected
    try:
        check(path)
    except errors:
        sys.exit(NOTICED)


def is_noticed(check, path, errors):
    """Whether a check of an artifact raises one of `errors`, or the process ends by a signal.

    It runs in a fork: a mutant may write anywhere in the process that runs it."""
    process = multiprocessing.get_context("fork").Process(
        target=run_check, args=(check, path, errors))
    process.start()
    process.join(LIMIT_S)
    if process.is_alive():
        process.kill()
        process.join()
        raise AssertionError(f"the check of {path} has not ended within {LIMIT_S} s")
    assert process.exitcode <= 0 or process.exitcode == NOTICED, "see the fork's traceback"
    return process.exitcode != 0
