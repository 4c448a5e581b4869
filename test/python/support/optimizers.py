"""One optimizer step of a table in float64, by the formulas of torch.optim and FBGEMM.

Each function takes weights, states and the summed gradient of a step and gives the new
weights and states with the error that f32 arithmetic may add: that of the summed
gradient, carried through the derivative of the formula, and 4 ulp of each term.
"""

import math

import torch

from support.oracle import ULPS, Bounded, ulp


def new_states(optimizer, rows, dim, column_groups=1):
    """Initial states as the runtime stores them."""
    if optimizer is None or optimizer.kind == "sgd":
        return []
    if optimizer.kind == "adam":
        return [torch.zeros(rows, dim), torch.zeros(rows, dim)]
    width = dim if optimizer.kind == "adagrad" else column_groups
    return [torch.full((rows, width), optimizer.initial_accumulator)]


def step(optimizer, weights, states, gradient, learning_rate, number, columns=None):
    """(new weights, new states); `number` counts steps from 1. `columns`: the column
    ranges that keep a row-wise state of their own (default: the whole row)."""
    decay = optimizer.weight_decay * weights.double()
    rule = {"sgd": sgd, "adagrad": adagrad, "rowwise_adagrad": rowwise_adagrad,
            "adam": adam}[optimizer.kind]
    columns = columns or [(0, weights.shape[1])]
    new = rule(optimizer, weights.double(), [state.double() for state in states],
               Bounded(gradient.value + decay, gradient.error(decay)), learning_rate, number, columns)
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


def adagrad(optimizer, weights, states, gradient, learning_rate, _number, _columns):
    total = states[0] + gradient.value ** 2
    total_error = ULPS * ulp(total) + square_error(gradient.value, gradient.error)
    scale = learning_rate / (total.sqrt() + optimizer.eps)
    return [moved(weights, scale * gradient.value, 2 * scale * gradient.error),
            Bounded(total, total_error)]


def rowwise_adagrad(optimizer, weights, states, gradient, learning_rate, _number, columns):
    new_weights = Bounded(weights.clone(), torch.zeros_like(weights))
    state = Bounded(states[0].clone(), torch.zeros_like(states[0]))
    for group, (begin, end) in enumerate(columns):
        part = slice(begin, end)
        value, error = gradient.value[:, part], gradient.error[:, part]
        norm = (value ** 2).mean(1, keepdim=True)
        norm_error = square_error(value, error).mean(1, keepdim=True) + ULPS * ulp(norm)
        total = states[0][:, group:group + 1] + norm
        scale, scale_error = inverse_root(learning_rate, total, norm_error, optimizer.eps)
        change = moved(weights[:, part], scale * value,
                       scale * error + scale_error * value.abs())
        new_weights.value[:, part], new_weights.error[:, part] = change.value, change.error
        state.value[:, group:group + 1] = total
        state.error[:, group:group + 1] = norm_error + ULPS * ulp(total)
    return [new_weights, state]


def adam(optimizer, weights, states, gradient, learning_rate, number, _columns):
    first, second = states
    beta1, beta2 = optimizer.beta1, optimizer.beta2
    g, error = gradient.value, gradient.error
    new_first = beta1 * first + (1 - beta1) * g
    new_second = beta2 * second + (1 - beta2) * g ** 2
    first_error = (1 - beta1) * error + ULPS * ulp(
        (beta1 * first).abs() + ((1 - beta1) * g).abs())
    second_error = (1 - beta2) * square_error(g, error) + ULPS * ulp(new_second)
    size = learning_rate * math.sqrt(1 - beta2 ** number) / (1 - beta1 ** number)
    scale, scale_error = inverse_root(size, new_second, second_error, optimizer.eps)
    return [moved(weights, scale * new_first,
                  scale * first_error + scale_error * new_first.abs()),
            Bounded(new_first, first_error), Bounded(new_second, second_error)]
