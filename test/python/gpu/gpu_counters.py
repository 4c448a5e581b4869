"""What GPU kernels compute for row-wise Adagrad with counter (docs/kernels.md), bit by bit in f32 with
whole powers in f64; weights, sums and factors with the errors of sums over columns."""

import numpy

F32 = numpy.float32
EPSILON = float(numpy.finfo(F32).eps)
KIND = "rowwise_adagrad_with_counter"


def decayed(optimizer, gradient, weights):
    """With L2 weight decay, of which only the norm knows."""
    if optimizer.weight_decay_mode not in ("default", "l2") or not optimizer.weight_decay:
        return gradient
    return gradient + F32(optimizer.weight_decay) * weights


def power(base, exponents):
    """base ** exponent in f64, by squares in the order of the kernels."""
    product, square = numpy.ones(exponents.shape), numpy.full(exponents.shape, float(base))
    rest = exponents.astype(numpy.int64)
    while rest.any():
        product = numpy.where(rest & 1, product * square, product)
        rest, square = rest >> 1, square * square
    return product


def counts(optimizer, before, since):
    halflife = optimizer.counter_halflife
    if halflife == 0:
        return numpy.ones_like(before)
    if halflife < 0:
        return before + F32(1)
    return F32(1) + power(numpy.exp2(-1 / halflife), since).astype(F32) * before


def factors(optimizer, rate, root, count, since, number):
    """(of the gradients, of the weights), without the errors of `root`."""
    plain, one = rate / root, numpy.ones_like(root)
    if 0 < optimizer.adjustment_iter and not number > F32(optimizer.adjustment_iter):
        return plain, one
    decay, halflife = optimizer.weight_decay, optimizer.counter_halflife
    if optimizer.weight_decay_mode == "adagradw":
        kept = 1 - decay * float(rate)
        missed = numpy.minimum(since, number - F32(optimizer.adjustment_iter)) - F32(1)
        late = power(kept, missed)
        if halflife == -1:
            plain = plain * numpy.sqrt(count)
        if halflife == -2:
            plain = numpy.minimum(rate * count, F32(optimizer.adjustment_ub)) / root
        return plain * late.astype(F32), (kept * late).astype(F32)
    if not decay:
        return plain, one
    size = rate if optimizer.weight_decay_mode == "decoupled" else plain
    return plain, F32(1) - F32(halflife) / count * F32(decay) * size


def step(optimizer, weights, states, gradient, rate, number, norm, columns):
    """(value, error) of the new weights and states; `norm`: the sum over all `columns`, with its error."""
    total = states[0] + (norm.value / F32(columns))[:, None]
    off = norm.error[:, None] > 0
    total_error = numpy.where(off, norm.error[:, None] / columns + 4 * EPSILON * abs(total), 0)
    first = states[1] == 0
    since = numpy.where(first, F32(1), number - states[1])
    count = counts(optimizer, states[2], since)
    root = numpy.sqrt(total) + F32(optimizer.eps)
    scale, kept = factors(optimizer, rate, root, count, since, number)
    delta = scale * gradient
    relative = total_error / numpy.maximum(total, numpy.finfo(F32).tiny) + 8 * EPSILON
    of_scale = optimizer.weight_decay * abs(optimizer.counter_halflife) / count * scale
    error = numpy.where(off, (abs(delta) + of_scale * abs(weights)) * relative
                        + 2 * EPSILON * (abs(kept * weights) + abs(delta)), 0)
    exact = numpy.zeros_like(total)
    return [(kept * weights - delta, error), (total, total_error),
            (numpy.full_like(states[1], number), exact), (count, exact)]
