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
    """l2 or decoupled; None without weight decay."""
    if not optimizer.weight_decay:
        return None
    if optimizer.weight_decay_mode != "default":
        return optimizer.weight_decay_mode
    return "decoupled" if optimizer.kind in ("adamw", "partial_rowwise_adam") else "l2"


def is_rowwise(optimizer):
    """Whether there is a state per row, the last one."""
    return optimizer is not None and None in STATES[optimizer.kind]


def new_states(optimizer, rows, dim, column_groups=1):
    """Initial states as the runtime stores them."""
    if optimizer is None:
        return []
    sums = ("adagrad", "rowwise_adagrad", "ftrl")  # the first state of these
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


# By optimizer, the states that it has: a value per element, or per row (None).
STATES = {"sgd": (), "adagrad": ("dim",), "rowwise_adagrad": (None,), "adam": ("dim", "dim"),
          "momentum": ("dim",), "adamw": ("dim", "dim"), "partial_rowwise_adam": ("dim", None),
          "rowwise_rmsprop": (None,), "ftrl": ("dim", "dim")}
RULES = {"sgd": sgd, "adagrad": adagrad, "rowwise_adagrad": rowwise_adagrad, "adam": adam,
         "momentum": momentum, "adamw": adam, "partial_rowwise_adam": partial_rowwise_adam,
         "rowwise_rmsprop": rowwise_rmsprop, "ftrl": ftrl}
