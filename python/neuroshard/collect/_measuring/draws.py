"""Draws the exchanges to measure: bytes per owner, direction, and how late each device starts.

A draw depends on the seed, the number of devices and its index alone, so that a collection can be
resumed and any sample measured again."""

from dataclasses import dataclass

import numpy as np

DIRECTIONS = ("input", "forward", "backward")
LEAST_BYTES = 1e3
MOST_BYTES = 64e6
LATEST_START_MS = 19.0
ELEMENT_BYTES = 4
ID_BYTES = 8


@dataclass(frozen=True)
class Draw:
    """One exchange among D devices. `owner_bytes` [D]: bytes of each owner for the whole batch; one
    D-th of them belongs to each device's part of the batch."""

    direction: str
    batch: int
    dims: np.ndarray
    owner_bytes: np.ndarray
    skews_ms: np.ndarray

    @property
    def devices(self):
        return len(self.owner_bytes)

    def bytes_out(self):
        """Results leave their owners; ids and gradients go to them."""
        return self._owners() if self.direction == "forward" else self._batch_parts()

    def bytes_in(self):
        return self._batch_parts() if self.direction == "forward" else self._owners()

    def _owners(self):
        return self.owner_bytes.astype(np.float64)

    def _batch_parts(self):
        return np.full(self.devices, self.owner_bytes.sum() / self.devices)


def random_of(seed, *path):
    """An independent stream of random numbers for each path."""
    return np.random.default_rng([seed, *path])


def log_uniform(random, low, high):
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def place_greedily(random, sizes, devices):
    """Sums of `sizes` per device: each item goes to the device with the least load plus noise. The
    noise varies from none (balanced) to strong (random)."""
    strength = 2 * random.random() ** 2 * sizes.sum() / devices
    loads = np.zeros(devices)
    for size in random.permutation(sizes):
        loads[np.argmin(loads + strength * random.random(devices))] += size
    return loads


def draw_tables(random, devices, direction):
    """10 to 59 tables, placed; the batch makes the largest owner's bytes log-uniform."""
    tables = random.integers(10, 60)
    if direction == "input":
        sizes = np.maximum(1, np.round(random.lognormal(1.5, 1.2, tables)))
        element_bytes = ID_BYTES
    else:
        sizes = 4.0 * random.integers(1, 33, tables)
        element_bytes = ELEMENT_BYTES
    per_sample = place_greedily(random, sizes, devices)
    target = log_uniform(random, LEAST_BYTES, MOST_BYTES)
    local_batch = max(1, round(target / (per_sample.max() * element_bytes * devices)))
    batch = local_batch * devices
    dims = np.zeros(devices) if direction == "input" else per_sample
    return batch, dims, (batch * element_bytes * per_sample).astype(np.int64)


def draw_uneven(random, devices, direction):
    """Uneven shares, some tiny; now and then one owner has none."""
    shares = random.dirichlet(np.full(devices, 10 ** random.uniform(-0.5, 1.5)))
    if random.random() < 0.15:
        shares[random.integers(devices)] = 0
    quantum = ELEMENT_BYTES * devices
    target = log_uniform(random, LEAST_BYTES, MOST_BYTES)
    owner_bytes = np.round(shares / shares.max() * target / quantum).astype(np.int64) * quantum
    if not owner_bytes.any():
        owner_bytes[0] = quantum
    dims = owner_bytes / quantum if direction != "input" else np.zeros(devices)
    return devices, dims, owner_bytes


def draw_skews(random, devices):
    """How much later than the first each device starts, in ms; often 0 for all."""
    if random.random() < 0.4:
        return np.zeros(devices)
    skews = random.uniform(0, random.uniform(0, LATEST_START_MS), devices)
    return skews - skews.min()


def draw(seed, devices, index):
    random = random_of(seed, devices, index, 0)
    direction = DIRECTIONS[random.integers(len(DIRECTIONS))]
    kind = draw_tables if random.random() < 0.7 else draw_uneven
    batch, dims, owner_bytes = kind(random, devices, direction)
    return Draw(direction, int(batch), dims, owner_bytes, draw_skews(random, devices))


def reference_draw(devices):
    """The exchange that is timed around every sample: 256 KiB per device, evenly."""
    owner_bytes = np.full(devices, 2**18 // devices * devices, dtype=np.int64)
    return Draw("forward", devices, owner_bytes / devices / ELEMENT_BYTES, owner_bytes,
                np.zeros(devices))


def draws_to_repeat(seed, devices, samples, repeats):
    """Which of the first `samples` draws are measured twice."""
    keys = [random_of(seed, devices, index, 1).random() for index in range(samples)]
    return sorted(np.argsort(keys)[:repeats].tolist())
