"""torch.ops.neuroshard.sharded_*: steps on GPUs as operators that tracers do not look into.

The counterpart of embeddings_* (_engine/operators.py), written in Python."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Protocol

import torch

from neuroshard.distributed._engine import operators
from neuroshard.errors import TensorError
from neuroshard._jagged import Jagged


class Steps(Protocol):
    """An open model, whose steps have numbers."""

    steps: dict[int, object]

    def start_step(self, given: Jagged, learns: bool) -> int: ...

    def finish_step(self, number: int, learns: bool) -> list[torch.Tensor]: ...

    def update_step(self, number: int,
                    gradients: Sequence[torch.Tensor]) -> torch.Tensor | None: ...


_open: weakref.WeakValueDictionary[str, Steps] = weakref.WeakValueDictionary()


def find(model: str) -> Steps:
    engine = _open.get(model)
    if engine is None:
        raise TensorError(f"there is no open model named \"{model}\"")
    return engine


def add(model: str, engine: Steps) -> None:
    if model in _open:
        raise TensorError(f"a model named \"{model}\" is open already")
    _open[model] = engine


def remove(model: str) -> None:
    _open.pop(model, None)


class _Number(ctypes.c_int64):
    """The memory of a ticket: when it is freed, its step is dropped."""


def make_ticket(engine: Steps, number: int) -> torch.Tensor:
    memory = _Number(number)
    weakref.finalize(memory, drop, weakref.ref(engine), number)
    return torch.frombuffer(memory, dtype=torch.int64)


def drop(engine: weakref.ref, number: int) -> None:
    if alive := engine():
        alive.steps.pop(number, None)


def _start(model, token, ids, offsets, weights, learns):
    engine = find(model)
    return make_ticket(engine, engine.start_step(Jagged(ids, offsets, weights), learns))


def _wait(model, token, ticket, ids, offsets, weights, anchor):
    return find(model).finish_step(int(ticket), anchor is not None)


def _update(model, token, ticket, gradients, ids):
    result = find(model).update_step(int(ticket), gradients)
    token += 1
    return result if result is not None else ids.new_empty(ids.shape, dtype=torch.float32)


def _start_shape(model, token, ids, offsets, weights, learns):
    return torch.empty(1, dtype=torch.int64)


def _update_shape(model, token, ticket, gradients, ids):
    return torch.empty(ids.shape[0], dtype=torch.float32, device=ids.device)


def _save(ctx, inputs, output):
    model, token, ticket, ids, _, weights, _ = inputs
    ctx.save_for_backward(ticket, ids)
    # Kept outside autograd, which refuses tensors that a backward has changed.
    ctx.token, ctx.model = token, model
    ctx.weighted = weights is not None
    ctx.shapes = [(result.shape, result.dtype, result.device) for result in output]


def _backward(ctx, gradients):
    ticket, ids = ctx.saved_tensors
    # A result that the loss does not read has no gradient; zeros stand for it.
    gradients = [torch.zeros(shape, dtype=dtype, device=device) if gradient is None
                 else gradient.contiguous()
                 for gradient, (shape, dtype, device) in zip(gradients, ctx.shapes)]
    of_weights = torch.ops.neuroshard.sharded_update(ctx.model, ctx.token, ticket, gradients, ids)
    wanted = ctx.weighted and ctx.needs_input_grad[5]
    return None, None, None, None, None, of_weights if wanted else None, None


@cache
def register() -> torch.library.Library:
    """Defines the operators. Later calls do nothing."""
    library = torch.library.Library("neuroshard", "FRAGMENT")
    library.define("sharded_start(str model, Tensor token, Tensor ids, Tensor offsets, "
                   "Tensor? weights, bool learns) -> Tensor")
    library.define("sharded_wait(str model, Tensor token, Tensor ticket, Tensor ids, "
                   "Tensor offsets, Tensor? weights, Tensor? anchor) -> Tensor[]")
    library.define("sharded_update(str model, Tensor(a!) token, Tensor ticket, "
                   "Tensor[] gradients, Tensor ids) -> Tensor")
    for name, run, shape in (("start", _start, _start_shape), ("wait", _wait, operators._wait),
                             ("update", _update, _update_shape)):
        library.impl(f"sharded_{name}", run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"neuroshard::sharded_{name}", shape, lib=library)
    torch.library.register_autograd("neuroshard::sharded_wait", _backward, setup_context=_save,
                                    lib=library)
    return library
