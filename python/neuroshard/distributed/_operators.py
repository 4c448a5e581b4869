"""torch.ops.neuroshard.embeddings_*: shapes for tracing, when and by which rates backwards update.

The operators themselves are C++ (lib/RuntimeTorch). They take the name of a model, since operators
of a traced program take values only. Each takes what the one before it gives, so that tracers keep
them and their order; `call` is another tensor for each start. `inputs` are ids, offsets and, where lookups are weighted, weights
(lib/RuntimeTorch/StepInputs.h). `joined` asks for all results in one tensor. With `anchor` autograd
calls the backward (Autograd.cpp); None: no backward follows. Learning rates are no arguments,
since a traced program would keep the values of its trace: each embeddings_gradients asks for them, for
the update, and whether that is the backward's (gradient_settings)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from neuroshard._native.torch_library import load_library
from neuroshard.errors import TensorError


@dataclass(frozen=True)
class Result:
    """One lookup of a model."""

    feature: int
    pooled: bool
    dim: int
    dtype: torch.dtype


@dataclass(frozen=True)
class InputShapes:
    """The shapes of an input's results."""

    features: int
    weighted: bool
    results: tuple[Result, ...]

    def allocate(self, ids: torch.Tensor, offsets: torch.Tensor) -> list[torch.Tensor]:
        batch = (offsets.shape[0] - 1) // self.features
        return [offsets.new_empty((batch if one.pooled else self._rows(one, ids), one.dim),
                                  dtype=one.dtype) for one in self.results]

    def _rows(self, result: Result, ids: torch.Tensor) -> int:
        if self.features == 1:
            return ids.shape[0]
        return torch.library.get_ctx().new_dynamic_size()


@dataclass(frozen=True)
class Shapes:
    """The shapes of a model's results, for tracing."""

    inputs: tuple[InputShapes, ...]

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(result for one in self.inputs for result in one.results)

    def allocate(self, tensors: Sequence[torch.Tensor], joined: bool) -> list[torch.Tensor]:
        """tensors: those of all inputs, as the operators take them. joined: all results in one
        tensor."""
        left, results = iter(tensors), []
        for one in self.inputs:
            results += one.allocate(next(left), next(left))
            if one.weighted:
                next(left)
        if not joined:
            return results
        first, columns = results[0], sum(one.shape[1] for one in results)
        return [first.new_empty((first.shape[0], columns))]


class GradientPolicy(Protocol):
    """What becomes of the gradients of a model's backwards (_updates.Updates)."""

    def gradient_settings(self) -> list[float]: ...

    def are_finite_everywhere(self, finite: bool) -> bool: ...


@dataclass(frozen=True)
class _Model:
    shapes: Shapes
    policy: GradientPolicy


_models: dict[str, _Model] = {}


def add_model(name: str, shapes: Shapes, policy: GradientPolicy) -> None:
    _models[name] = _Model(shapes, policy)


def remove_model(name: str) -> None:
    _models.pop(name, None)


def _model(name: str) -> _Model:
    try:
        return _models[name]
    except KeyError:
        raise TensorError(f"there is no open model named \"{name}\"; it was closed or "
                          "never opened") from None


def shapes_of(name: str) -> Shapes:
    return _model(name).shapes


def gradient_settings(name: str) -> list[float]:
    """The factor of gradients, whether they are kept for a later update, whether they are checked to be
    finite, then learning rates, one or those of all tables."""
    return _model(name).policy.gradient_settings()


def are_finite_everywhere(name: str, finite: bool) -> bool:
    return _model(name).policy.are_finite_everywhere(finite)


def _start(model, call, inputs):
    return torch.empty(1, dtype=torch.int64, device="cpu")


def _lookup(model, ticket):
    return torch.empty_like(ticket)


def _anchor(model, ticket, inputs, anchor):
    return inputs[0].new_empty((), dtype=torch.float32)


def _wait(model, ticket, inputs, anchor, updates=True, joined=False):
    return shapes_of(model).allocate(inputs, joined)


def _update(model, ticket, kept):
    return torch.empty((), dtype=torch.float32, device="cpu")


def _gradients(model, ticket, gradients, inputs):
    weights = [one for one in inputs if one.is_floating_point()]
    return (inputs[0].new_empty(sum(one.shape[0] for one in weights), dtype=torch.float32),
            inputs[0].new_empty((), dtype=torch.float32))


def register() -> None:
    """Loads the library and adds to its operators what Python defines. Later calls do nothing."""
    if _registered:
        return
    load_library()
    library = torch.library.Library("neuroshard", "FRAGMENT")
    for own in (gradient_settings, are_finite_everywhere):
        library.impl(own.__name__, own, "CompositeExplicitAutograd")
    _registered.append(library)
    for name, fake in (("start", _start), ("lookup", _lookup), ("anchor", _anchor), ("wait", _wait),
                       ("gradients", _gradients), ("update", _update)):
        torch.library.register_fake(f"neuroshard::embeddings_{name}", fake)


_registered: list[torch.library.Library] = []
