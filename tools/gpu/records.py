"""Stores results on disk one by one, so that an interrupted run continues where it stopped."""

import json
import os
import time
import traceback
from pathlib import Path

import faults

# Exit code of a worker for which the GPU no longer works; another process continues.
SPOILED = 75
OURS = "neuroshard"


def write_whole(path, text):
    """Replaces a file atomically: if the process is killed, it is the old one or the new one."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


class Records:
    """Named results of one section: a line of JSON each. A name given twice counts last."""

    def __init__(self, path):
        self.path = Path(path)
        self.items = {}
        self.ends_whole = True
        if self.path.exists():
            text = self.path.read_text(errors="replace")
            self.ends_whole = text.endswith("\n") or not text
            for line in text.splitlines():
                try:
                    record = json.loads(line)
                    self.items[record.pop("name")] = record
                except (ValueError, KeyError, AttributeError):
                    continue  # the line that was being written when the run was ended

    def __contains__(self, name):
        return name in self.items

    def add(self, name, **values):
        self.items[name] = values
        with self.path.open("a") as file:
            # Appended to half a line, this record would be lost too.
            file.write("" if self.ends_whole else "\n")
            file.write(json.dumps({"name": name, **values}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.ends_whole = True


class Current:
    """The item that a section runs and, if known, the contender whose code runs; for its
    supervisor."""

    def __init__(self, folder, section):
        self.path = Path(folder) / f"{section}.now"

    def write(self, item, contender=None):
        write_whole(self.path, json.dumps({"item": item, "contender": contender,
                                           "since": time.time()}))

    def read(self):
        """The dict, or None between items."""
        try:
            return json.loads(self.path.read_text())
        except (OSError, ValueError):
            return None

    def clear(self):
        self.path.unlink(missing_ok=True)


class Context:
    """What a section is given: artifacts to read, its records, and folders for files that stay and
    that are results."""

    def __init__(self, artifacts, work, out, section, machine):
        self.artifacts, self.work, self.out = Path(artifacts), Path(work), Path(out)
        self.section, self.machine = section, machine
        self.dry = machine.dry
        self.records = Records(self.work / f"{section}.jsonl")
        self.current = Current(self.work, section)
        self.item = None
        # Contenders whose code has ended this section's process before: (item, name) -> reason.
        self.blamed = {tuple(record["blame"]): record["reason"] for record in
                       Records(blame_path(self.work, section)).items.values()}

    def catalogue(self, name):
        """A list that tools/gpu/prepare left beside the artifacts."""
        path = self.artifacts / f"{name}.json"
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing: make the artifacts with tools/gpu/prepare")
        return json.loads(path.read_text())

    def attempt(self, name, function):
        """Records what `function` gives, a dict, or the error it raises; goes on after it unless
        the GPU has failed."""
        if name in self.records:
            return
        self.item = name
        self.current.write(name)
        begin = time.monotonic()
        try:
            faults.inject(self.machine, self.section, name)
            values = function()
        except Exception as error:
            values = {"error": describe(error)}
            error.__traceback__ = None  # it would keep the item's memory
        if broken := self.machine.why_broken():
            values = {**values, "error": values.get("error") or broken}
        self.records.add(name, **values, wall_s=round(time.monotonic() - begin, 3))
        self.current.clear()
        if broken:
            leave(broken)

    def running(self, contender):
        """Notes the contender whose code runs now; None: no single one."""
        self.current.write(self.item, contender)
        if contender:
            faults.inject(self.machine, self.section, f"{self.item}/{contender}")

    def check_alive(self):
        """After an error of a contender: leaves it to another process to go on if the GPU no
        longer works for this one."""
        if broken := self.machine.why_broken():
            leave(broken)


def leave(reason):
    """Ends the process without destructors, which would wait for a GPU that does not answer."""
    print(f"the GPU no longer works for this process: {reason}", flush=True)
    os._exit(SPOILED)


def describe(error):
    return "".join(traceback.format_exception_only(error)).strip()[:2000]


def blame_path(work, section):
    return Path(work) / f"{section}.blamed.jsonl"


def note_failure(work, section, reason):
    """After a process of a section has died: records what it was at, so that the next one goes
    on behind it. A contender is left out of the item the next time, the item is tried again.
    False if the process was at no item."""
    current = Current(work, section)
    now = current.read()
    current.clear()
    if now is None:
        return False
    item, contender = now["item"], now["contender"]
    if contender and not contender.startswith(OURS):
        Records(blame_path(work, section)).add(f"{item}/{contender}", blame=[item, contender],
                                               reason=reason)
        return True
    records = Records(Path(work) / f"{section}.jsonl")
    if item not in records:  # else it had said itself what was wrong
        records.add(item, error=reason, wall_s=round(time.time() - now["since"], 1))
    return True
