"""Runs a compiled model on in-process devices, called like the module it was exported from."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from neuroshard.export._run.batch_split import local_sizes, split_jagged
from neuroshard.export._run.compiling import compile_model
from neuroshard.export._run.ids import Jagged, batch_of
from neuroshard.export._run.world import World
from neuroshard.export._signature import DTYPES
from neuroshard.export.errors import ExportError

if TYPE_CHECKING:
    from neuroshard.export._split_model import SplitModel


class Program:
    """An exported model, compiled and opened: a context manager, called like the module. Made by open(). Tables are
    zero until load() if a part of the model is on the meta device or was saved without weights."""

    def __init__(self, exported: SplitModel, folder: str | os.PathLike,
                 scratch: str | None = None) -> None:
        self.exported, self.folder, self._scratch = exported, pathlib.Path(folder), scratch
        self._world = World(folder)
        try:
            own = [*exported.tables, *exported.parameters]
            if not any(exported.state[one.parameter].is_meta for one in own):
                self.load(exported.state)
        except BaseException:
            self.close()
            raise

    @property
    def devices(self) -> int:
        """Number of in-process devices."""
        return self._world.devices

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Loads the tables and other parameters from a state_dict of the model, `state`. Parameters that it
        lacks stay unchanged."""
        if not isinstance(state, Mapping):
            raise ExportError("expected a state_dict, tensors by name, found "
                              f"{type(state).__name__}")
        tables, own = self.exported.tables, self.exported.state
        given = [one for one in self.exported.parameters
                 if one.parameter in state or own[one.parameter].is_meta]
        for table in tables:
            _check_weights(f"table \"{table.name}\"", table.parameter, (table.rows, table.dim),
                           table.type, state)
        for one in given:
            _check_weights("the model", one.parameter, one.shape, one.type, state)
        for table in tables:
            self._world.write_table(table.name, state[table.parameter])
        taken = {one.parameter: state[one.parameter].detach() for one in given}
        self.exported = replace(self.exported, state={**own, **taken})

    def close(self) -> None:
        """Frees the tables, and the folder if it was a temporary one."""
        self._world.close()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch = None

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, *args: object, **kwargs: object) -> object:
        values = self.exported.flatten(args, kwargs)
        with torch.no_grad():
            jagged = self.exported.jagged(values)
            self._check_samples(values, jagged)
            results = (self._run_linalg if self.exported.dense.linalg else self._run_torch)(
                values, jagged)
        return self.exported.unflatten(results)

    def _run_torch(self, values: Mapping[str, torch.Tensor],
                   jagged: Sequence[Jagged]) -> list[object]:
        parts = self._scatter(jagged)
        rows = self._world.forward([[tensor for one in part for tensor in one.tensors]
                                    for part in parts])
        whole = [torch.cat(one) for one in zip(*rows)]
        return self.exported.run_dense(whole, values)

    def _run_linalg(self, values: Mapping[str, torch.Tensor],
                    jagged: Sequence[Jagged]) -> list[object]:
        dense = self.exported.dense
        batch = batch_of(jagged[0], self.exported.inputs[0])
        sizes = local_sizes(batch, self.devices)
        parameters = [one.detach().contiguous() for one in self.exported.own(dense.parameters)]
        inputs = [[part.contiguous() for part in values[one.name].split(sizes)] if one.per_sample
                  else [values[one.name].contiguous()] * self.devices for one in dense.inputs]
        results = self._world.forward([
            [*(one[rank] for one in inputs), *(tensor for one in part for tensor in one.tensors),
             *parameters] for rank, part in enumerate(self._scatter(jagged))])
        return [torch.cat(one) for one in zip(*results)]

    def _check_samples(self, values: Mapping[str, torch.Tensor],
                       jagged: Sequence[Jagged]) -> None:
        """Raises unless all inputs have the same number of samples. They may differ if torch runs
        the dense part on the whole batch."""
        sizes = {input_.name: batch_of(one, input_)
                 for one, input_ in zip(jagged, self.exported.inputs)}
        if len(set(sizes.values())) > 1:
            if self.exported.dense.linalg:
                raise ExportError(f"expected as many samples in every input, found {sizes}")
            return
        batch = next(iter(sizes.values()))
        for one in self.exported.dense.inputs:
            found = values[one.name].shape[:1]
            expected = batch if one.per_sample else one.shape[0] if one.shape else None
            if expected is not None and found[0] != expected:
                raise ExportError(f"argument \"{one.name}\": expected {expected} samples, as the "
                                  f"ids have and the example had; found {found[0]}")

    def _scatter(self, jagged: Sequence[Jagged]) -> list[list[Jagged]]:
        """The samples of each device, of every jagged input."""
        cut = [split_jagged(one, len(input_.features), self.devices)
               for one, input_ in zip(jagged, self.exported.inputs)]
        return [[parts[rank] for parts in cut] for rank in range(self.devices)]


def _check_weights(what: str, name: str, shape: tuple, type_: str,
                   state: Mapping[str, torch.Tensor]) -> None:
    expected, values = (tuple(shape), DTYPES[type_], torch.strided), state.get(name)
    found = (tuple(values.shape), values.dtype, values.layout) if isinstance(
        values, torch.Tensor) else None
    if found != expected or values.device.type != "cpu":
        text = (f"{found[0]} of {found[1]}, {found[2]}, on {values.device}"
                if isinstance(values, torch.Tensor) else type(values).__name__)
        raise ExportError(f"{what}: expected its weights as \"{name}\", {expected[0]} of "
                          f"{expected[1]} on the CPU, found {text}")


def open_program(exported: SplitModel, plan: object, devices: int,
                 folder: str | os.PathLike | None) -> Program:
    """Compiles into the folder, or into a temporary one that close() removes."""
    scratch = tempfile.mkdtemp(prefix="neuroshard-") if folder is None else None
    try:
        place = compile_model(exported, folder or os.path.join(scratch, "artifact"), plan, devices,
                              training=False)
        return Program(exported, place, scratch)
    except BaseException:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
        raise

