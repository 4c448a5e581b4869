"""Modules: steps on one GPU, alone and in a CUDA graph; and sharded, on one rank and on several:
over NCCL as far as there are GPUs, else all on one GPU over Gloo (as a dry run is)."""

import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

import torch

import exchange_cases
from processes import end, run_child, start

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
RANK, WHOLE_STEP = PROGRAMS / "exchange_rank.py", PROGRAMS / "whole_step.py"
LIMIT_S = 120
DRY_LIMIT_S = 1000  # ranks may share a busy core


def run(context):
    context.attempt("whole step", lambda: run_whole_step(context))
    if context.dry:
        for ranks in exchange_cases.RANKS[:2]:
            context.attempt(f"{ranks} ranks", lambda ranks=ranks: check(context, ranks))
        return
    for ranks in exchange_cases.RANKS:
        shared = ranks > torch.cuda.device_count()
        context.attempt(f"{ranks} ranks{' on one GPU, over Gloo' if shared else ''}",
                        lambda ranks=ranks, shared=shared: check(context, ranks, shared))


def run_whole_step(context):
    limit_s = DRY_LIMIT_S if context.dry else LIMIT_S
    code, output = run_child([sys.executable, WHOLE_STEP, context.artifacts,
                              *(["--dry-run"] if context.dry else [])], limit_s)
    if code is None:
        return {"error": f"not done after {limit_s} s"}
    return json.loads(output.splitlines()[-1]) if code == 0 else {"error": first_error(output)}


def check(context, ranks, shared=False):
    """Starts the ranks, and ends all when the first has failed."""
    with (socket.socket() as place, tempfile.TemporaryFile("w+", errors="replace") as output):
        # Open, it keeps the port from others; the store of the ranks can listen there.
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
        processes = [start_rank(context, rank, ranks, shared, port, output)
                     for rank in range(ranks)]
        limit_s = DRY_LIMIT_S if context.dry else LIMIT_S
        limit = time.monotonic() + limit_s
        try:
            codes = [None] * ranks
            while None in codes and not any(codes) and time.monotonic() < limit:
                time.sleep(0.05)
                codes = [process.poll() for process in processes]
        finally:
            for process in processes:
                end(process)
        if codes == [0] * ranks:
            return {"passed": True}
        output.seek(0)
        late = f"not done after {limit_s} s: " if None in codes and not any(codes) else ""
        return {"error": late + first_error(output.read())}


def start_rank(context, rank, ranks, shared, port, output):
    # Addresses of this machine alone: it may have no name that can be looked up.
    environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                   "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                   "GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
    command = [sys.executable, RANK, context.artifacts, *(["--dry-run"] if context.dry else []),
               *(["--shared"] if shared else [])]
    return start(command, environment, stdout=output, stderr=output)


def first_error(text):
    """The line that says what went wrong on the first rank that failed, or the end of it all."""
    lines = [line for line in text.splitlines() if "Error: " in line and "Child" not in line]
    return (lines[0] if lines else text[-1500:])[:1500] or "ended without a word"
