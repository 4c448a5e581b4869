"""What export gives: the program, and what can be done with it."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch.utils import _pytree as pytree

from neuroshard.export.arguments import Arguments
from neuroshard.export.errors import ExportError
from neuroshard.export.ids import Jagged, make_jagged, zero_rows
from neuroshard.export.options import device_count, require_batch
from neuroshard.export.per_sample import check_per_sample
from neuroshard.export.program import Dense, Ids, Input, Lookup, Table, Value
from neuroshard.export.text import ModuleText

if TYPE_CHECKING:
    from neuroshard.export.running import Program
    from neuroshard.plans import Plan
    from neuroshard.problem import ShardingProblem
    from neuroshard.topology import Topology


@dataclass
class Exported:
    """A model as a program of NeuroShard.

    text: what is in the IR. ids: makes the jagged inputs from the arguments of the model.
    state: the model's own tensors, by their names in its state_dict; those on the meta device
    have no values. sharing: why devices cannot share the samples of a compiled dense part, "" if
    they can; None: not tried yet."""

    text: ModuleText
    ids: Ids
    arguments: Arguments
    state: Mapping[str, torch.Tensor]
    counts: dict[str, int]
    sharing: str | None = None

    @property
    def tables(self) -> list[Table]:
        return list(self.text.tables)

    @property
    def inputs(self) -> list[Input]:
        """The jagged arguments of @forward."""
        return list(self.text.inputs)

    @property
    def lookups(self) -> list[Lookup]:
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

    def problem(self, topology: Topology | str | None = None, *,
                batch: int | None = None) -> ShardingProblem:
        """What is to be planned. batch: over all devices; None: that of the example."""
        from neuroshard.distributed.artifact import run
        from neuroshard.distributed.library import compiler_path
        from neuroshard.problem import ShardingProblem

        if batch is not None:
            require_batch(batch)
        text = self.text if batch is None else replace(self.text, batch=batch)
        with tempfile.TemporaryDirectory() as folder:
            source, made = pathlib.Path(folder, "model.mlir"), pathlib.Path(folder, "problem.json")
            source.write_text(str(text), encoding="utf-8")
            run(compiler_path().with_name("neuroshard-translate"), "--mlir-to-workload", source,
                "-o", made)
            problem = ShardingProblem.load(str(made))
        return problem if topology is None else problem.replace(topology=topology)

    def compile(self, folder: str | os.PathLike, *, plan: Plan | None = None,
                devices: int = 1, training: bool = False) -> pathlib.Path:
        """Runs neuroshard-compile: an artifact for that many devices of this machine, by the
        plan or by one that is made now. Where torch runs the dense part, @forward of the artifact
        ends with the rows. training: with @embeddings_update, which takes gradients of rows."""
        from neuroshard.distributed.artifact import run
        from neuroshard.distributed.library import compiler_path

        count = device_count(plan, devices)
        if self.dense.linalg and count > 1 and (reason := self.why_not_shared()):
            raise ExportError(reason)
        text = self.text if self.dense.linalg else replace(self.text, dense=None)
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(scratch, "model.mlir")
            options = ["--training"] if training else []
            source.write_text(str(text), encoding="utf-8")
            if self.dense.linalg:  # what needs no row then runs while ids are on their way
                inlined = source.with_name("inlined.mlir")
                run(compiler_path().with_name("neuroshard-opt"), source, "--inline", "-o", inlined)
                source = inlined
            if plan is not None:
                plan.save(os.path.join(scratch, "plan.json"))
                options += ["--plan", os.path.join(scratch, "plan.json")]
            run(compiler_path(), source, "--topology", f"{count}xCPU", *options, "-o", folder)
        return pathlib.Path(folder)

    def open(self, *, plan: Plan | None = None, devices: int = 1,
             folder: str | os.PathLike | None = None) -> Program:
        """Compiles, and opens the artifact on in-process devices: a context manager to be called
        as the model. folder: where the artifact is to stay; None: it goes when closed."""
        from neuroshard.export.running import open_program

        return open_program(self, plan, devices, folder)

    def save(self, path: str | os.PathLike, *, weights: bool = False) -> list[pathlib.Path]:
        """Writes path.mlir, path.ids.pt2, path.dense.pt2 and path.json, which says what they take
        and give; with weights also path.safetensors. Gives their paths. neuroshard.load_export
        reads them."""
        from neuroshard.export.saving import save

        return save(self, pathlib.Path(path), weights)

    @property
    def conditions(self) -> list[str]:
        """What sizes of the arguments must be, as the model branched on those of the example."""
        return [one.text for one in self.arguments.sizes.conditions]

    def why_not_shared(self) -> str:
        """Why devices cannot share the samples of the dense part, tried on the example; ""."""
        if self.sharing is None:
            try:
                check_per_sample(self)
                self.sharing = ""
            except ExportError as error:
                self.sharing = str(error)
        return self.sharing

    # The parts, one by one

    def example(self) -> Mapping[str, object]:
        """The example inputs by their names in the program."""
        return self.arguments.example

    def example_rows(self) -> list[torch.Tensor]:
        """Zeros in place of the rows that the lookups give for the example inputs."""
        return zero_rows(self.lookups, self.inputs, self.jagged(self.example()))

    def flatten(self, args: Sequence, kwargs: Mapping) -> dict[str, torch.Tensor]:
        """The arguments of a call by their names in the program."""
        return self.arguments.flatten(args, kwargs)

    def unflatten(self, results: Sequence[object]) -> object:
        """Results as the model returns them."""
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
        """The jagged arguments of @forward."""
        given = [*(values[name] for name in self.ids.inputs), *self.own(self.ids.parameters)]
        made = _run(self.ids.module, given)
        return [make_jagged(one, made) for one in self.inputs]

    def run_dense(self, rows: Sequence[torch.Tensor],
                  values: Mapping[str, torch.Tensor]) -> list[object]:
        """What torch makes of the rows [n, dim] of all lookups and the other arguments."""
        shaped = [lookup.shaped(one) for lookup, one in zip(self.lookups, rows)]
        given = [*shaped, *(values[one.name] for one in self.dense.inputs),
                 *self.own(self.dense.parameters)]
        return list(_run(self.dense.module, given))


def _run(module: torch.fx.GraphModule, given: Sequence[torch.Tensor]) -> Sequence[object]:
    """Its results; what it asserts of the values may not hold."""
    try:
        return module(*given)
    except RuntimeError as error:
        raise ExportError(f"the model does not take these arguments: {error}") from error
