"""One optimizer step of a table in float64, by the formulas of torch.optim and FBGEMM
(docs/kernels.md has them with their sources).

Each function takes weights, states and the summed gradient of a step and gives the new
weights and states with the error that f32 arithmetic may add: that of the summed
gradient, carried through the derivative of the formula, and 4 ulp of each term.
"""

import math

import torch

from support import rounding
from support.oracle import ULPS, Bounded, ulp


def decay_mode(optimizer):
    """l2 or decoupled; None without weight decay, or where the optimizer's own rule has it."""
    if not optimizer.weight_decay or optimizer.kind in (*TRUST, "rowwise_adagrad_with_counter"):
        return None
    if optimizer.weight_decay_mode != "default":
        return optimizer.weight_decay_mode
    return "decoupled" if optimizer.kind in ("adamw", "partial_rowwise_adam") else "l2"


def is_rowwise(optimizer):
    """Whether there is a state per row, the last one."""
    return optimizer is not None and None in STATES[optimizer.kind]


def has_norms(optimizer):
    """Whether a step needs sums over all columns of a row."""
    return is_rowwise(optimizer) or optimizer is not None and optimizer.kind in TRUST


def new_states(optimizer, rows, dim, column_groups=1):
    """Initial states as the runtime stores them."""
    if optimizer is None:
        return []
    sums = ("adagrad", "rowwise_adagrad", "ftrl", "rowwise_adagrad_with_counter")  # the first state of these
    first = optimizer.initial_accumulator if optimizer.kind in sums else 0.0
    return [torch.full((rows, column_groups if width is None else dim), 0.0 if number else first)
            for number, width in enumerate(STATES[optimizer.kind])]


def step(optimizer, weights, states, gradient, learning_rate, number, columns=None):
    """(new weights, new states); `number` counts steps from 1. `columns`: the column
    ranges that keep a row-wise state of their own (default: the whole row)."""
    kept = weights.double()
    decay = torch.zeros_like(kept)
    if decay_mode(optimizer) == "l2":
        decay = optimizer.weight_decay * kept
    if decay_mode(optimizer) == "decoupled":
        kept = kept * (1 - learning_rate * optimizer.weight_decay)
    bound = optimizer.max_gradient or math.inf
    columns = columns or [(0, weights.shape[1])]
    new_weights, *rest = RULES[optimizer.kind](
        optimizer, kept, [state.double() for state in states],
        Bounded(gradient.value.clamp(-bound, bound) + decay, gradient.error(decay)), learning_rate,
        number, columns)
    if decay_mode(optimizer) == "decoupled":  # the factor is rounded, and the product
        new_weights.error += 2 * ulp(weights.double())
    if optimizer.stochastic_rounding:  # to the value below or above, and not the nearest
        new_weights.error += rounding.spacing(new_weights.value, weights.dtype)
    new = [new_weights, *rest]
    return [untouched_stay(old, value, gradient.touched)
            for old, value in zip([weights, *states], new)]


def untouched_stay(old, new, touched):
    keep = ~touched.unsqueeze(1)
    return Bounded(torch.where(keep, old.double(), new.value),
                   torch.where(keep, torch.zeros_like(new.error), new.error))


def moved(weights, delta, delta_error):
    error = delta_error + ULPS * ulp(delta) + ulp(weights.abs() + delta.abs())
    return Bounded(weights - delta, error)


def square_error(value, error):
    """What an error of `value` makes of its square."""
    return (2 * value.abs() + error) * error


def inverse_root(size, total, total_error, eps):
    """size / (sqrt(total) + eps), and how far it is from that with the smallest total."""
    scale = size / (total.sqrt() + eps)
    largest = size / ((total - total_error).clamp_min(0).sqrt() + eps)
    return scale, largest - scale


def sgd(_optimizer, weights, _states, gradient, learning_rate, _number, _columns):
    return [moved(weights, learning_rate * gradient.value, learning_rate * gradient.error)]


def momentum(optimizer, weights, states, gradient, learning_rate, _number, _columns):
    buffer = optimizer.beta1 * states[0] + gradient.value
    error = gradient.error + ULPS * ulp(
        (optimizer.beta1 * states[0]).abs() + gradient.value.abs())
    return [moved(weights, learning_rate * buffer, learning_rate * error), Bounded(buffer, error)]


def adagrad(optimizer, weights, states, gradient, learning_rate, _number, _columns):
    total = states[0] + gradient.value ** 2
    total_error = ULPS * ulp(total) + square_error(gradient.value, gradient.error)
    scale = learning_rate / (total.sqrt() + optimizer.eps)
    return [moved(weights, scale * gradient.value, 2 * scale * gradient.error),
            Bounded(total, total_error)]


