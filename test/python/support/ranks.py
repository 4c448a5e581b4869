"""Runs many cases in one job of several ranks, and gives what each rank said of each.

A rank that hangs is cut by its own watchdog, with its stack in the message; what it had not
reached goes on in another job. No process outlives the test."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LAUNCHER = Path(__file__).with_name("forked_ranks.py")
WORKER = Path(__file__).parents[1] / "distributed" / "distributed_worker.py"
MODULES = ("neuroshard.distributed",)
CASE_LIMIT_S = 300
MAX_RUNS = 6
LOG_LINES = 40
PR_SET_PDEATHSIG = 1


class Ranks:
    """The cases of one number of ranks; they run when the first result is asked for."""

    def __init__(self, ranks, cases, folder, limit_s=CASE_LIMIT_S, worker=WORKER, environment=(),
                 modules=MODULES):
        self.ranks, self.cases, self.folder = ranks, list(cases), Path(folder)
        self.modules = modules
        self.limit_s, self.worker = limit_s, worker
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1",
                            **dict(environment)}
        self.texts = None

    def failures(self, case):
        """The errors of a case by rank; empty if there are none."""
        if self.texts is None:
            self.texts = self._run_all()
        return [f"rank {rank}: {text}" for rank, text in enumerate(self.texts[case]) if text]

    def check(self, case):
        """Fails with the text of the first rank on which it went wrong, and who else's."""
        wrong = self.failures(case)
        if wrong:
            raise AssertionError(f"{case} on {self.ranks} ranks, wrong on {len(wrong)}:\n"
                                 + "\n".join(wrong))

    def _run_all(self):
        texts, rest = {}, self.cases
        for number in range(MAX_RUNS):
            if not rest:
                break
            run = Run(self, rest, self.folder / f"{self.ranks}-ranks-{number}")
            texts |= run.texts()
            rest = [case for case in rest if case not in texts]
        return texts | {case: ["not reached"] * self.ranks for case in rest}


def chosen_cases(request, cases):
    """By number of ranks, those of `cases` that the selected tests named test_ranks of a module run.
    request: that of a fixture of the module."""
    chosen = [item.callspec.params for item in request.session.items
              if item.nodeid.startswith(request.node.nodeid) and item.originalname == "test_ranks"]
    return {ranks: [one["case"] for one in chosen if one["ranks"] == ranks] for ranks in cases}


class Run:
    """One job, from its start to its end."""

    def __init__(self, owner, cases, folder):
        self.owner, self.cases, self.folder = owner, cases, folder
        folder.mkdir(parents=True)
        (folder / "cases.json").write_text(json.dumps(cases))
        with open(folder / "launcher.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, LAUNCHER, str(owner.ranks), folder, ",".join(owner.modules),
                 owner.worker, folder, str(owner.limit_s)],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env=owner.environment, start_new_session=True, preexec_fn=die_with_parent)
            try:
                self._watch(process)
            finally:
                # The ranks die with it: forked_ranks.py asks for that.
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()

    def _watch(self, process):
        """Until it ends, or nothing has come for longer than a case may take."""
        patience = self.owner.limit_s + 30
        size, since = 0, time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            now = sum(self._results(rank).stat().st_size for rank in range(self.owner.ranks)
                      if self._results(rank).exists())
            if now != size:
                size, since = now, time.monotonic()
            if time.monotonic() - since > patience:
                return

    def _results(self, rank):
        return self.folder / f"results-{rank}"

    def texts(self):
        """By case what each rank said; the first that not all have ended says why not, unless the
        one before it went wrong: ranks may have ended because of that. Never empty, so that runs
        come to an end."""
        said = [self._read(rank) for rank in range(self.owner.ranks)]
        texts, before = {}, []
        for case in self.cases:
            if any(case not in one for one in said):
                if any(before):
                    break
                texts[case] = [one.get(case, self._unfinished(rank))
                               for rank, one in enumerate(said)]
                break
            before = texts[case] = [one[case] for one in said]
        return texts

    def _read(self, rank):
        if not self._results(rank).exists():
            return {}
        lines = self._results(rank).read_text(encoding="utf-8").splitlines(keepends=True)
        return dict(json.loads(line) for line in lines if line.endswith("\n"))

    def _unfinished(self, rank):
        text = "did not end; its last output:\n"
        log = self.folder / f"rank-{rank}.log"
        if log.exists():
            text += tail(log)
        return text + (tail(self.folder / "launcher.log") if rank == 0 else "")


def die_with_parent():
    """Has the kernel kill this process if the tests are killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def tail(path):
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
    return "".join(f"  {line}\n" for line in lines)
