"""torch.ops.neuroshard: a step as operators, with shapes for tracing and with autograd.

Tables are known by name, since an operator of a traced program takes values only. `token` is
a tensor that stands for their contents: embedding_backward is declared to change it, so that
no tracer drops an update or moves it past a lookup. `anchor` requires a gradient and never
gets one: it makes autograd call the backward of lookups that have no other input to
differentiate."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuroshard.errors import TensorError
from neuroshard.torch_cuda._checks import check_tensors
from neuroshard.torch_cuda._program import find_program
from neuroshard.torch_cuda._step import from_arguments


@torch.library.custom_op("neuroshard::embedding_forward", mutates_args=())
def embedding_forward(tables: str, anchor: torch.Tensor | None, token: torch.Tensor,
                      ids: Sequence[torch.Tensor], offsets: Sequence[torch.Tensor],
                      sample_weights: Sequence[torch.Tensor], poolings: Sequence[int],
                      feature_begin: Sequence[int], training: bool) -> list[torch.Tensor]:
    """The results of all lookups, a tensor for each group of the layout. poolings: ids of
    every bag of an input, or 0 if it has offsets. training: a backward follows."""
    program = find_program(tables)
    step = from_arguments(program.layout, ids, offsets, sample_weights, poolings, feature_begin)
    return program.forward(step, training)


@embedding_forward.register_fake
def _(tables, anchor, token, ids, offsets, sample_weights, poolings, feature_begin, training):
    program = find_program(tables)
    step = from_arguments(program.layout, ids, offsets, sample_weights, poolings, feature_begin)
    check_tensors(step, program.place)
    return step.make_results(program.place)


@torch.library.custom_op("neuroshard::embedding_backward",
                         mutates_args=("token", "weight_gradients"))
def embedding_backward(tables: str, token: torch.Tensor, gradients: Sequence[torch.Tensor],
                       ids: Sequence[torch.Tensor], offsets: Sequence[torch.Tensor],
                       sample_weights: Sequence[torch.Tensor], poolings: Sequence[int],
                       feature_begin: Sequence[int],
                       weight_gradients: Sequence[torch.Tensor]) -> None:
    """Updates the tables by the gradients of the results. Writes the gradients of the sample
    weights of each weighted input; or none, if weight_gradients is empty."""
    program = find_program(tables)
    step = from_arguments(program.layout, ids, offsets, sample_weights, poolings, feature_begin)
    program.backward(step, gradients, weight_gradients)


@embedding_backward.register_fake
def _(tables, token, gradients, ids, offsets, sample_weights, poolings, feature_begin,
      weight_gradients):
    pass


def _save(ctx, inputs, output):
    tables, _, token, ids, offsets, sample_weights, poolings, feature_begin, training = inputs
    ctx.save_for_backward(*ids, *offsets, *sample_weights)
    ctx.counts = [len(ids), len(offsets), len(sample_weights)]
    # Kept outside autograd, which refuses tensors that a backward has changed.
    ctx.token = token
    ctx.settings = (tables, poolings, feature_begin, training)
    ctx.shapes = [(result.shape, result.dtype) for result in output]


def _backward(ctx, gradients):
    tables, poolings, feature_begin, training = ctx.settings
    if not training:
        raise TensorError("the lookups were computed without training, so there is no backward; "
                          "set the module to train() and compile the model with --training")
    rest, lists = list(ctx.saved_tensors), []
    for count in ctx.counts:
        lists.append(rest[:count])
        del rest[:count]
    ids, offsets, weights = lists
    wanted = [torch.empty_like(one) for one in weights] if any(ctx.needs_input_grad[5]) else []
    # A result that the loss does not read has no gradient; zeros stand for it.
    gradients = [torch.zeros(shape, dtype=dtype, device=ctx.token.device)
                 if gradient is None else gradient
                 for gradient, (shape, dtype) in zip(gradients, ctx.shapes)]
    torch.ops.neuroshard.embedding_backward(tables, ctx.token, gradients, *lists, poolings,
                                            feature_begin, wanted)
    # Autograd takes an empty list for one of tensors.
    numbers = [None if values else [] for values in (poolings, feature_begin)]
    return (None, None, None, [None] * len(ids), [None] * len(offsets),
            wanted or [None] * len(weights), *numbers, None)


embedding_forward.register_autograd(_backward, setup_context=_save)