def rowwise_adagrad(optimizer, weights, states, gradient, learning_rate, _number, columns):
    def add(before, mean, error):
        return Bounded(before + mean, error + ULPS * ulp(before + mean))
    return rowwise(optimizer, weights, states, gradient, learning_rate, columns, add)


def rowwise_rmsprop(optimizer, weights, states, gradient, learning_rate, _number, columns):
    """torch.optim.RMSprop with alpha = beta2, on the mean of the squares of a row."""
    def blend(before, mean, error):
        return average(optimizer.beta2, before, mean, error)
    return rowwise(optimizer, weights, states, gradient, learning_rate, columns, blend)


def rowwise(optimizer, weights, states, gradient, learning_rate, columns, next_state):
    new_weights = Bounded(weights.clone(), torch.zeros_like(weights))
    state = Bounded(states[0].clone(), torch.zeros_like(states[0]))
    for group, (begin, end) in enumerate(columns):
        part = slice(begin, end)
        value, error = gradient.value[:, part], gradient.error[:, part]
        norm = (value ** 2).mean(1, keepdim=True)
        norm_error = square_error(value, error).mean(1, keepdim=True) + ULPS * ulp(norm)
        total = next_state(states[0][:, group:group + 1], norm, norm_error)
        scale, scale_error = inverse_root(learning_rate, total.value, total.error, optimizer.eps)
        change = moved(weights[:, part], scale * value,
                       scale * error + scale_error * value.abs())
        new_weights.value[:, part], new_weights.error[:, part] = change.value, change.error
        state.value[:, group:group + 1] = total.value
        state.error[:, group:group + 1] = total.error
    return [new_weights, state]


def average(beta, before, value, error):
    """beta * before + (1 - beta) * value, for a value with an error."""
    return Bounded(beta * before + (1 - beta) * value, (1 - beta) * error + ULPS * ulp(
        (beta * before).abs() + ((1 - beta) * value).abs()))


def corrected(optimizer, learning_rate, number):
    """The learning rate with the corrections of the bias of both moments."""
    return (learning_rate * math.sqrt(1 - optimizer.beta2 ** number)
            / (1 - optimizer.beta1 ** number))


def adam(optimizer, weights, states, gradient, learning_rate, number, _columns):
    g, error = gradient.value, gradient.error
    first = average(optimizer.beta1, states[0], g, error)
    second = average(optimizer.beta2, states[1], g ** 2, square_error(g, error))
    scale, scale_error = inverse_root(corrected(optimizer, learning_rate, number), second.value,
                                      second.error, optimizer.eps)
    return [moved(weights, scale * first.value,
                  scale * first.error + scale_error * first.value.abs()), first, second]


def partial_rowwise_adam(optimizer, weights, states, gradient, learning_rate, number, columns):
    size = corrected(optimizer, learning_rate, number)
    new = [Bounded(old.clone(), torch.zeros_like(old)) for old in (weights, *states)]
    for group, (begin, end) in enumerate(columns):
        part, one = (slice(None), slice(begin, end)), (slice(None), slice(group, group + 1))
        value, error = gradient.value[part], gradient.error[part]
        mean = (value ** 2).mean(1, keepdim=True)
        second = average(optimizer.beta2, states[1][one], mean,
                         square_error(value, error).mean(1, keepdim=True) + ULPS * ulp(mean))
        first = average(optimizer.beta1, states[0][part], value, error)
        scale, scale_error = inverse_root(size, second.value, second.error, optimizer.eps)
        change = moved(weights[part], scale * first.value,
                       scale * first.error + scale_error * first.value.abs())
        for array, where, found in zip(new, (part, part, one), (change, first, second)):
            array.value[where], array.error[where] = found.value, found.error
    return new


def ftrl(optimizer, weights, states, gradient, learning_rate, _number, _columns):
    """Algorithm 1 of McMahan et al., Ad Click Prediction (2013), which has beta for eps; the weight
    is the one that it computes in the next step."""
    total = states[0] + gradient.value ** 2
    total_error = ULPS * ulp(total) + square_error(gradient.value, gradient.error)
    root = total.sqrt()
    root_error = (total + total_error).sqrt() - (total - total_error).clamp_min(0).sqrt()
    sigma = (root - states[0].sqrt()) / learning_rate
    sigma_error = (root_error + ULPS * ulp(root)) / learning_rate
    linear = states[1] + gradient.value - sigma * weights
    linear_error = gradient.error + sigma_error * weights.abs() + ULPS * ulp(
        states[1].abs() + gradient.value.abs() + (sigma * weights).abs())
    curvature = (optimizer.eps + root) / learning_rate + optimizer.l2_penalty
    beyond = (linear.abs() - optimizer.l1_penalty).clamp_min(0) * linear.sign()
    new = -beyond / curvature
    error = (linear_error + ULPS * ulp(linear)) / curvature + new.abs() * (
        root_error / learning_rate / curvature) + ULPS * ulp(new)
    return [Bounded(new, error), Bounded(total, total_error), Bounded(linear, linear_error)]


