"""Measures the exchanges that a file lacks, all ranks in step; rank 0 writes the file."""

import signal
import time

import numpy as np

from neuroshard.collect._measuring import draws
from neuroshard.collect._measuring.progress import Progress
from neuroshard.collect._samples.rejection import rejections
from neuroshard.collect._samples.samples import Sample

WARM_UP_RUNS = 2
LEAST_RUNS = 5
MOST_RUNS = 11
RUNS_MS = 150.0
REFERENCE_RUNS = 5
SAVE_EVERY_S = 20
CLOCK_EVERY = 100
# One draw in five, and its repeat, is held out of training for testing.
HELD_OUT_EVERY = 5


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


def quartile_spread(times):
    """(third - first quartile) / median over the runs, per device."""
    first, median, third = np.quantile(times, [0.25, 0.5, 0.75], axis=0)
    return (third - first) / np.maximum(median, 1e-9)


class Session:
    def __init__(self, exchanger, seed):
        self.exchanger = exchanger
        self.seed = seed
        self.devices = exchanger.control.size
        self.reference = draws.reference_draw(self.devices)
        self.reference_ms = 0.0

    def time_reference(self):
        """Median over the runs of the slowest device's time."""
        runs = [self.exchanger.time_once(self.reference)[:, 0].max()
                for _ in range(REFERENCE_RUNS)]
        return float(np.median(runs))

    def start(self):
        self.exchanger.adjust_clock()
        for _ in range(WARM_UP_RUNS):
            self.time_reference()
        self.reference_ms = self.time_reference()

    def measure(self, index):
        """(draw, runs [runs, devices, 2], reference before, after)."""
        if index % CLOCK_EVERY == 0:
            self.exchanger.adjust_clock()
        draw = draws.draw(self.seed, self.devices, index)
        before = self.reference_ms
        warm = [self.exchanger.time_once(draw)[:, 0].max() for _ in range(WARM_UP_RUNS)]
        count = int(np.clip(RUNS_MS / max(warm[-1], 1e-3), LEAST_RUNS, MOST_RUNS))
        runs = np.stack([self.exchanger.time_once(draw) for _ in range(count)])
        self.reference_ms = self.time_reference()
        return draw, runs, before, self.reference_ms


def to_sample(file, topology, index, repeat, measured):
    draw, runs, before, after = measured
    times, lateness = runs[:, :, 0], runs[:, :, 1]
    original = next((row for row, sample in enumerate(file.samples)
                     if repeat and sample.topology == topology and sample.draw == index
                     and sample.repeat_of < 0), -1)
    return Sample(topology=topology, direction=draws.DIRECTIONS.index(draw.direction),
                  batch=draw.batch, runs=len(runs), draw=index, repeat_of=original,
                  held_out=int(index % HELD_OUT_EVERY == HELD_OUT_EVERY - 1),
                  reference_before_ms=before, reference_after_ms=after, time=int(time.time()),
                  bytes_out=draw.bytes_out(), bytes_in=draw.bytes_in(), dims=draw.dims,
                  skews_ms=draw.skews_ms, times_ms=np.median(times, axis=0),
                  spreads=quartile_spread(times), lateness_ms=np.median(lateness, axis=0))


def collect(session, file, path, topology, todo, stop):
    """Measures `todo`; on rank 0 `file` is a SampleFile, elsewhere None. Returns whether
    all of it was measured. What was measured is kept whatever happens."""
    progress = Progress(f"{session.devices} devices", len(todo))
    try:
        return measure_all(session, file, path, topology, todo, stop, progress)
    finally:
        if file:
            progress.close()
            file.write(path)


def measure_all(session, file, path, topology, todo, stop, progress):
    saved = time.monotonic()
    session.start()
    for done, (index, repeat) in enumerate(todo, start=1):
        measured = session.measure(index)
        if file:
            file.samples.append(to_sample(file, topology, index, repeat, measured))
            progress.show(done, f", {sum(rejections(file.samples))} rejected")
            if time.monotonic() - saved > SAVE_EVERY_S:
                file.write(path)
                saved = time.monotonic()
        if session.exchanger.control.gather([stop.set]).any():
            return done == len(todo)
    return True
