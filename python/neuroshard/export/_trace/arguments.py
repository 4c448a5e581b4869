"""The arguments of a model: their normal form, flattening, checks and dynamic sizes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from neuroshard.export._trace.sizes import Sizes
from neuroshard.export._trace.trees import same_tree
from neuroshard.export.errors import ExportError


def _is_keyed(value: object) -> bool:
    module = sys.modules.get("torchrec.sparse.jagged_tensor")
    return module is not None and isinstance(value, module.KeyedJaggedTensor)


def plain_arguments(args: Sequence, kwargs: Mapping) -> tuple[tuple, dict]:
    """The arguments with every KeyedJaggedTensor reduced to values, weights and lengths: a used one
    also caches offsets, and would flatten differently from a fresh one."""
    return pytree.tree_map(_plain, (tuple(args), dict(kwargs)), is_leaf=_is_keyed)


def _plain(value: object) -> object:
    if not _is_keyed(value):
        return value
    require_one_batch(value)
    return type(value)(keys=list(value.keys()), values=value.values(),
                       weights=value.weights_or_none(), lengths=value.lengths())


def require_one_batch(keyed: object) -> None:
    if keyed.variable_stride_per_key() or keyed.inverse_indices_or_none() is not None:
        raise ExportError("a KeyedJaggedTensor whose keys have batches of their own cannot be "
                          "exported; expected one batch for all keys")


@dataclass(frozen=True)
class Arguments:
    """Converts a call to named inputs of the program, and results to what the model returns.

    constants: arguments that are not tensors, such as numbers; the program is valid for these
    values alone. sizes: the sizes it is valid for."""

    names: tuple[str, ...]
    constants: Mapping[str, object]
    sizes: Sizes
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    example: Mapping[str, object]

    @classmethod
    def of(cls, program: torch.export.ExportedProgram, sizes: Sizes) -> Arguments:
        specs = [spec.arg for spec in program.graph_signature.input_specs
                 if spec.kind == InputKind.USER_INPUT]
        names = tuple(spec.name for spec in specs)
        constants = {spec.name: spec.value for spec in specs if isinstance(spec, ConstantArgument)}
        example = dict(zip(names, pytree.tree_leaves(program.example_inputs)))
        call = program.call_spec
        return cls(names, constants, sizes, call.in_spec, call.out_spec, example)

    def flatten(self, args: Sequence, kwargs: Mapping) -> dict[str, object]:
        order = self.in_spec.children()[1].context
        if set(order) == set(kwargs):
            kwargs = {name: kwargs[name] for name in order}
        leaves, spec = pytree.tree_flatten(plain_arguments(args, kwargs))
        if spec != self.in_spec and not same_tree(spec, self.in_spec):
            raise ExportError("the arguments are not built as the example inputs were: "
                              f"{_difference(self.in_spec, spec)}")
        values = dict(zip(self.names, leaves))
        self.check(values)
        return values

    def check(self, values: Mapping[str, object]) -> None:
        """Raises an ExportError if the program is not valid for these values."""
        for name, expected in self.constants.items():
            if not _is_same(values[name], expected):
                raise ExportError(f"argument \"{name}\": the program was exported for "
                                  f"{expected!r}, found {values[name]!r}")
        for name, value in values.items():
            if name not in self.constants:
                _check_tensor(name, value, self.example[name])
        self.sizes.check(values)


def _difference(expected: pytree.TreeSpec, found: pytree.TreeSpec) -> str:
    """What is other in a call than in the one that was exported."""
    (before, named), (given, also) = (spec.children() for spec in (expected, found))
    if (before.num_children, set(named.context)) != (given.num_children, set(also.context)):
        counts = [f"{spec.num_children} by position" + (f" and {', '.join(map(str, others.context))} by name"
                                                        if others.context else "")
                  for spec, others in ((before, named), (given, also))]
        return f"expected {counts[0]}, found {counts[1]}"
    pairs = [*enumerate(zip(before.children(), given.children())),
             *zip(named.context, zip(named.children(), also.children()))]
    return next((f"argument {place}: expected {one}, found {other}" for place, (one, other) in pairs if one != other),
                f"expected {expected}, found {found}")


def _is_same(value: object, expected: object) -> bool:
    """Whether two constants have one type and value; NaN equals NaN."""
    return value is expected or type(value) is type(expected) and (
        value == expected or repr(value) == repr(expected) == "nan")


def _check_tensor(name: str, value: object, example: torch.Tensor) -> None:
    """Raises unless a tensor has the type of the example's and its shape except the first size."""
    if not isinstance(value, torch.Tensor):
        raise ExportError(f"argument \"{name}\": expected a tensor, found {type(value).__name__}")
    if value.dtype != example.dtype or value.dim() != example.dim() or (
            value.shape[1:] != example.shape[1:]) or value.device != example.device:
        expected = ["batch" if example.dim() else "", *map(str, example.shape[1:])]
        raise ExportError(
            f"argument \"{name}\": expected [{', '.join(expected)}] of {example.dtype} on "
            f"{example.device} as in the example, found {list(value.shape)} of {value.dtype} on "
            f"{value.device}")


