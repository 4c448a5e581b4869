"""Faults of one job, one after the other or of a certain form. Each function is called in every
rank."""

import atexit
import ctypes
import os
import resource
import signal
import time
import warnings
from pathlib import Path

import neuroshard as ns
from faults_job import Job, plan, problem, say
from neuroshard._group import watched_group
from neuroshard.distributed import lockstep


def failure(work):
    """The text of the error that work raises."""
    try:
        work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def recoverable(folder):
    job = Job(folder)
    rank, ranks = job.rank, job.ranks
    job.train()
    others = problem(ranks, "adagrad" if rank == 1 else "sgd")
    larger = job.problem.replace(topology=f"{ranks}xCPU@{8 if rank == 1 else 4}GiB")

    def make(of, shift=0):
        ns.ShardedEmbeddingBagCollection(plan(of, ranks, shift), of, learning_rate=0.1)

    def read_broken_loader():
        def loader():
            yield 1
            if rank == 1:
                raise OSError("the disk is gone")
            yield 2
        for _ in lockstep(loader()):
            pass

    impossible = job.problem.replace(topology=f"{ranks}xCPU@1MB" if rank == 0 else
                                     f"{ranks}xCPU@4GiB")
    for name, work in {
            "another plan": lambda: make(job.problem, shift=int(rank == 1)),
            "another table": lambda: make(others),
            "another topology": lambda: make(larger),
            "planning": lambda: ns.distributed.plan(impossible),
            "id": lambda: job.tables(job.ids(1, wrong=rank == 1)),
            "loader": read_broken_loader,
            "full disk": lambda: on_full_disk(rank == 1, lambda: job.save(16))}.items():
        say(f"{name}: {failure(work)}")
    say(f"steps: {count_short(rank)}")
    job.train()
    say("trained")


def on_full_disk(full, work):
    """Limits the size of files as a full disk does: writes fail halfway."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if full:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        work()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def count_short(rank):
    """Steps of a loader that is three steps short on rank 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sum(1 for _ in lockstep(range(10 - 3 * (rank == 1))))


def save_at_exit(folder):
    """Rank 1 raises an error. Every rank has an exit handler that takes longer than torch may take
    to end."""
    def save():
        time.sleep(3)
        (folder / f"saved-{job.rank}").touch()

    watched_group.EXIT_S = 0.5
    job = Job(folder)
    atexit.register(save)
    if job.rank == 1:
        raise ArithmeticError("the loss is nan")
    job.train()


def broken_gpu(folder):
    """Weights on the emulated GPU of rank 1 are gone before a step."""
    job = Job(folder)
    in_memory = plan(job.problem, job.ranks, disk=False)
    tables = ns.ShardedEmbeddingBagCollection(in_memory, job.problem, learning_rate=0.1,
                                              device="emulator", threads=1)

    def step(number):
        sum(one.sum() for one in tables(job.ids(number)).values()).backward()
        tables.local_shards()  # waits for the GPU

    step(1)
    if job.rank == 1:
        emulator = ctypes.CDLL(str(Path(os.environ["NEUROSHARD_BUILD_DIR"]) /
                                   "lib" / "libneuroshard_emulator.so"))
        assert emulator.nse_free(ctypes.c_void_p(tables.local_shards()[0].weights.data_ptr())) == 0
    say(f"broken: {failure(lambda: step(2))}")
    say(f"next: {failure(lambda: step(3))}")


def two_leave(folder):
    """Ranks 1 and 2 end; rank 0 goes on when they have ended."""
    job = Job(folder)
    if job.rank:
        (folder / f"pid-{job.rank}").write_text(str(os.getpid()))
    job.step(1)
    if job.rank:
        return
    pids = [(folder / f"pid-{rank}").read_text() for rank in (1, 2)]
    while any(Path("/proc", pid).exists() for pid in pids):
        time.sleep(0.05)
    say(f"alone: {failure(lambda: job.tables(job.ids(2)))}")
