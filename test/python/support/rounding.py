"""Stochastic rounding of f32 values to f16 and bf16, bit by bit (docs/kernels.md)."""

import numpy
import torch

LOST = {torch.bfloat16: 0xffff, torch.float16: 0x1fff}
GOLDEN = 0x9e3779b97f4a7c15


def seed_of(number):
    """Of the random numbers of a step: the lower half of SplitMix64's finalizer."""
    mask = (1 << 64) - 1
    x = (number + GOLDEN) & mask
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & mask
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & mask
    return (x ^ (x >> 31)) & 0xffffffff


def mix(x):
    """The finalizer of MurmurHash3, on arrays of u32."""
    x = (x ^ (x >> 16)) * numpy.uint32(0x85ebca6b)
    x = (x ^ (x >> 13)) * numpy.uint32(0xc2b2ae35)
    return x ^ (x >> 16)


def round_at_random(values, gradient, seed, dtype):
    """f32 values, each one that `dtype` has and next to that of `values`."""
    values, gradient = (numpy.ascontiguousarray(one, numpy.float32) for one in (values, gradient))
    random = mix(values.view(numpy.uint32) ^ mix(gradient.view(numpy.uint32) ^ numpy.uint32(seed)))
    lost = numpy.uint32(LOST[dtype])
    found = ((values.view(numpy.uint32) + (random & lost)) & ~lost).view(numpy.float32)
    found = numpy.where(numpy.isfinite(values), found, values)
    if dtype == torch.float16:
        share = (random >> 8).astype(numpy.float32) - numpy.float32(2**23)
        moved = values + share * numpy.float32(2**-48)
        found = numpy.where(numpy.abs(values) < 2**-14, moved, found)
    return torch.from_numpy(found).to(dtype).float().numpy()


def spacing(values, dtype):
    """At most the distance between the two values of `dtype` around each, of the same type."""
    facts = torch.finfo(dtype)
    return values.abs() * facts.eps + facts.smallest_normal * facts.eps