def dynamic_shapes(arguments: Mapping[str, object]) -> list[dict[str, object]]:
    """By argument, the dynamic sizes for torch.export, in the order in which to try them. At best
    they are the first size of every tensor. A tensor whose first size is 0 or 1 may be broadcast,
    which torch traces for a constant size alone; more often that is one of numbers than of ids."""
    tried: list[dict[str, object]] = []
    for is_constant in (lambda value: False,
                        lambda value: value.shape[0] < 2 and value.is_floating_point(),
                        lambda value: value.shape[0] < 2):
        shapes = _dynamic_shapes(arguments, is_constant)
        if shapes not in tried:
            tried.append(shapes)
    return tried


def _dynamic_shapes(arguments: Mapping[str, object],
                    is_constant: Callable[[torch.Tensor], bool]) -> dict[str, object]:
    """With a KeyedJaggedTensor, whose lengths are keys x batch, the batch has a name, unless it is
    0 or 1, which torch refuses for a name."""
    keyed = [one for one in pytree.tree_leaves(dict(arguments), is_leaf=_is_keyed)
             if _is_keyed(one)]
    batches = {one.stride() for one in keyed}
    batch = torch.export.Dim("batch") if len(batches) == 1 and min(batches) > 1 else None

    def shape(value: object) -> object:
        if _is_keyed(value):
            return _keyed_shape(value, batch)
        if _is_registered(value):
            children, _ = pytree.SUPPORTED_NODES[type(value)].flatten_fn(value)
            return [shapes(one) for one in children]
        if not isinstance(value, torch.Tensor) or value.dim() == 0 or is_constant(value):
            return None
        # A row of ids may be as long as the batch by chance.
        counts_samples = value.dim() > 1 or value.is_floating_point()
        named = batch is not None and counts_samples and value.shape[0] in batches
        return {0: batch if named else torch.export.Dim.AUTO}

    def shapes(value: object) -> object:
        return pytree.tree_map(shape, value, is_leaf=_is_registered)

    return shapes(dict(arguments))


def _is_registered(value: object) -> bool:
    """Whether torch.export expects the shapes of its children as a list, as for a dataclass."""
    kind = type(value)
    return kind in pytree.SUPPORTED_NODES and kind not in pytree.BUILTIN_TYPES and not (
        pytree.is_namedtuple_class(kind))


def _keyed_shape(value: object, batch: object | None) -> list:
    """The shapes in the order in which torchrec flattens it."""
    free = {0: torch.export.Dim.AUTO}
    keys = len(value.keys())
    lengths = free if batch is None else {0: keys * batch if keys > 1 else batch}
    return [free, free if value.weights_or_none() is not None else None, lengths, None, None, None]
