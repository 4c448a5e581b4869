"""Statistics of samples; needs no torch."""

import math


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))
