"""Runs cases, each in processes of its own, and says how each process ended.

usage: faults_ranks.py FOLDER <CASES.json, which has {name: spec} with specs of faults_kinds.draw,
or {"case": a function of faults_cases, "ranks"}.

PyTorch is imported once, and most ranks are forked from here before it has threads. FOLDER/
results.json gets by case a list of status and output: of each rank, or of torchrun with all its
ranks. A process that does not end is killed: the status says so."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(os.environ["NEUROSHARD_BUILD_DIR"]) / "python"),
                str(Path(__file__).parent), str(Path(__file__).parents[1])]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import faults_cases  # noqa: E402
import faults_drawn  # noqa: E402
from faults_job import SAVE_EVERY, STEPS, plan, problem  # noqa: E402
from faults_kinds import KINDS  # noqa: E402
from neuroshard.distributed import save  # noqa: E402, F401
from neuroshard.distributed._compile_cache import make_artifact  # noqa: E402
from neuroshard.distributed import _operators as operators  # noqa: E402, F401
from support.ports import port_of, reserve_port  # noqa: E402

AT_ONCE = 6  # most wait most of the time
GIVE_UP_S = 900
SILENCE_S = "12"  # far longer than a rank that beats is kept waiting on a machine with other work
NEVER_ENDED = "did not end"


class Forked:
    """The ranks of one case as forks of this process, without an agent."""

    def __init__(self, folder, name, spec):
        self.name, self.folder, self.spec = name, folder / name, spec
        self.folder.mkdir()
        self.place, self.begin = reserve_port(), time.monotonic()
        self.pids, self.ended, self.overdue = {}, {}, False

    def start(self):
        """Forks; returns True in a child, which is a rank."""
        for rank in range(self.spec["ranks"]):
            pid = os.fork()
            if not pid:
                self.become(rank)
                return True
            self.pids[pid] = rank
        return False

    def become(self, rank):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        out = os.open(self.folder / f"output-{rank}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(self.spec["ranks"]),
                       "LOCAL_WORLD_SIZE": str(self.spec["ranks"]), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": port_of(self.place), "NEUROSHARD_SILENCE_S": SILENCE_S}

    def run(self):
        if "kind" in self.spec:
            return faults_drawn.run(self.folder, self.spec)
        torch.manual_seed(0)
        dist.init_process_group("gloo")
        getattr(faults_cases, self.spec["case"])(self.folder)

    def look(self):
        """Frees a stopped rank when the others have ended; and all when that takes too long."""
        alive = {pid for pid, rank in self.pids.items() if rank not in self.ended}
        self.overdue |= time.monotonic() - self.begin > GIVE_UP_S
        stopped = "kind" in self.spec and KINDS[self.spec["kind"]].action == "stop"
        freed = {pid for pid in alive if self.pids[pid] == self.spec.get("victim")}
        if self.overdue or (stopped and alive == freed):
            for pid in alive:
                os.kill(pid, signal.SIGKILL)

    def note(self, pid, status):
        late = self.overdue and status == signal.SIGKILL
        self.ended[self.pids[pid]] = NEVER_ENDED if late else os.waitstatus_to_exitcode(status)

    @property
    def over(self):
        return len(self.ended) == self.spec["ranks"]

    def result(self):
        self.place.close()
        return [{"status": status,
                 "output": (self.folder / f"output-{rank}").read_text(errors="replace")}
                for rank, status in sorted(self.ended.items())]


class Launched:
    """The ranks of one case under torchrun, or spawned by a process of torch.multiprocessing."""

    MARK = "NEUROSHARD_FAULT_CASE"

    def __init__(self, folder, name, spec):
        self.name, self.spec = name, spec
        self.log, self.mark = folder / f"{name}.log", f"{folder}/{name}"
        (folder / name).mkdir()
        (folder / f"{name}.json").write_text(json.dumps(spec))
        launcher = KINDS[spec["kind"]].launcher
        program = [faults_drawn.__file__, folder, name]
        restarts = 1 if spec["kind"] == "torchrun: restart" else 0
        self.command = [sys.executable, *program, "--spawn"] if launcher == "spawn" else [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
            str(spec["ranks"]), "--max-restarts", str(restarts), *program]
        self.status, self.begin = None, time.monotonic()
        self.pids = {}

    def start(self):
        with open(self.log, "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, self.MARK: self.mark, "NEUROSHARD_SILENCE_S": SILENCE_S,
                     # Else ranks that torchrun starts again find the addresses of the first ones.
                     "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": str(
                         int("restart" in self.spec["kind"]))})
        self.pids[process.pid] = 0
        process.returncode = 0  # main() waits for it
        return False

    def note(self, pid, status):
        self.status = os.waitstatus_to_exitcode(status)

    def remaining(self):
        """Processes of this case that still live."""
        mark = f"{self.MARK}={self.mark}\0".encode()
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if mark in environment_of(pid)]

    def look(self):
        if time.monotonic() - self.begin > GIVE_UP_S:
            for pid in self.remaining():
                os.kill(pid, signal.SIGKILL)
            self.status = NEVER_ENDED

    @property
    def over(self):
        return self.status is not None and not self.remaining()

    def result(self):
        return [{"status": self.status, "output": self.log.read_text(errors="replace")}]


def environment_of(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes() + b"\0"
    except OSError:
        return b""


def wait_for_child():
    """(pid, status) of a child that has ended; pid 0: of none."""
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return 0, 0


def make(folder, name, spec):
    forked = "kind" not in spec or KINDS[spec["kind"]].launcher == "fork"
    return (Forked if forked else Launched)(folder, name, spec)


def is_timed(spec):
    """Whether a case ends by timeouts, long after all others."""
    return "kind" in spec and KINDS[spec["kind"]].timed


def compile_plans(cases):
    """So that no rank waits for the compiler while a timeout runs."""
    groups = {spec["ranks"] - (spec.get("shape") == "a group of some ranks")
              for spec in cases.values()}
    moving = {spec["ranks"] for spec in cases.values()}
    for ranks in groups | moving:
        given = problem(ranks)
        for shift in range(1 + STEPS // SAVE_EVERY if ranks in moving else 1):
            make_artifact(plan(given, ranks, shift), given)


def main():
    folder = Path(sys.argv[1])
    cases = json.load(sys.stdin)
    compile_plans(cases)
    waiting = sorted(cases.items(), key=lambda one: not is_timed(one[1]))
    running, results = [], {}
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            running.append(make(folder, *waiting.pop(0)))
            if running[-1].start():
                return running[-1].run()  # this process is a rank now, and ends as one
        pid, status = wait_for_child()
        for case in list(running):
            if pid in case.pids:
                case.note(pid, status)
            case.look()
            if case.over:
                running.remove(case)
                results[case.name] = case.result()
        if pid == 0:
            time.sleep(0.05)
    (folder / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    torch.set_num_threads(1)
    operators.register()  # imports much, which ranks then need not
    main()
