"""A job in which one rank has a drawn fault (faults_kinds.draw). An exception ends the rank's
program as it would end a user's.

usage: python faults_drawn.py FOLDER CASE [--spawn], where FOLDER/CASE.json is the case; by
torchrun, or to start the ranks itself as processes of torch.multiprocessing."""

import contextlib
import json
import os
import resource
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

sys.path[:0] = [str(Path(os.environ["NEUROSHARD_BUILD_DIR"]) / "python"),
                str(Path(__file__).parent), str(Path(__file__).parents[1])]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import neuroshard as ns  # noqa: E402
from faults_job import SAVE_EVERY, STEPS, Job, problem, say  # noqa: E402
from faults_kinds import KINDS  # noqa: E402
from neuroshard.distributed import lockstep  # noqa: E402
from support.ports import port_of, reserve_port  # noqa: E402

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "terminate": signal.SIGTERM,
           "interrupt": signal.SIGINT}
# Of groups, where it decides when a job ends. Ranks of torchrun import PyTorch, each by itself, and
# so may come late.
TIMEOUTS = {"fork": timedelta(seconds=30), "torchrun": timedelta(seconds=60)}
PAUSE_S = 3


class Fault:
    """The fault of one rank, which comes when the program has reached a point often enough."""

    def __init__(self, spec):
        self.spec, self.action, self.seen = spec, KINDS[spec["kind"]].action, []
        again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
        self.is_victim = dist.get_rank() == spec["victim"] and not again
        self.job = None

    def at(self, point):
        self.seen.append(point)
        if (self.is_victim and point == self.spec["point"]
                and self.seen.count(point) == self.spec["count"]):
            return self.happen()
        return False

    def happen(self):
        """Returns whether the ids of this step shall be wrong."""
        say(f"now: {self.action}")
        if self.action in SIGNALS:
            self.send(os.getpid(), SIGNALS[self.action])
        elif self.action == "kill agent":
            os.kill(os.getppid(), signal.SIGKILL)
            hang()  # else the job may be over before it is missed
        elif self.action == "hang":
            hang()
        elif self.action == "sleep":
            time.sleep(PAUSE_S)
        elif self.action == "pause":
            pause()
        elif self.action == "close":
            self.job.tables.close()
        elif self.action == "full disk":
            limit(resource.RLIMIT_FSIZE, 2000)
        elif self.action == "no descriptors":
            limit(resource.RLIMIT_NOFILE, len(os.listdir("/proc/self/fd")))
        elif self.action == "exit":
            sys.exit(3)
        elif self.action == "leave":
            sys.exit(0)
        elif self.action.startswith("raise"):
            if self.action == "raise in flight":
                # As the others': Gloo aborts a process that receives another size.
                dist.all_reduce(torch.ones(1, 16), async_op=True)
            raise ArithmeticError("the loss is nan")
        return self.action == "wrong ids"

    def send(self, process, number):
        delay = self.spec["delay_ms"] / 1000
        if delay:
            threading.Timer(delay, os.kill, (process, number)).start()
        else:
            os.kill(process, number)

    def await_signal(self):
        """For a delay that was longer than what it was for."""
        while self.is_victim and self.action in SIGNALS:
            time.sleep(1)


def hang():
    while True:
        time.sleep(60)


def pause():
    """Stops this process; a child wakes it up."""
    me = os.getpid()
    if os.fork() == 0:
        time.sleep(PAUSE_S)
        os.kill(me, signal.SIGCONT)
        os._exit(0)
    os.kill(me, signal.SIGSTOP)


def limit(what, number):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(what, (number, resource.getrlimit(what)[1]))


@contextlib.contextmanager
def limits_kept():
    """Takes back what limit() has set."""
    kinds = (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)
    before = [resource.getrlimit(one) for one in kinds]
    try:
        yield
    finally:
        for kind, values in zip(kinds, before):
            resource.setrlimit(kind, values)


def run(folder, spec):
    """The program of a rank. Errors that it can mend are said, and training goes on."""
    torch.manual_seed(0)
    kind = KINDS[spec["kind"]]
    timeout = TIMEOUTS[kind.launcher] if kind.timed else timedelta(minutes=30)
    dist.init_process_group("gloo", timeout=timeout)
    fault = Fault(spec)
    try:
        fault.at("start")
        ns.distributed.plan(problem(dist.get_world_size()))
        fault.at("open")
        job = fault.job = Job(folder, spec["shape"], timeout)
        train(job, fault, job.load())
        fault.await_signal()
        dist.barrier()
        say("trained")
    finally:
        if fault.action == "raise and destroy":
            dist.destroy_process_group()


def train(job, fault, done):
    for step in lockstep(range(done + 1, STEPS + 1)):
        try:
            job.step(step, fault.at)
        except ValueError as error:
            if fault.action != "wrong ids":
                raise
            say(f"caught: {error}")
        if step % SAVE_EVERY == 0:
            with limits_kept():
                fault.at("save")
                try:
                    job.save(step)
                except ns.errors.CheckpointError as error:
                    if fault.action not in ("full disk", "no descriptors"):
                        raise
                    say(f"caught: {error}")
            fault.at("move")
            job.move(step)


def run_spawned(rank, folder, spec, port):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(spec["ranks"]),
                   "LOCAL_WORLD_SIZE": str(spec["ranks"]), "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": port}
    run(folder, spec)


def main(folder, case, how=""):
    folder = Path(folder)
    spec = json.loads((folder / f"{case}.json").read_text())
    if how == "--spawn":
        with reserve_port() as place:
            torch.multiprocessing.spawn(run_spawned, (folder / case, spec, port_of(place)),
                                        spec["ranks"])
    else:
        run(folder / case, spec)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
