"""Runs a torchrun job on the hosts of an emulated cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from neuroshard.bench._cluster.cores import Cores
from neuroshard.bench._cluster.network import CARD, Network, address

PORT = 29512  # each cluster has a network of its own
POLL_S, PATIENCE_S = 0.05, 20.0


def launch(network: Network, cores: Cores, program: Sequence[str]) -> int:
    """Runs `program`, as torchrun takes it, on all ranks; gives the first exit code that is not 0.
    When a host fails, the others get time to end, and are ended then."""
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": CARD, "TP_SOCKET_IFNAME": CARD,
                   "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
                   **cores.environment()}
    command = ["-m", "neuroshard.bench._cluster.rank", *program]
    processes = [subprocess.Popen(network.command_on(host, *torchrun(network, host), *command),
                                  env=environment, start_new_session=True)
                 for host in range(network.shape.hosts)]
    try:
        return wait_for(processes)
    finally:
        for process in processes:
            end(process)


def torchrun(network: Network, host: int) -> list[str]:
    shape = network.shape
    return [sys.executable, "-m", "torch.distributed.run", "--nnodes", str(shape.hosts),
            "--nproc-per-node", str(shape.ranks), "--node-rank", str(host),
            "--master-addr", address(0), "--master-port", str(PORT),
            "--local-addr", address(host)]


def wait_for(processes: Sequence[subprocess.Popen]) -> int:
    limit = None
    while True:
        codes = [process.poll() for process in processes]
        failed = [code for code in codes if code]
        if None not in codes:
            return failed[0] if failed else 0
        if failed and limit is None:
            limit = time.monotonic() + PATIENCE_S
        if limit is not None and time.monotonic() > limit:
            return failed[0]
        time.sleep(POLL_S)


def end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
