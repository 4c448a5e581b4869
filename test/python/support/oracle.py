"""The expected results, computed by torch in float64.

`Bounded` values carry the error they may have: 4 ulp of the sum of absolute values, in
f32, before the one rounding to the type of the result."""

from dataclasses import dataclass

import numpy
import torch
import torch.nn.functional as functional

from support.model import DTYPES

ULPS = 4


def ulp(values):
    """Distance from |values| to the next f32, as float64."""
    magnitude = values.abs().to(torch.float32).numpy()
    return torch.from_numpy(numpy.spacing(magnitude)).to(torch.float64)


@dataclass
class Bounded:
    value: torch.Tensor
    error: torch.Tensor


def assert_within(actual, bounded, what):
    """actual == round(v) for some v within bounded.error of bounded.value."""
    assert actual.shape == bounded.value.shape, f"{what}: shape {tuple(actual.shape)}"
    low = (bounded.value - bounded.error).to(actual.dtype).double()
    high = (bounded.value + bounded.error).to(actual.dtype).double()
    got = actual.double()
    bad = ~((got >= low) & (got <= high))
    if bad.any():
        at = tuple(bad.nonzero()[0].tolist())
        raise AssertionError(
            f"{what}: {int(bad.sum())} of {bad.numel()} values differ, first at {at}: got "
            f"{got[at].item()!r}, expected {bounded.value[at].item()!r} +- "
            f"{bounded.error[at].item():.3g}")


def assert_same_bits(actual, expected, what):
    """Equal bit for bit, but for the sign of zero."""
    assert actual.shape == expected.shape, f"{what}: shape {tuple(actual.shape)}"
    bad = ~(actual == expected)
    if bad.any():
        at = tuple(bad.nonzero()[0].tolist())
        raise AssertionError(
            f"{what}: {int(bad.sum())} of {bad.numel()} values differ, first at {at}: got "
            f"{actual[at].item()!r}, expected {expected[at].item()!r}")


def embed(weights, ids, offsets, sample_weights, lookup):
    """The lookup by torch, in the type of `weights`."""
    ids = ids.long()
    if lookup.pooling == "unpooled":
        return functional.embedding(ids, weights, padding_idx=lookup.padding_idx)
    return functional.embedding_bag(
        ids, weights, offsets, mode=lookup.pooling, include_last_offset=True,
        per_sample_weights=sample_weights if lookup.weighted else None,
        padding_idx=lookup.padding_idx)


def as_double(sample_weights, lookup):
    return sample_weights.double() if lookup.weighted else None


def forward(weights, jagged, feature, lookup):
    """Result of a lookup, not yet rounded to its type."""
    ids, offsets, sample_weights = jagged.feature(feature)
    sample_weights = as_double(sample_weights, lookup)
    weights = weights.double()
    value = embed(weights, ids, offsets, sample_weights, lookup)
    magnitude = embed(weights.abs(), ids, offsets,
                      sample_weights.abs() if lookup.weighted else None, lookup)
    error = ULPS * ulp(magnitude)
    if lookup.pooling == "unpooled":
        error = torch.zeros_like(error)
    return Bounded(value, error)


def forward_f32(weights, jagged, feature, lookup):
    """Result of torch's own float32 lookup, rounded to the type of the result."""
    ids, offsets, sample_weights = jagged.feature(feature)
    value = embed(weights.float(), ids, offsets, sample_weights, lookup)
    return value.to(DTYPES[lookup.result])


def back(weights, jagged, feature, lookup, gradient):
    """Gradients of (weights, sample weights) by torch's autograd."""
    ids, offsets, sample_weights = jagged.feature(feature)
    weights = weights.double().requires_grad_()
    sample_weights = as_double(sample_weights, lookup)
    if lookup.weighted:
        sample_weights = sample_weights.requires_grad_()
    result = embed(weights, ids, offsets, sample_weights, lookup)
    result.backward(gradient.double())
    return weights.grad, sample_weights.grad if lookup.weighted else None


def count_terms(rows, jagged, feature, lookup):
    """How many gradients each row gets."""
    ids, _, _ = jagged.feature(feature)
    ids = ids.long()
    if lookup.padding_idx is not None:
        ids = ids[ids != lookup.padding_idx]
    return ids.bincount(minlength=rows)


@dataclass
class TableGradient:
    """Summed gradient of a table, its sum of absolute values, and for each row the number
    of gradients that make it."""

    value: torch.Tensor
    magnitude: torch.Tensor
    terms: torch.Tensor

    @property
    def touched(self):
        return self.terms > 0

    def error(self, decay):
        """Ulps of the sum of absolute values: 1/2 for each of n additions, whose roundings may
        all go one way, and 4 for those of the terms."""
        return (self.terms.double() / 2 + ULPS).unsqueeze(1) * ulp(self.magnitude + decay.abs())


def table_gradient(weights, readers):
    """`readers` are (jagged, feature number, lookup, gradient of its result)."""
    total = TableGradient(torch.zeros(weights.shape, dtype=torch.float64),
                          torch.zeros(weights.shape, dtype=torch.float64),
                          torch.zeros(weights.shape[0], dtype=torch.int64))
    for jagged, feature, lookup, gradient in readers:
        total.value += back(weights, jagged, feature, lookup, gradient)[0]
        absolute = type(jagged)(jagged.ids, jagged.offsets,
                                None if jagged.weights is None else jagged.weights.abs(),
                                jagged.features)
        total.magnitude += back(weights, absolute, feature, lookup, gradient.abs())[0]
        total.terms += count_terms(weights.shape[0], jagged, feature, lookup)
    return total


def sample_weight_gradient(weights, jagged, feature, lookup, gradient):
    """Gradient of the sample weights of one feature, with the error it may have."""
    value = back(weights, jagged, feature, lookup, gradient)[1]
    magnitude = back(weights.double().abs(), jagged, feature, lookup, gradient.abs())[1]
    return Bounded(value, ULPS * ulp(magnitude))
