"""A traced model taken apart: the IR of its lookups, the programs around it, its own tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree

from neuroshard.export._graph.text import ModuleText
from neuroshard.export._run.ids import Jagged, make_jagged, zero_rows
from neuroshard.export._signature import Dense, Ids, Input, Lookup, Table, Value
from neuroshard.export._trace.arguments import Arguments
from neuroshard.export.errors import ExportError


@dataclass
class SplitModel:
    """A traced model taken apart.

    text: what the IR says. ids: the program that makes the jagged inputs from the model's
    arguments. state: the model's own tensors by their names in its state_dict; those on the meta
    device have no values. sharing: why devices cannot share the samples of a compiled dense part,
    "" if they can, None before it is tried."""

    text: ModuleText
    ids: Ids
    arguments: Arguments
    state: Mapping[str, torch.Tensor]
    counts: dict[str, int]
    sharing: str | None = None

    @property
    def tables(self) -> list[Table]:
        """The tables that were taken out of the model."""
        return list(self.text.tables)

    @property
    def inputs(self) -> list[Input]:
        """The jagged arguments of @forward."""
        return list(self.text.inputs)

    @property
    def lookups(self) -> list[Lookup]:
        """The lookups that were taken out of the model."""
        return list(self.text.lookups)

    @property
    def dense(self) -> Dense:
        """Makes the results of the model from the looked-up rows."""
        return self.text.dense

    @property
    def parameters(self) -> list[Value]:
        """The model's own tensors other than tables."""
        both = [*self.ids.parameters, *self.dense.parameters]
        return list({one.parameter: one for one in both}.values())

    @property
    def mlir(self) -> str:
        """The logical module, with @forward; no weights are in it."""
        return str(self.text)

    def __str__(self) -> str:
        return self.mlir

    @property
    def conditions(self) -> list[str]:
        """Conditions on the sizes of arguments, on which the model branched for the example."""
        return [one.text for one in self.arguments.sizes.conditions]

    def example(self) -> Mapping[str, object]:
        """The example inputs by their names in the program."""
        return self.arguments.example

    def example_rows(self) -> list[torch.Tensor]:
        """Zeros in place of the rows that the lookups give for the example inputs."""
        return zero_rows(self.lookups, self.inputs, self.jagged(self.example()))

    def flatten(self, args: Sequence, kwargs: Mapping) -> dict[str, torch.Tensor]:
        """The arguments of a call, args and kwargs, by their names in the program."""
        return self.arguments.flatten(args, kwargs)

    def unflatten(self, results: Sequence[object]) -> object:
        """The results of the program as the model returns them. results: in its order."""
        return pytree.tree_unflatten(list(results), self.arguments.out_spec)

    def own(self, parameters: Sequence[Value]) -> list[torch.Tensor]:
        """The values of parameters."""
        for one in parameters:
            if self.state[one.parameter].is_meta:
                raise ExportError(f"parameter \"{one.parameter}\" has no values: the model was "
                                  "on the meta device, or saved without weights; expected "
                                  "program.load(state_dict) before the first call")
        return [self.state[one.parameter] for one in parameters]

    def jagged(self, values: Mapping[str, torch.Tensor]) -> list[Jagged]:
        """The jagged arguments of @forward. values: those of flatten()."""
        given = [*(values[name] for name in self.ids.inputs), *self.own(self.ids.parameters)]
        made = _run(self.ids.module, given)
        return [make_jagged(one, made) for one in self.inputs]

    def run_dense(self, rows: Sequence[torch.Tensor],
                  values: Mapping[str, torch.Tensor]) -> list[object]:
        """Runs the dense part on the rows [n, dim] of all lookups and the other arguments, of values."""
        shaped = [lookup.shaped(one) for lookup, one in zip(self.lookups, rows)]
        given = [*shaped, *(values[one.name] for one in self.dense.inputs),
                 *self.own(self.dense.parameters)]
        return list(_run(self.dense.module, given))


def _run(module: torch.fx.GraphModule, given: Sequence[torch.Tensor]) -> Sequence[object]:
    """Runs a program, which may assert conditions on the values."""
    try:
        return module(*given)
    except RuntimeError as error:
        raise ExportError(f"the model does not take these arguments: {error}") from error