def length(part):
    """The norm of each row, of values with errors."""
    value = part.value.norm(dim=1, keepdim=True)
    return Bounded(value, part.error.norm(dim=1, keepdim=True) + ULPS * ulp(value))


def plus_decay(optimizer, direction, weights):
    decay = optimizer.weight_decay * weights
    return Bounded(direction.value + decay,
                   direction.error + 2 * ulp(direction.value.abs() + decay.abs()))


def by_trust(size, weights, bottom, direction):
    """size * |weights| / bottom * direction, 0 where bottom is 0. No direction is longer than its
    bottom, so however unsure that is, no step is longer than size * |weights|."""
    longest = size * weights.norm(dim=1, keepdim=True)
    ratio = (longest / bottom.value).nan_to_num(0, 0, 0)
    least = bottom.value - bottom.error
    ratio_error = torch.where(least > 0, longest / least - ratio, math.inf) + ULPS * ulp(ratio)
    delta = ratio * direction.value
    error = ratio * direction.error + ratio_error * (direction.value.abs() + direction.error)
    return Bounded(delta, torch.minimum(error.nan_to_num(0, math.inf), 2 * longest.expand_as(error))
                   + ULPS * ulp(delta))


def lars_sgd(optimizer, weights, states, gradient, learning_rate, _number, columns):
    """FBGEMM's LARS_SGD."""
    new = [Bounded(old.clone(), torch.zeros_like(old)) for old in (weights, *states)]
    for begin, end in columns:
        part = (slice(None), slice(begin, end))
        own = Bounded(gradient.value[part], gradient.error[part])
        bottom = plus_decay(optimizer, length(own), weights[part].norm(dim=1, keepdim=True))
        change = by_trust(learning_rate * optimizer.eta, weights[part], bottom,
                          plus_decay(optimizer, own, weights[part]))
        kept = optimizer.beta1 * states[0][part]
        buffer = Bounded(kept + change.value,
                         change.error + ULPS * ulp(kept.abs() + change.value.abs()))
        for array, found in zip(new, (moved(weights[part], buffer.value, buffer.error), buffer)):
            array.value[part], array.error[part] = found.value, found.error
    return new


def lamb(optimizer, weights, states, gradient, learning_rate, number, columns):
    """FBGEMM's LAMB, and its PARTIAL_ROWWISE_LAMB, which has one second moment per row."""
    is_partial = is_rowwise(optimizer)
    first_factor = 1 / (1 - optimizer.beta1 ** number)
    second_factor = 1 / (1 - optimizer.beta2 ** number)
    new = [Bounded(old.clone(), torch.zeros_like(old)) for old in (weights, *states)]
    for group, (begin, end) in enumerate(columns):
        part = (slice(None), slice(begin, end))
        one = (slice(None), slice(group, group + 1)) if is_partial else part
        value, error = gradient.value[part], gradient.error[part]
        square, wrong = value ** 2, square_error(value, error)
        if is_partial:
            square, wrong = square.mean(1, keepdim=True), wrong.mean(1, keepdim=True)
        first = average(optimizer.beta1, states[0][part], value, error)
        second = average(optimizer.beta2, states[1][one], square, wrong + ULPS * ulp(square))
        scale, scale_error = inverse_root(first_factor, second_factor * second.value,
                                          second_factor * second.error, optimizer.eps)
        adapted = scale * first.value
        adapted = Bounded(adapted, scale * first.error + scale_error * first.value.abs()
                          + ULPS * ulp(adapted))
        direction = plus_decay(optimizer, adapted, weights[part])
        bottom = length(direction)
        if is_partial:  # of the sums of the parts of its square
            parts = (adapted.value.abs() + optimizer.weight_decay * weights[part].abs())
            wrong = 2 * ULPS * ulp((parts ** 2).sum(1, keepdim=True))
            bottom.error += ((bottom.value ** 2 + wrong).sqrt()
                             - (bottom.value ** 2 - wrong).clamp_min(0).sqrt())
        change = by_trust(learning_rate, weights[part], bottom, direction)
        change = moved(weights[part], change.value, change.error)
        for array, where, found in zip(new, (part, part, one), (change, first, second)):
            array.value[where], array.error[where] = found.value, found.error
    return new


