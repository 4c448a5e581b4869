"""The closed form of communication, with latencies and bandwidths fitted to measurements.

Over a level's link a device exchanges the bytes of the peers it reaches there, which takes
latency + max(bytes out, bytes in) / bandwidth. The time is that of the slowest level, after the
last device has started. RooflineCommunication.cpp computes the same."""

from dataclasses import dataclass

import numpy as np

HUBER = 0.3
STEPS = 200
LEAST_ROWS = 20


@dataclass(frozen=True)
class Link:
    name: str
    latency_us: float
    bandwidth_gb_per_s: float

    def to_json(self):
        return {"name": self.name, "latency_us": round(self.latency_us, 3),
                "bandwidth_gb_per_s": round(self.bandwidth_gb_per_s, 5)}


def peers_per_level(levels):
    """[levels, devices]: the number of peers that each device reaches over each level's link."""
    devices = sum(levels[0]["groups"])
    sizes = [np.repeat(level["groups"], level["groups"]) for level in levels]
    inner = [*sizes[1:], np.ones(devices, dtype=np.int64)]
    return np.array([size - own for size, own in zip(sizes, inner, strict=True)])


@dataclass
class Rows:
    """One row per device of each sample. `crossing` [rows, links]: bytes over each link;
    NaN where the device's topology has no such level, or no peer there."""

    crossing: np.ndarray
    wait_ms: np.ndarray
    time_ms: np.ndarray

    def predict(self, parameters):
        """`parameters`: logarithms of latencies (ms), then of bandwidths (bytes per ms)."""
        latencies, rates = np.exp(np.split(parameters, 2))
        times = np.where(np.isnan(self.crossing), -1.0, latencies + self.crossing / rates)
        return self.wait_ms + np.maximum(times.max(axis=1), 0.0)


def link_names(topologies):
    """Names of the levels of all topologies, outermost first."""
    names = []
    for topology in sorted(topologies, key=lambda topology: -len(topology["levels"])):
        names += [level["name"] for level in topology["levels"] if level["name"] not in names]
    return names


def rows_of(samples, topologies):
    """The rows to fit: one for each device that exchanges anything in an accepted sample."""
    names = link_names(topologies)
    crossing, wait, time = [], [], []
    for sample in samples:
        levels = topologies[sample.topology]["levels"]
        larger = np.maximum(sample.bytes_out, sample.bytes_in)
        table = np.full((len(larger), len(names)), np.nan)
        for level, peers in zip(levels, peers_per_level(levels), strict=True):
            part = larger * peers / len(larger)
            table[:, names.index(level["name"])] = np.where(part > 0, part, np.nan)
        crossing.append(table)
        wait.append(sample.skews_ms.max() - sample.skews_ms)
        time.append(sample.times_ms)
    if not crossing:
        return Rows(np.empty((0, len(names))), np.empty(0), np.empty(0))
    rows = Rows(np.concatenate(crossing), np.concatenate(wait), np.concatenate(time))
    used = ~np.isnan(rows.crossing).all(axis=1) & (rows.time_ms > 0)
    return Rows(rows.crossing[used], rows.wait_ms[used], rows.time_ms[used])


def residuals(rows, parameters):
    return rows.predict(parameters) / rows.time_ms - 1


def huber_loss(errors):
    size = np.abs(errors)
    return np.where(size < HUBER, size**2 / 2, HUBER * (size - HUBER / 2)).sum()


def jacobian(rows, parameters, at):
    columns = []
    for index in range(len(parameters)):
        moved = parameters.copy()
        moved[index] += 1e-4
        columns.append((residuals(rows, moved) - at) / 1e-4)
    return np.stack(columns, axis=1)


def minimise(rows, parameters):
    """Levenberg-Marquardt on relative errors, large ones weighted down (Huber)."""
    damping = 1e-2
    errors = residuals(rows, parameters)
    for _ in range(STEPS):
        weights = np.minimum(1, HUBER / np.maximum(np.abs(errors), 1e-12))
        slopes = jacobian(rows, parameters, errors)
        normal = slopes.T @ (weights[:, None] * slopes)
        gradient = slopes.T @ (weights * errors)
        step = np.linalg.solve(normal + damping * (np.diag(np.diag(normal)) + 1e-9 *
                                                   np.eye(len(parameters))), -gradient)
        moved = parameters + np.clip(step, -1, 1)
        moved_errors = residuals(rows, moved)
        if huber_loss(moved_errors) <= huber_loss(errors):
            parameters, errors, damping = moved, moved_errors, max(damping / 3, 1e-9)
            if np.abs(step).max() < 1e-7:
                break
        else:
            damping *= 4
            if damping > 1e9:
                break
    return parameters


def start_values(rows):
    """Initial parameters: the smallest times as latency, the rate of the largest exchanges as
    bandwidth."""
    net = np.maximum(rows.time_ms - rows.wait_ms, 1e-3)
    largest = np.nanmax(rows.crossing, axis=1)
    big = largest >= np.quantile(largest, 0.9)
    links = rows.crossing.shape[1]
    latency = np.log(np.quantile(net, 0.02))
    rate = np.log(np.median(largest[big] / net[big]))
    return np.concatenate([np.full(links, latency), np.full(links, rate)])


def fit_links(samples, topologies):
    """(links outermost first, mean absolute relative error), or None where there are too
    few measurements."""
    rows = rows_of(samples, topologies)
    if len(rows.time_ms) < LEAST_ROWS:
        return None
    parameters = minimise(rows, start_values(rows))
    latencies, rates = np.exp(np.split(parameters, 2))
    links = [Link(name, float(latency * 1e3), float(rate * 1e3 / 1e9))
             for name, latency, rate in zip(link_names(topologies), latencies, rates,
                                            strict=True)]
    return links, float(np.abs(residuals(rows, parameters)).mean())
