"""The cases of the fault tests. Each is called in every rank of one start; an exception ends the
rank's program as it would end a user's."""

import os
import resource
import signal
import sys
import threading
import time
import warnings

import torch
import torch.distributed as dist

import neuroshard as ns
from neuroshard.distributed import lockstep

STEPS = 12
SAVE_EVERY = 4


def problem(ranks, optimizer="sgd"):
    return ns.ShardingProblem(
        tables=[ns.Table("user", rows=300, dim=16, optimizer="rowwise_adagrad"),
                ns.Table("item", rows=90, dim=8, optimizer="adam"),
                ns.Table("small", rows=11, dim=4, optimizer=optimizer)],
        features=[ns.Feature("user_id", "user"), ns.Feature("other_user", "user"),
                  ns.Feature("clicked", "item", mean_pooling=3, pooling="mean"),
                  ns.Feature("kind", "small")],
        batch=8 * ranks, topology=f"{ranks}xCPU@4GiB")


def plan(given, ranks, shift=0):
    """Every kind of sharding, so that a step has every kind of exchange."""
    half = given.tables[0].rows // 2
    cuts = [("user", (0, half), (0, 16), (shift % ranks,)),
            ("user", (half, 2 * half), (0, 16), ((shift + 1) % ranks,)),
            ("item", (0, 90), (0, 4), ((shift + 2) % ranks,)),
            ("item", (0, 90), (4, 8), ((shift + 1) % ranks,)),
            ("small", (0, 11), (0, 4), tuple(range(ranks)))]
    return ns.Plan(device_count=ranks, shards=[
        ns.Shard(table=table, rows=rows, cols=cols, devices=devices)
        for table, rows, cols, devices in cuts])


class Job:
    """A small training job: tables, and a dense part whose gradients are summed."""

    def __init__(self, folder):
        self.folder = folder
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.problem = problem(self.ranks)
        self.plan = plan(self.problem, self.ranks)
        self.tables = ns.ShardedEmbeddingBagCollection(self.plan, self.problem, learning_rate=0.1,
                                                       threads=1)
        self.dense = torch.nn.Linear(16, 1)

    def ids(self, step, wrong=False):
        made = torch.Generator().manual_seed(1000 * step + self.rank)
        ids = {"user_id": torch.randint(0, 300, (4, 1), generator=made),
               "other_user": torch.randint(0, 300, (4, 1), generator=made),
               "clicked": torch.randint(0, 90, (4, 3), generator=made),
               "kind": torch.randint(0, 11, (4, 1), generator=made)}
        if wrong:
            ids["user_id"][2] = 300
        return ids

    def step(self, step, at=lambda point: None):
        at("forward")
        out = self.tables(self.ids(step))
        at("dense")
        value = self.dense(out["user_id"] + out["other_user"]).sum()
        loss = value + sum(one.square().sum() for one in out.values())
        at("backward")
        loss.backward()
        at("all_reduce")
        for one in self.dense.parameters():
            dist.all_reduce(one.grad)
        self.dense.zero_grad()

    def save(self, step):
        ns.distributed.save(self.folder / f"step-{step}", {"tables": self.tables, "step": step})

    def train(self, at=lambda point: None):
        for step in lockstep(range(1, STEPS + 1)):
            self.step(step, at)
            if step % SAVE_EVERY == 0:
                at("save")
                self.save(step)


def say(text):
    print(text, flush=True)


def failure(work):
    """The text of the error that work raises."""
    try:
        work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


# Without a lost rank: each fault is an error on all ranks, after which they go on


def nothing_is_wrong(folder):
    Job(folder).train()
    say("trained")


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


# A rank is lost


def killed(folder, victim, point, step, delay_ms):
    """The victim kills itself some time after it has reached a point."""
    rank, seen = int(os.environ["RANK"]), []

    def at(name):
        seen.append(name)
        if rank == victim and name == point and seen.count(name) == step:
            if delay_ms == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Timer(delay_ms / 1000, os.kill, (os.getpid(), signal.SIGKILL)).start()

    at("start")
    ns.distributed.plan(problem(dist.get_world_size()))
    at("open")
    if point == "compile":
        slow_compiler(rank == victim)
    job = Job(folder)
    job.train(at)
    while rank == victim:  # the delay was longer than what it was for
        time.sleep(1)
    dist.barrier()


def slow_compiler(ends):
    """A replacement of neuroshard-compile that, on the victim, kills its caller."""
    from neuroshard.distributed import _compile_cache as compile_cache
    compile_cache.artifact_key = lambda *_: f"killed-{os.environ['MASTER_PORT']}"
    real = compile_cache.compile_plan

    def compile_plan(*rest):
        if ends:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*rest)

    compile_cache.compile_plan = compile_plan


def raises(folder, how, finally_destroy=False):
    """Rank 1 raises an error in the dense part."""
    job = Job(folder)

    def at(point):
        if point != "dense" or job.rank != 1:
            return
        if how == "error":
            raise ArithmeticError("the loss is nan")
        if how == "interrupt":
            # Ignored where the suite was started in the background.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.raise_signal(signal.SIGINT)
        if how == "in flight":
            dist.all_reduce(torch.ones(1), async_op=True)
            raise ArithmeticError("the loss is nan")
        if how == "exit":
            sys.exit(3)

    try:
        job.train(at)
    finally:
        if finally_destroy:
            dist.destroy_process_group()


def closes(folder):
    """Rank 1 closes its tables while the others go on, and stays until they have noticed."""
    job = Job(folder)
    for step in range(1, STEPS):
        if step == 3 and job.rank == 1:
            job.tables.close()
            while len(list(folder.glob("noticed-*"))) < job.ranks - 1:
                time.sleep(0.1)
            return
        try:
            job.tables(job.ids(step))
        finally:
            if step == STEPS - 1 or sys.exc_info()[0]:
                (folder / f"noticed-{job.rank}").touch()


def stops(folder, seconds, sleeps=False):
    """Rank 1 is stopped by a signal, or busy, and the others wait for it."""
    job = Job(folder)
    for step in range(1, STEPS):
        if step == 3 and job.rank == 1:
            if sleeps:
                time.sleep(seconds)
            else:
                stop_self(seconds)
        job.step(step)
    say("trained")


def stop_self(seconds):
    me = os.getpid()
    if os.fork() == 0:
        time.sleep(seconds)
        os.kill(me, signal.SIGCONT if seconds < 20 else signal.SIGKILL)
        os._exit(0)
    os.kill(me, signal.SIGSTOP)
