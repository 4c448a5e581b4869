"""Injected faults, in dry runs only, to test how a run handles them.

NEUROSHARD_GPU_FAULTS has "section:item:kind", separated by commas. Item is a name of a record, or
"record/contender". Kinds: crash (a kill), hang, error, spoil (the GPU fails for this process),
memory (the GPU has too little)."""

import os
import signal
import time

import torch

VARIABLE = "NEUROSHARD_GPU_FAULTS"


def inject(machine, section, item):
    if not machine.dry:
        return
    for fault in filter(None, os.environ.get(VARIABLE, "").split(",")):
        where, name, kind = fault.split(":")
        if (where, name) == (section, item):
            fail(machine, kind)


def fail(machine, kind):
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "hang":
        time.sleep(3600)
    elif kind == "memory":
        raise torch.OutOfMemoryError("injected: out of memory")
    elif kind == "spoil":
        machine.broken = "injected: an illegal memory access was encountered"
    raise RuntimeError(f"injected: {kind}")
