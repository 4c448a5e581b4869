"""What GPU kernels compute for optimizers with trust ratios, in the two phases that docs/kernels.md
states: directions and moments bit by bit in f32; weights with the errors of sums over columns."""

import numpy

F32 = numpy.float32
EPSILON = float(numpy.finfo(F32).eps)
ROUNDINGS = 8  # of the scalars and products of a step, in units of the last bit


def average(beta, before, value):
    return F32(beta) * before + F32(1 - beta) * value


def plus_decay(optimizer, direction, weights):
    return direction + F32(optimizer.weight_decay) * weights if optimizer.weight_decay else direction


def first_phase(optimizer, weights, states, gradient, factors):
    """(direction, products whose columns are summed, new element-wise states but LARS's)."""
    if optimizer.kind == "lars_sgd":
        return (plus_decay(optimizer, gradient, weights), [gradient * gradient, weights * weights],
                [])
    first = average(optimizer.beta1, states[0], gradient)
    if optimizer.kind == "partial_rowwise_lamb":
        return first, [gradient * gradient, first * first, first * weights, weights * weights], [first]
    second = average(optimizer.beta2, states[1], gradient * gradient)
    adapted = (factors[0] * first) / (factors[1] * numpy.sqrt(second) + F32(optimizer.eps))
    direction = plus_decay(optimizer, adapted, weights)
    return direction, [direction * direction, weights * weights], [first, second]


def root(value, error):
    """Of a number that is not negative: the root, and the error that it may have."""
    low, high = numpy.maximum(value - error, 0), value + error
    return numpy.sqrt(value), numpy.sqrt(high) - numpy.sqrt(low) + 2 * EPSILON * numpy.sqrt(value)


def ratio(top, bottom):
    """The quotient of two (value, error), 0 where the divisor is 0."""
    zero = bottom[0] == 0
    divisor = numpy.where(zero, 1, bottom[0])
    value = numpy.where(zero, 0, top[0] / divisor)
    return value, numpy.where(zero, 0, (top[1] + value * bottom[1]) / divisor) + 4 * EPSILON * value


def second_phase(optimizer, weights, states, direction, sums, size, factors, columns):
    """((value, error) of the new weights, of states that have their step now, direction of the
    weights). `sums`: (value, error) of each product over all `columns`, in float64."""
    sums = [(value[:, None], error[:, None]) for value, error in sums]
    norm = root(*sums[-1])
    if optimizer.kind == "partial_rowwise_lamb":
        mean, off = sums[0][0] / columns, sums[0][1] / columns
        second = optimizer.beta2 * states[1].astype(float) + (1 - optimizer.beta2) * mean
        off = (1 - optimizer.beta2) * off + 4 * EPSILON * second
        of_root, off_root = root(second, off)
        bottom = float(factors[1]) * of_root + optimizer.eps
        scale = float(factors[0]) / bottom
        scale_error = scale * (float(factors[1]) * off_root / bottom + 4 * EPSILON)
        decay = optimizer.weight_decay
        parts = (scale ** 2 * sums[1][0], 2 * scale * decay * sums[2][0], decay ** 2 * sums[3][0])
        errors = (scale ** 2 * sums[1][1], 2 * scale * decay * sums[2][1], decay ** 2 * sums[3][1])
        size_of_parts = sum(abs(part) for part in parts)
        wrong = sum(errors) + size_of_parts * (2 * scale_error / scale + ROUNDINGS * EPSILON)
        step = ratio(norm, root(numpy.maximum(sum(parts), 0), wrong))
        moved = scale * direction.astype(float)
        path = moved + decay * weights
        path_error = abs(moved) * scale_error / scale + 2 * EPSILON * (abs(moved) + abs(decay * weights))
        later = [(second, off)]
    else:
        bottom = root(*sums[0])
        if optimizer.kind == "lars_sgd":
            size = size * F32(optimizer.eta)
            bottom = tuple(optimizer.weight_decay * of_weights + own
                           for of_weights, own in zip(norm, bottom))
        step = ratio(norm, bottom)
        path, path_error, later = direction.astype(float), 0, []
    delta = float(size) * step[0] * path
    error = float(size) * (step[1] * abs(path) + step[0] * path_error) + ROUNDINGS * EPSILON * abs(delta)
    if optimizer.kind == "lars_sgd":
        kept = float(F32(optimizer.beta1)) * states[0]
        delta, error = kept + delta, error + 2 * EPSILON * (abs(kept) + abs(delta))
        later = [(delta, error)]
    return (weights - delta, error + EPSILON * (abs(weights) + abs(delta))), later, path