def rowwise_adagrad_with_counter(optimizer, weights, states, gradient, learning_rate, number, columns):
    """FBGEMM's, under counter-based regularization with equal learning rates."""
    new = [Bounded(old.clone(), torch.zeros_like(old)) for old in (weights, *states)]
    for group, (begin, end) in enumerate(columns):
        part, one = (slice(None), slice(begin, end)), (slice(None), slice(group, group + 1))
        old = weights[part]
        own = Bounded(gradient.value[part], gradient.error[part])
        decayed = own
        if optimizer.weight_decay_mode in ("default", "l2"):
            decayed = plus_decay(optimizer, own, old)
        mean = (decayed.value ** 2).mean(1, keepdim=True)
        total = Bounded(states[0][one] + mean, ULPS * ulp(states[0][one] + mean) + ULPS * ulp(mean)
                        + square_error(decayed.value, decayed.error).mean(1, keepdim=True))
        last = states[1][one]
        since = torch.where(last == 0, 1.0, number - last)
        count = counted(optimizer.counter_halflife, states[2][one], since)
        size = torch.full_like(count, learning_rate)
        share = torch.ones_like(count)  # of the weights
        scale = Bounded(*inverse_root(size, total.value, total.error, optimizer.eps))
        if optimizer.adjustment_iter <= 0 or number > optimizer.adjustment_iter:
            size, share = by_counter(optimizer, size, scale.value, count, since, number)
            scale = Bounded(*inverse_root(size, total.value, total.error, optimizer.eps))
        lost = optimizer.weight_decay * scale.error * optimizer.counter_halflife / count
        kept = Bounded(share * old, ULPS * ulp(old.abs() * (1 + share.abs())) + lost.abs() * old.abs())
        change = moved(kept.value, scale.value * own.value,
                       scale.value * own.error + scale.error * own.value.abs() + kept.error
                       + ULPS * ulp(scale.value * own.value))
        found = (change, total, Bounded(torch.full_like(last, number), torch.zeros_like(last)),
                 Bounded(count, ULPS * ulp(count)))
        for array, where, values in zip(new, (part, one, one, one), found):
            array.value[where], array.error[where] = values.value, values.error
    return new


def counted(halflife, before, since):
    """In how many steps a row was, after another one."""
    if halflife == 0:
        return torch.ones_like(before)
    return 1 + before * (1 if halflife < 0 else 0.5 ** (since / halflife))


def by_counter(optimizer, rate, factor, count, since, number):
    """The learning rates of rows, and the shares of their weights that stay."""
    decay, halflife = optimizer.weight_decay, optimizer.counter_halflife
    if optimizer.weight_decay_mode == "adagradw":
        share = 1 - decay * rate
        late = share ** (since.clamp_max(number - optimizer.adjustment_iter) - 1)
        if halflife == -1:
            rate = rate * count.sqrt()
        if halflife == -2:
            rate = (rate * count).clamp_max(optimizer.adjustment_ub)
        return rate * late, share * late
    if not decay:
        return rate, torch.ones_like(rate)
    size = rate if optimizer.weight_decay_mode == "decoupled" else factor
    return rate, 1 - decay * halflife / count * size


# Their steps are scaled by norms of weights and of the step itself.
TRUST = ("lars_sgd", "lamb", "partial_rowwise_lamb")
# By optimizer, the states that it has: a value per element, or per row (None).
STATES = {"sgd": (), "adagrad": ("dim",), "rowwise_adagrad": (None,), "adam": ("dim", "dim"),
          "momentum": ("dim",), "adamw": ("dim", "dim"), "partial_rowwise_adam": ("dim", None),
          "rowwise_rmsprop": (None,), "ftrl": ("dim", "dim"), "lars_sgd": ("dim",),
          "lamb": ("dim", "dim"), "partial_rowwise_lamb": ("dim", None),
          "rowwise_adagrad_with_counter": (None, None, None)}
RULES = {"sgd": sgd, "adagrad": adagrad, "rowwise_adagrad": rowwise_adagrad, "adam": adam,
         "momentum": momentum, "adamw": adam, "partial_rowwise_adam": partial_rowwise_adam,
         "rowwise_rmsprop": rowwise_rmsprop, "ftrl": ftrl, "lars_sgd": lars_sgd, "lamb": lamb,
         "partial_rowwise_lamb": lamb,
         "rowwise_adagrad_with_counter": rowwise_adagrad_with_counter}
