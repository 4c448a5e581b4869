"""Starts the ranks of a job as torchrun does, but out of one process that has imported PyTorch:
importing it costs each rank of torchrun three seconds of CPU.

usage: python forked_ranks.py RANKS LOGS MODULES SCRIPT ARGUMENT...

Imports MODULES, names with commas between, then runs SCRIPT once per rank with the environment
that torchrun gives. The output of a rank goes to LOGS/rank-<rank>.log. If a rank fails, the others
are ended, and the exit code is 1."""

import ctypes
import importlib
import os
import runpy
import signal
import sys
import traceback
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(os.environ["NEUROSHARD_BUILD_DIR"], "python")))
HOST = "127.0.0.1"
PR_SET_PDEATHSIG = 1


def be_rank(rank, ranks, logs, port, script, arguments):
    """Runs the script in this process, a fresh fork. Gives its exit code."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    log = os.open(Path(logs, f"rank-{rank}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update({
        "RANK": str(rank), "LOCAL_RANK": str(rank), "GROUP_RANK": "0",
        "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "GROUP_WORLD_SIZE": "1",
        "MASTER_ADDR": HOST, "MASTER_PORT": os.read(port, 16).decode(),
        # The store is this process's parent.
        "TORCHELASTIC_USE_AGENT_STORE": "True"})
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
        return 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001, the log tells what it was
        traceback.print_exc()
        return 1


def main(ranks, logs, modules, script, *arguments):
    ranks = int(ranks)
    for name in modules.split(","):
        importlib.import_module(name)
    from torch.distributed import TCPStore

    # The store has threads, so it starts after the forks and tells them its port.
    children, pipes = {}, []
    for rank in range(ranks):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            code = be_rank(rank, ranks, logs, reading, script, arguments)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        children[child] = rank
        pipes.append(writing)
    store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False, timeout=timedelta(days=1))
    for pipe in pipes:
        os.write(pipe, str(store.port).encode())
    failed = False
    while children:
        child, status = os.wait()
        del children[child]
        if status and not failed:
            failed = True
            for other in children:
                os.kill(other, signal.SIGKILL)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
