"""Runs cases of faults_cases, each in processes of its own, and says how each process ended.

usage: faults_ranks.py FOLDER <CASES.json, which has {name: {"case", "ranks", "options", "env"}}.

PyTorch is imported once; ranks are forked from here before it has threads. There is no torchrun:
what ends the ranks is in the ranks. FOLDER/results.json gets, by case and rank, status and output.
A rank that does not end is killed: its status says so."""

import json
import os
import resource
import signal
import socket
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(os.environ["NEUROSHARD_BUILD_DIR"]) / "python"),
                str(Path(__file__).parent), str(Path(__file__).parents[1])]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import faults_cases  # noqa: E402
from neuroshard.distributed import save  # noqa: E402, F401
from neuroshard.distributed._engine import operators  # noqa: E402, F401

AT_ONCE = 2
GIVE_UP_S = 900


class Start:
    """The processes of one case."""

    def __init__(self, folder, name, spec):
        self.name, self.folder, self.spec = name, folder / name, spec
        self.folder.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.pids, self.ended, self.begin = {}, {}, time.monotonic()

    def fork(self, rank):
        """Forks; returns True in the child, which is the rank."""
        pid = os.fork()
        if pid:
            self.pids[pid] = rank
            return False
        self.become(rank)
        return True

    def become(self, rank):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        out = os.open(self.folder / f"output-{rank}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(self.spec["ranks"]),
                       "LOCAL_WORLD_SIZE": str(self.spec["ranks"]), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(self.port), **self.spec.get("env", {})}

    def run(self):
        torch.manual_seed(0)
        dist.init_process_group("gloo")
        getattr(faults_cases, self.spec["case"])(self.folder, **self.spec.get("options", {}))

    def end_overdue(self):
        if time.monotonic() - self.begin < GIVE_UP_S:
            return
        for pid, rank in self.pids.items():
            if rank not in self.ended:
                os.kill(pid, signal.SIGKILL)

    def note(self, pid, status):
        self.ended[self.pids[pid]] = os.waitstatus_to_exitcode(status)

    @property
    def over(self):
        return len(self.ended) == self.spec["ranks"]

    def result(self):
        return [{"status": status,
                 "output": (self.folder / f"output-{rank}").read_text(errors="replace")}
                for rank, status in sorted(self.ended.items())]


def main():
    folder = Path(sys.argv[1])
    waiting = [Start(folder, *item) for item in json.load(sys.stdin).items()]
    running, results = [], {}
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            start = waiting.pop(0)
            start.begin = time.monotonic()
            running.append(start)
            for rank in range(start.spec["ranks"]):
                if start.fork(rank):
                    return start.run()  # this process is a rank now, and ends as one
        pid, status = os.waitpid(-1, os.WNOHANG)
        for start in list(running):
            if pid in start.pids:
                start.note(pid, status)
            start.end_overdue()
            if start.over:
                running.remove(start)
                results[start.name] = start.result()
        if pid == 0:
            time.sleep(0.02)
    (folder / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    torch.set_num_threads(1)
    operators.register()  # imports much, which ranks then need not
    main()
