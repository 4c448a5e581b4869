"""Runs a section in a process of its own, and restarts it in another if that one ends.

A section goes through items and records each. An item that hangs, kills its process or leaves a
GPU that no longer works for it is recorded as failed, and the next process goes on behind it."""

import time

import processes
from records import SPOILED, Current, note_failure

MOST_RESTARTS = 12
BEAT_S = 0.2


class Section:
    """How a section is run. begin: what starts its process, given a log to write to."""

    def __init__(self, work, name, begin, limit_s, item_limit_s, beat):
        self.work, self.name, self.begin = work, name, begin
        self.limit_s, self.item_limit_s, self.beat = limit_s, item_limit_s, beat

    def run(self):
        """(status, why). Status: done; failed: it could not go on; cut off: its time was up."""
        end = time.monotonic() + self.limit_s
        with (self.work / f"{self.name}.log").open("a") as log:
            for _ in range(MOST_RESTARTS):
                Current(self.work, self.name).clear()
                process = self.begin(log)
                try:
                    reason = self.watch(process, end)
                finally:
                    processes.end(process, group=True)
                if reason in ("done", "cut off"):
                    return reason, ""
                log.write(f"\n{reason}\n")
                log.flush()
                if not note_failure(self.work, self.name, reason):
                    if process.returncode == SPOILED:
                        continue  # the item has recorded it
                    return "failed", reason
            return "failed", f"{MOST_RESTARTS} processes in a row have died"

    def watch(self, process, end):
        """Waits for a process: done, cut off, or why it has to be replaced."""
        current = Current(self.work, self.name)
        while True:
            code = process.poll()
            if code is not None:
                return "done" if code == 0 else ended_by(code)
            if time.monotonic() > end:
                return "cut off"
            now = current.read()
            if now and time.time() - now["since"] > self.item_limit_s:
                return f"not done after {self.item_limit_s} s"
            self.beat()
            time.sleep(BEAT_S)


def ended_by(code):
    if code == SPOILED:
        return "the GPU no longer worked for the process"
    return f"the process ended with {'signal' if code < 0 else 'exit code'} {abs(code)}"
