"""Sharded modules: one rank, and as many as there are GPUs, over NCCL (a dry run: Gloo)."""

import subprocess
import sys
import time
from pathlib import Path

import torch

import exchange_cases

RANK = Path(__file__).resolve().parents[1] / "exchange_rank.py"


def run(context):
    records = context.records("exchange")
    there = 2 if context.dry else torch.cuda.device_count()
    for ranks in exchange_cases.RANKS:
        name = f"{ranks} ranks"
        if ranks > there:
            records.add(name, skipped=f"{there} GPUs here")
        elif not records.items.get(name, {}).get("passed"):
            records.add(name, **check(context, ranks))
    failed = [name for name, record in records.items.items() if record.get("passed") is False]
    if failed:
        raise AssertionError(f"wrong on {failed}: {records.items[failed[0]]['error']}")


def check(context, ranks):
    begin = time.monotonic()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
               str(ranks), str(RANK), str(context.artifacts)]
    with subprocess.Popen(command + ["--dry-run"] * context.dry, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            _, text = process.communicate()
        finally:
            process.kill()  # if the section was cut off; its ranks end with it
    error = "" if process.returncode == 0 else first_error(text)
    return {"passed": not error, "error": error, "wall_s": time.monotonic() - begin}


def first_error(text):
    """The line that says what went wrong on the first rank that failed, or the end of it all."""
    lines = [line for line in text.splitlines() if "Error: " in line and "Child" not in line]
    return (lines[0] if lines else text[-1500:])[:1500] or "ended without a word"
