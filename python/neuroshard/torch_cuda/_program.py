"""An artifact opened on a GPU, and its steps: allocates tensors and passes their addresses to the
library."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from neuroshard import _fields, cuda
from neuroshard._manifest import load_manifest, reading
from neuroshard._row_layout import ALIGNMENT, padded
from neuroshard.cuda import within
from neuroshard.errors import TensorError
from neuroshard.torch_cuda import _table_tensors
from neuroshard.torch_cuda._checks import check_offsets, check_sizes, check_tensors
from neuroshard.torch_cuda._layout import Group, make_layout
from neuroshard.torch_cuda._out_of_memory import with_torch_memory
from neuroshard.torch_cuda._place import pick_place, require_driver
from neuroshard.torch_cuda._step import Step, address, expect_count
from neuroshard.torch_cuda._weight_gradients import WeightGradients

_open: weakref.WeakValueDictionary[str, Program] = weakref.WeakValueDictionary()


def check_whole(manifest: dict) -> None:
    """Refuses artifacts that need an exchange between devices, or ids sorted by rows."""
    devices = manifest["devices"]
    if devices != 1:
        raise TensorError(f"expected an artifact for 1 device, found {devices}; "
                          "neuroshard.cuda runs the devices of a larger plan one by one")
    for shard in manifest["shards"]:
        table = manifest["tables"][shard["table"]]
        if shard["rows"] != [0, table["rows"]]:
            raise TensorError(f"table \"{table['name']}\" is split by rows, whose ids must be "
                              "sorted out first; compile with a plan that keeps its rows together")
    for exchange in manifest["exchanges"]:
        for lookup in exchange["lookups"]:
            if lookup["padding_idx"] is not None:
                raise TensorError(
                    f"feature \"{exchange['features'][lookup['feature']]}\" is looked up with a "
                    "padding_idx; leave such ids out of the bags instead")


def find_program(name: str) -> Program:
    """The program that operators call `name`."""
    program = _open.get(name)
    if program is None:
        raise TensorError(f"no embedding tables named \"{name}\" are open (open: "
                          f"{sorted(_open) or 'none'}); make EmbeddingTables(artifact, "
                          f"name=\"{name}\") first")
    return program


def pick_name(name: str | None) -> str:
    if name is None:
        number = 0
        while f"embedding_tables_{number}" in _open:
            number += 1
        return f"embedding_tables_{number}"
    if not _fields.text(name, "name"):
        raise ValueError("name: expected a text that is not empty")
    if name in _open:
        raise TensorError(f"embedding tables named \"{name}\" are open already; names tell "
                          "operators which tables they work on")
    return name


@dataclass(frozen=True)
class Settings:
    """Settings of EmbeddingTables, whose docstring explains them."""

    concatenate: bool
    check_every: int
    check_offsets: bool
    join_sort: bool | None


class Program:
    """Tables in memory that torch allocates, and the steps on them."""

    def __init__(self, artifact: str | os.PathLike, name: str | None,
                 device: torch.device | str | int | None, seed: int, settings: Settings) -> None:
        self.artifact = folder = Path(_fields.path(artifact, "artifact"))
        seed = within(seed, "seed", 0, 2**64 - 1)
        self.name = pick_name(name)
        self.place = pick_place(device)
        manifest = load_manifest(folder)
        cuda.check_artifact(folder)
        with reading(folder):
            check_whole(manifest)
            arrays = _table_tensors.find_arrays(manifest)
        self.allocate(folder, arrays)
        with reading(folder):
            self.layout = make_layout(manifest, self.device.lookups, settings.concatenate)
        self.device.initialize(seed)
        self.trainable = any(slot.trainable for slot in self.device.slots)
        self.learning_rate, self.step = 0.0, 0
        self.settings, self._calls = settings, 0
        # Autograd may run backward passes in another thread.
        self._lock = threading.RLock()
        self._held: object = None
        self._sorted: tuple | None = None
        _open[self.name] = self

    def allocate(self, artifact: str | os.PathLike,
                    arrays: dict[str, list[_table_tensors.Array]]) -> None:
        """Opens the artifact and sets `tables`: by name, the tensors that a user sees. On a GPU
        torch allocates them; the emulator allocates its own."""
        tensors = None
        if self.place.type == "cuda":
            tensors = [_table_tensors.allocate(group, self.place) for group in arrays.values()]
        # seed=None: nothing is written before the driver is known to accept this memory.
        self.device = cuda.Device(
            artifact, 0, self.place.index or 0, seed=None,
            memory=tensors and [_table_tensors.as_slot_memory(group) for group in tensors])
        self._lease = _table_tensors.Lease(self.device)
        require_driver(self.device, self.place)
        for (name, group), slot in zip(arrays.items(), self.device.slots):
            _table_tensors.check_sizes(name, group, slot)
        if tensors is None:
            tensors = [_table_tensors.adopt(group, slot, self._lease)
                       for group, slot in zip(arrays.values(), self.device.slots)]
        self.tables = {
            name: {array.name: array.visible(tensor) for array, tensor in zip(group, own)}
            for (name, group), own in zip(arrays.items(), tensors)}

    def require_open(self) -> None:
        if self._lease is None:
            raise TensorError(f"the embedding tables \"{self.name}\" are closed")

    def open_tables(self) -> dict[str, dict[str, torch.Tensor]]:
        self.require_open()
        return self.tables

    def close(self) -> None:
        if _open.get(self.name) is self:
            del _open[self.name]
        self._lease = None
        self.tables.clear()
        self._held = self._sorted = None

    # Streams

    def stream(self) -> int | None:
        if self.place.type == "cpu":
            return None
        return torch.cuda.current_stream(self.place).cuda_stream

    def is_capturing(self) -> bool:
        if self.place.type == "cpu":
            return False
        with torch.cuda.device(self.place):
            return torch.cuda.is_current_stream_capturing()

    # Steps

    def set_step(self) -> None:
        """Writes learning rate and number of the next update to the GPU."""
        self.require_open()
        self.device.set_step(self.learning_rate, self.step + 1, self.stream())

    def advance(self) -> None:
        self.set_step()
        self.step += 1

    def check(self) -> None:
        self.require_open()
        self.device.check(self.stream())

    def check_values(self, step: Step) -> None:
        check_tensors(step, self.place)
        check_sizes(step)
        if (self.settings.check_offsets or self.place.type == "cpu") and not self.is_capturing():
            check_offsets(step)

    def check_now_and_then(self) -> None:
        self._calls += 1
        every = self.settings.check_every
        if every and self._calls % every == 0 and not self.is_capturing():
            self.check()

    def forward(self, step: Step, training: bool) -> list[torch.Tensor]:
        with self._lock:
            return self._forward(step, training)

    def _forward(self, step: Step, training: bool) -> list[torch.Tensor]:
        self.check_values(step)
        results = step.make_results(self.place)
        parts = self.make_parts(step, results)
        if not training:
            mode = cuda.INFERENCE
        elif self.joins_sort():
            mode = cuda.TRAINING_JOINED
        else:
            mode = cuda.TRAINING
        self.launch(step, parts, mode)
        if not training:
            self.check_now_and_then()
        return results

    def joins_sort(self) -> bool:
        join = self.settings.join_sort
        return self.is_capturing() if join is None else join

    def launch(self, step: Step, parts: object, mode: int) -> None:
        self._sorted = None
        with_torch_memory(lambda: self.device.forward(parts, mode, self.stream()),
                          self.is_capturing())
        # Another stream of the library reads the ids until the next call, and check() reads them
        # too: hold them, so that torch does not reuse their memory.
        self._held = step
        if mode != cuda.INFERENCE:
            self._sorted = self.identity(step)

    def identity(self, step: Step) -> tuple:
        return (self.is_capturing(), step.identity())

    def make_parts(self, step: Step, results: Sequence[torch.Tensor] | None) -> object:
        """The parts of all lookups. results: None to sort the ids without looking them up."""
        inputs = []
        for number, given in enumerate(step.inputs):
            # As addresses, unchecked: check_tensors has checked the tensors.
            inputs.append(cuda.Input(
                address(given.ids), address(given.offsets), step.batch(number), given.pooling,
                given.ids.shape[0], address(given.weights), given.feature_begin))
        outputs = [(None, 0)] * len(self.layout.shard_columns)
        if results is not None:
            places = [(result.data_ptr(), result.element_size()) for result in results]
            outputs = []
            for one in self.layout.shard_columns:
                begin, size = places[one.result.group]
                stride = self.layout.groups[one.result.group].stride
                outputs.append((begin + size * one.column if begin else None, stride))
        return self.device.make_parts(inputs, outputs)

    def backward(self, step: Step, gradients: Sequence[torch.Tensor],
                 weight_gradients: Sequence[torch.Tensor]) -> None:
        """Updates the tables; writes the gradients of sample weights, if there is any."""
        with self._lock:
            self._backward(step, gradients, weight_gradients)

    def _backward(self, step: Step, gradients: Sequence[torch.Tensor],
                  weight_gradients: Sequence[torch.Tensor]) -> None:
        self.check_values(step)
        expect_count("gradients", gradients, len(self.layout.groups))
        gradients = [self.readable(step, group, gradient)
                     for group, gradient in zip(self.layout.groups, gradients)]
        if self._sorted != self.identity(step):
            # The last forward was of another batch: sort this one's ids (again).
            self.launch(step, self.make_parts(step, None), cuda.TRAINING_JOINED)
        sums = WeightGradients(step, weight_gradients) if weight_gradients else None
        native = []
        for one in self.layout.shard_columns:
            gradient = gradients[one.result.group]
            begin = gradient.data_ptr() + 4 * one.column if gradient.numel() else None
            weights = sums.target(one) if sums else None
            native.append((begin, gradient.stride(0), address(weights)))
        capturing = self.is_capturing()
        if not capturing:
            self.set_step()
        self._sorted = None
        self.device.backward((cuda.Gradient * len(native))(*native), self.stream())
        if self.device.info.two_phase:
            self.add_norms()
            self.device.backward_apply(self.stream())
        if not capturing:
            self.step += 1
        if sums:
            sums.finish()
        self.check_now_and_then()

    def readable(self, step: Step, group: Group, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient in f32 with contiguous, aligned rows: itself, or a copy."""
        rows = step.rows(group)
        if gradient.device != self.place or tuple(gradient.shape) != (rows, group.columns):
            raise TensorError(f"gradient of \"{group.first.name}\": expected {rows} x "
                              f"{group.columns} on {self.place}, found "
                              f"{' x '.join(map(str, gradient.shape))} on {gradient.device}")
        gradient = gradient.float()
        if (gradient.stride(1) == 1 and gradient.stride(0) >= group.columns
                and gradient.stride(0) * 4 % ALIGNMENT == 0
                and gradient.data_ptr() % ALIGNMENT == 0):
            return gradient
        copy = gradient.new_empty((rows, padded(group.columns, 4)))[:, :group.columns]
        return copy.copy_(gradient)

    def add_norms(self) -> None:
        """Adds up the norms of rows that are split by columns: a row's norm is the sum over all its
        columns."""
        shards = {}
        for number, slot in enumerate(self.device.slots):
            if slot.two_phase:
                shards.setdefault(slot.table, []).append((slot.col_begin, number))
        for members in shards.values():
            norms = [self.device.norms(number) for _, number in sorted(members)]
            parts = [_table_tensors.foreign(norm.norms, norm.capacity, self.place)
                     for norm in norms]
            total = parts[0].clone()
            for part in parts[1:]:
                total += part
            for part in parts:
                part.copy_(total)
