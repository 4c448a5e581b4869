"""Times each exchange in several runs, and says which exchanges are held out of training."""

import time

import numpy as np

from neuroshard.collect._measuring import draws
from neuroshard.collect._samples.samples import Sample

WARM_UP_RUNS = 2
LEAST_RUNS = 5
MOST_RUNS = 11
RUNS_MS = 150.0
REFERENCE_RUNS = 5
CLOCK_EVERY = 100
# One draw in five, and its repeat, is held out of training for testing.
HELD_OUT_EVERY = 5


def quartile_spread(times):
    """(third - first quartile) / median over the runs, per device."""
    first, median, third = np.quantile(times, [0.25, 0.5, 0.75], axis=0)
    return (third - first) / np.maximum(median, 1e-9)


class TimedRuns:
    """Times exchanges, and before and after each the reference exchange."""

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
