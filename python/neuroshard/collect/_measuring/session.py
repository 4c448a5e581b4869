"""Measures the exchanges that a file lacks, all ranks in step; rank 0 writes the file."""

import signal
import time

from neuroshard.collect._measuring import draws
from neuroshard.collect._measuring.progress import Progress
from neuroshard.collect._measuring.timed_runs import to_sample
from neuroshard.collect._samples.rejection import rejections

SAVE_EVERY_S = 20


class StopFlag:
    """Set by Ctrl-C or SIGTERM: the collection ends after the current sample."""

    def __init__(self):
        self.set = False
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, self._raise)

    def _raise(self, *_):
        self.set = True


def plan(file, topology, devices, seed, wanted, repeats):
    """The samples still to measure, as (draw, whether it is a repeat). Repeats come last, so that
    the most time lies between the two measurements."""
    here = [sample for sample in file.samples if sample.topology == topology]
    fresh = {sample.draw for sample in here if sample.repeat_of < 0}
    again = {sample.draw for sample in here if sample.repeat_of >= 0}
    todo = [(index, False) for index in range(wanted) if index not in fresh]
    chosen = draws.draws_to_repeat(seed, devices, wanted, repeats)
    return todo + [(index, True) for index in chosen if index not in again]


def collect(timed, file, path, topology, todo, stop):
    """Measures `todo`; on rank 0 `file` is a SampleFile, elsewhere None. Returns whether
    all of it was measured. What was measured is kept whatever happens."""
    progress = Progress(f"{timed.devices} devices", len(todo))
    try:
        return measure_all(timed, file, path, topology, todo, stop, progress)
    finally:
        if file:
            progress.close()
            file.write(path)


def measure_all(timed, file, path, topology, todo, stop, progress):
    saved = float("-inf")  # the first sample is written at once: a lost rank may end this process, too
    timed.start()
    for done, (index, repeat) in enumerate(todo, start=1):
        measured = timed.measure(index)
        if file:
            file.samples.append(to_sample(file, topology, index, repeat, measured))
            if time.monotonic() - saved > SAVE_EVERY_S:
                file.write(path)
                saved = time.monotonic()
            progress.show(done, f", {sum(rejections(file.samples))} rejected")
        if timed.exchanger.control.gather([stop.set]).any():
            return done == len(todo)
    return True
