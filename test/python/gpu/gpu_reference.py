"""What GPU kernels compute, in numpy: f32 arithmetic in the order that docs/kernels.md and
GpuKernelABI.h state, one rounding for each operation, so that results can be compared bit by bit.

Sums over columns (norms, dot products) have no stated order. They are taken in float64 and come
with the error that f32 may add: none where all partial sums are exact, so that integers give
bits here, too."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch

import gpu_counters
import gpu_trust
from support import rounding
from support.optimizers import TRUST, decay_mode, is_rowwise

ROOT = Path(__file__).resolve().parents[3]
F32 = numpy.float32
ULPS = 4
COUNTED = gpu_counters.KIND
LONG = 512  # terms from which a sum is taken by itself


def chunk_size():
    """NSG_CHUNK of GpuKernelABI.h: a row's gradients in whole chunks of so many sorted positions are
    added up before they are added to the others."""
    header = (ROOT / "include/neuroshard/RuntimeCuda/GpuKernelABI.h").read_text()
    return int(re.search(r"#define NSG_CHUNK (\d+)", header)[1])


def as_f32(tensor):
    return tensor.float().numpy()


def rounded(values, dtype):
    """f32 values to another element type, to nearest even."""
    return torch.from_numpy(numpy.ascontiguousarray(values, F32)).to(dtype)


# Lookups


def sum_segments(terms, bounds):
    """Sums of the rows [bounds[i], bounds[i + 1]), each in order, beginning with 0."""
    counts = numpy.diff(bounds)
    sums = numpy.zeros((len(counts), terms.shape[1]), F32)
    short = counts < LONG
    for step in range(int(counts[short].max(initial=0))):
        there = numpy.flatnonzero(short & (counts > step))
        sums[there] = sums[there] + terms[bounds[there] + step]
    for segment in numpy.flatnonzero(~short):
        part = terms[bounds[segment]:bounds[segment + 1]]
        # Adds in order, unlike numpy's sum.
        sums[segment] = numpy.add.accumulate(part, axis=0, dtype=F32)[-1]
    return sums


def safe(ids, table):
    """The ids, with 0 in place of those out of range."""
    return numpy.where((ids >= 0) & (ids < len(table)), ids, 0)


def lookup(table, ids, offsets, sample_weights, pooling):
    """f32 results; `pooling` is sum, mean or unpooled. A bad id reads row 0."""
    rows = table[safe(ids, table)]
    if pooling == "unpooled":
        return rows
    if sample_weights is not None:
        rows = sample_weights[:, None] * rows
    sums = sum_segments(rows, offsets)
    if pooling == "mean":
        sums = sums / numpy.maximum(numpy.diff(offsets), 1).astype(F32)[:, None]
    return sums


# Gradients


@dataclass
class Terms:
    """The terms that one part adds to the gradient of a slot, by position."""

    rows: numpy.ndarray  # of the slot; others than its rows count for nothing
    values: numpy.ndarray  # [positions, columns]


def spread(ids, offsets, sample_weights, pooling, gradient):
    """The gradient of each id, factor included."""
    if pooling == "unpooled":
        return gradient[:len(ids)]
    counts = numpy.diff(offsets)
    bag = numpy.repeat(numpy.arange(len(counts)), counts)
    factor = numpy.ones(len(ids), F32) if sample_weights is None else sample_weights
    if pooling == "mean":
        factor = factor / counts[bag].astype(F32)
    return factor[:, None] * gradient[bag]


def with_chunks(values, chunk):
    """The terms of a run: what is behind its whole chunks, and a sum of each chunk."""
    rest = len(values) // chunk * chunk
    bounds = numpy.arange(0, rest + 1, chunk)
    return numpy.concatenate([values[rest:], sum_segments(values, bounds)])


def table_gradient(parts, rows, columns, chunk):
    """(summed gradient [rows, columns], which rows have one)."""
    keys = numpy.concatenate([numpy.empty(0, numpy.int64)] + [part.rows for part in parts])
    values = numpy.concatenate([numpy.empty((0, columns), F32)] + [part.values for part in parts])
    good = (keys >= 0) & (keys < rows)
    keys, values = keys[good], values[good]
    order = numpy.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    bounds = numpy.searchsorted(keys, numpy.arange(rows + 1))
    if chunk:
        runs = [values[bounds[row]:bounds[row + 1]] for row in range(rows)]
        runs = [with_chunks(run, chunk) if len(run) >= chunk else run for run in runs]
        values = numpy.concatenate([numpy.empty((0, columns), F32), *runs])
        lengths = numpy.array([0] + [len(run) for run in runs])
        sums = sum_segments(values, lengths.cumsum())
    else:
        sums = sum_segments(values, bounds)
    return sums, numpy.diff(bounds) > 0


# Optimizers


@dataclass
class Bounded:
    """f32 values and the error that each may have."""

    value: numpy.ndarray
    error: numpy.ndarray

    def __add__(self, other):
        value = self.value + other.value
        off = (self.error > 0) | (other.error > 0)
        return Bounded(value, numpy.where(off, self.error + other.error + spacing(value), 0))

    def divided_by(self, divisor):
        value = self.value / divisor.astype(F32)
        return Bounded(value, numpy.where(self.error > 0,
                                          self.error / divisor + spacing(value), 0))

    def range_in(self, dtype):
        """(least, greatest) after the rounding to an element type."""
        wide = torch.from_numpy(self.value.astype(numpy.float64))
        error = torch.from_numpy(self.error)
        return (wide - error).to(dtype), (wide + error).to(dtype)


def exactly(value):
    return Bounded(value, numpy.zeros(value.shape))


def spacing(values):
    """Distance from |values| to the next f32."""
    return numpy.spacing(numpy.abs(values).astype(F32)).astype(numpy.float64)


def column_sums(products):
    """Sums over columns: 4 ulp of the sum of magnitudes, as docs/kernels.md states; nothing
    where all products of a row are multiples of a number that 2^24 of them reach beyond."""
    wide = products.astype(numpy.float64)
    magnitude = numpy.abs(wide).sum(1)
    exact = numpy.zeros(len(wide), bool)
    for unit in 2.0 ** -numpy.arange(0, 25, 4):
        left = numpy.flatnonzero(~exact)
        scaled = wide[left] / unit
        exact[left] = (scaled == numpy.rint(scaled)).all(1) & (magnitude[left] < unit * 2 ** 24)
    return Bounded(wide.sum(1).astype(F32), numpy.where(exact, 0, ULPS * spacing(magnitude)))


def step_size(optimizer, learning_rate, number):
    """The step size, the factor of the weights under decoupled weight decay, the seed of stochastic
    rounding, the factors of moments with a trust ratio, and the number of the step."""
    rate = float(F32(learning_rate))
    kept = 1 - rate * optimizer.weight_decay if decay_mode(optimizer) == "decoupled" else 1
    if "adam" in optimizer.kind:
        rate *= numpy.sqrt(1 - optimizer.beta2 ** number) / (1 - optimizer.beta1 ** number)
    factors = [1 / (1 - optimizer.beta1 ** number), 1 / numpy.sqrt(1 - optimizer.beta2 ** number)]
    return F32(rate), F32(kept), rounding.seed_of(number), [F32(one) for one in factors], F32(number)


def by_root(weights, size, numerator, squares, eps):
    return weights - size * (numerator / (numpy.sqrt(squares) + F32(eps)))


def norms_of_rows(optimizer, stored, states, gradient, size):
    """The sums over columns that steps of rows need; as update()."""
    gradient = clipped(optimizer, gradient)
    if optimizer.kind not in TRUST:
        decayed = with_decay(optimizer, gradient, as_f32(stored))
        if optimizer.kind == COUNTED:
            decayed = gpu_counters.decayed(optimizer, gradient, as_f32(stored))
        return [column_sums(decayed * decayed)]
    _, products, _ = gpu_trust.first_phase(optimizer, as_f32(stored), states, gradient, size[3])
    return [column_sums(product) for product in products]


def by_trust(optimizer, weights, states, gradient, size, norms, columns):
    """(new weights, new states) and what random bits are a hash of."""
    direction, products, moments = gpu_trust.first_phase(optimizer, weights, states, gradient, size[3])
    norms = norms or [column_sums(product) for product in products]
    sums = [(norm.value.astype(numpy.float64), norm.error) for norm in norms]
    new, later, path = gpu_trust.second_phase(optimizer, weights, states, direction, sums, size[0],
                                              size[3], columns)
    later = [Bounded(value.astype(F32), error + spacing(value)) for value, error in later]
    return [Bounded(new[0].astype(F32), new[1] + spacing(new[0])),
            *(exactly(moment) for moment in moments), *later], path.astype(F32)


def update(optimizer, stored, states, gradient, size, norms=None, columns=None):
    """(new weights, new states), Bounded, of rows with a gradient. `stored`: a tensor of weights.
    `norms`: of the whole row, and the `columns` that they are over; by default those that are here.
    `size`: of step_size."""
    weights = as_f32(stored)
    gradient = clipped(optimizer, gradient)
    columns = columns or weights.shape[1]
    if optimizer.kind in TRUST:
        new, gradient = by_trust(optimizer, weights, states, gradient, size, norms, columns)
        if optimizer.stochastic_rounding:
            new[0] = at_random(new[0], gradient, size[2], stored.dtype)
        return new
    size, kept, seed, _, number = size
    if optimizer.kind == COUNTED:
        norm, = norms or norms_of_rows(optimizer, stored, states, gradient, None)
        counted = gpu_counters.step(optimizer, weights, states, gradient, size, number, norm, columns)
        new = [Bounded(value, error) for value, error in counted]
        if optimizer.stochastic_rounding:
            new[0] = at_random(new[0], gradient, seed, stored.dtype)
        return new
    gradient = with_decay(optimizer, gradient, weights)
    if decay_mode(optimizer) == "decoupled":
        weights = kept * weights
    if is_rowwise(optimizer):
        norm = norms[0] if norms else column_sums(gradient * gradient)
        new = rowwise(optimizer, weights, states, gradient, size, norm, columns)
    else:
        new = [exactly(values) for values in elementwise(optimizer, weights, states, gradient, size)]
    if optimizer.stochastic_rounding:
        new[0] = at_random(new[0], gradient, seed, stored.dtype)
    return new


def at_random(values, gradient, seed, dtype):
    """The value below or above; which one, nobody knows of a value with an error."""
    found = rounding.round_at_random(values.value, gradient, seed, dtype)
    near = rounding.spacing(torch.from_numpy(values.value.astype(numpy.float64)), dtype).numpy()
    known = values.error == 0
    return Bounded(numpy.where(known, found, values.value),
                   numpy.where(known, 0, values.error + near))


def clipped(optimizer, gradient):
    bound = F32(optimizer.max_gradient or numpy.inf)
    return numpy.clip(gradient, -bound, bound)


def with_decay(optimizer, gradient, weights):
    """With L2 weight decay, if there is some."""
    if decay_mode(optimizer) != "l2":
        return gradient
    return gradient + F32(optimizer.weight_decay) * weights


def elementwise(optimizer, weights, states, gradient, size):
    if optimizer.kind == "sgd":
        return [weights - size * gradient]
    if optimizer.kind == "momentum":
        buffer = F32(optimizer.beta1) * states[0] + gradient
        return [weights - size * buffer, buffer]
    if optimizer.kind == "ftrl":
        return ftrl(optimizer, weights, states, gradient, size)
    if optimizer.kind == "adagrad":
        total = states[0] + gradient * gradient
        return [by_root(weights, size, gradient, total, optimizer.eps), total]
    first = average(optimizer.beta1, states[0], gradient)
    second = average(optimizer.beta2, states[1], gradient * gradient)
    return [by_root(weights, size, first, second, optimizer.eps), first, second]


def ftrl(optimizer, weights, states, gradient, size):
    total = states[0] + gradient * gradient
    root = numpy.sqrt(total)
    sigma = (root - numpy.sqrt(states[0])) / size
    linear = (states[1] + gradient) - sigma * weights
    penalty = F32(optimizer.l1_penalty)
    curvature = (root + F32(optimizer.eps)) / size + F32(optimizer.l2_penalty)
    return [(numpy.clip(linear, -penalty, penalty) - linear) / curvature, total, linear]


def average(beta, before, value):
    return F32(beta) * before + F32(1 - beta) * value


def rowwise(optimizer, weights, states, gradient, size, norm, columns):
    """The error of the norm enters the state in full or by its share, and its root by half."""
    *moments, state = states
    mean = (norm.value / F32(columns))[:, None]
    averages = optimizer.kind != "rowwise_adagrad"
    total = average(optimizer.beta2, state, mean) if averages else state + mean
    direction = average(optimizer.beta1, moments[0], gradient) if moments else gradient
    off = norm.error[:, None] > 0
    total_error = numpy.where(off, norm.error[:, None] / columns + 3 * spacing(total), 0)
    delta = size / (numpy.sqrt(total) + F32(optimizer.eps)) * direction
    relative = total_error / numpy.maximum(total, numpy.finfo(F32).tiny)
    error = numpy.where(off, numpy.abs(delta) * relative + ULPS * spacing(delta)
                        + spacing(numpy.abs(weights) + numpy.abs(delta)), 0)
    kept = [exactly(direction)] if moments else []
    return [Bounded(weights - delta, error), *kept, Bounded(total, total_error)]
