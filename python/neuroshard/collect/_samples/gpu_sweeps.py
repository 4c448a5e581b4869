"""Sweeps of all-to-alls inside a node of GPUs (nccl-tests), and the form that is fitted to them.

A device sends B bytes to all of n devices, itself included. With x the time of its crossing bytes,
B (n - 1) / n, at the bandwidth of its links, the exchange takes

    latency + x + ramp * x / (x + ramp_at) + (B / n) / own

The ramp is what NCCL adds between its protocol of low latency and that of high bandwidth; own is the
rate at which a device copies its own part. Latency and bandwidth belong to a GPU, the other three to
all. RooflineCommunication.cpp computes the same."""

import csv
from dataclasses import dataclass

import numpy as np

from neuroshard.collect._samples.link_fit import minimise

# Of the links of a GPU, one direction, GB/s: what data sheets say. Those with a switch are alike.
NOMINAL = {"A100-SXM4-80GB": 300, "H100-SXM5-80GB": 450, "B200-SXM": 900, "B300-SXM6": 900,
           "GB200": 900}
LEAST_BYTES, MOST_BYTES = 64 << 10, 512 << 20
SHARED = 3


@dataclass(frozen=True)
class Sweep:
    """Rows of one or more GPUs. gpu: index into names. bytes, devices and time_us by row."""

    names: tuple[str, ...]
    gpu: np.ndarray
    bytes: np.ndarray
    devices: np.ndarray
    time_us: np.ndarray

    def of(self, names):
        """The rows of some GPUs, numbered by `names`."""
        rows = np.isin(self.gpu, [self.names.index(name) for name in names])
        index = np.array([names.index(self.names[one]) for one in self.gpu[rows]])
        return Sweep(tuple(names), index, self.bytes[rows], self.devices[rows], self.time_us[rows])


@dataclass(frozen=True)
class Figures:
    """latency_us and gb_per_s by GPU; ramp_us, ramp_at_us and own_gb_per_s of all."""

    names: tuple[str, ...]
    latency_us: np.ndarray
    gb_per_s: np.ndarray
    ramp_us: float
    ramp_at_us: float
    own_gb_per_s: float


def read_sweep(path):
    """The all-to-alls of one node and one source, between LEAST_BYTES and MOST_BYTES."""
    names, rows = tuple(NOMINAL), []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (row["source"] == "AICNCCL" and row["phase"].startswith("alltoall")
                    and row["gpu"] in names and LEAST_BYTES <= float(row["B"]) <= MOST_BYTES):
                rows.append((names.index(row["gpu"]), float(row["B"]), float(row["count"]),
                             float(row["value"])))
    gpu, size, devices, time = map(np.array, zip(*rows))
    return Sweep(names, gpu, size, devices, time)


def predict(sweep, figures):
    """Microseconds of each row."""
    x = sweep.bytes * (1 - 1 / sweep.devices) / figures.gb_per_s[sweep.gpu] / 1e3
    return (figures.latency_us[sweep.gpu] + x + figures.ramp_us * x / (x + figures.ramp_at_us)
            + sweep.bytes / sweep.devices / figures.own_gb_per_s / 1e3)


def errors(sweep, figures):
    """|predicted / measured - 1| of each row."""
    return np.abs(predict(sweep, figures) / sweep.time_us - 1)


class _Rows:
    """What minimise() fits: logarithms of the three shared figures, then of each GPU's two."""

    def __init__(self, sweep):
        # By its name for minimise(), which needs no unit: errors are relative.
        self.sweep, self.time_ms = sweep, sweep.time_us

    def figures(self, parameters):
        shared, own = np.exp(parameters[:SHARED]), np.exp(parameters[SHARED:]).reshape(-1, 2)
        return Figures(self.sweep.names, own[:, 0], own[:, 1], *map(float, shared))

    def predict(self, parameters):
        return predict(self.sweep, self.figures(parameters))


def fit(sweep):
    """Figures by relative errors, large ones weighted down (Huber)."""
    rows = _Rows(sweep)
    start = [np.log([40.0, 50.0, 900.0])]
    start += [np.log([12.0, 0.7 * NOMINAL[name]]) for name in sweep.names]
    return rows.figures(minimise(rows, np.concatenate(start)))


def of_another(figures, name):
    """Figures of a GPU that was not measured: the median latency, and the nominal bandwidth times
    the median share of it that the others reach."""
    share = np.median(figures.gb_per_s / [NOMINAL[one] for one in figures.names])
    return Figures((name,), np.array([np.median(figures.latency_us)]),
                   np.array([share * NOMINAL[name]]), figures.ramp_us, figures.ramp_at_us,
                   figures.own_gb_per_s)


def left_out_errors(sweep):
    """By GPU, the errors of its rows as the fit to all others predicts them."""
    found = {}
    for name in sweep.names:
        others = fit(sweep.of([one for one in sweep.names if one != name]))
        found[name] = errors(sweep.of([name]), of_another(others, name))
    return found
