"""Opens a rank's shards of an artifact on its device, as tensors."""

from __future__ import annotations

import os
import pathlib

import torch

from neuroshard import cuda
from neuroshard._gpu import table_tensors
from neuroshard._gpu.place import require_driver
from neuroshard._manifest import Manifest
from neuroshard.errors import TensorError


class ShardMemory:
    """The shards of `rank`, open on the device `place`. On a GPU torch allocates their memory; the
    emulator allocates its own on the host.

    device: None if the rank owns nothing. tensors: of each shard its weights, and its states in
    the order of the optimizer."""

    def __init__(self, artifact: str | os.PathLike, manifest: Manifest, rank: int,
                 place: torch.device) -> None:
        self.place, self.device, self.tensors = place, None, []
        shards = manifest.shards_of(rank)
        if not shards:
            return
        arrays = [table_tensors.arrays_of(manifest.table(one["table"]), one) for one in shards]
        tensors = None
        if place.type == "cuda":
            tensors = [table_tensors.allocate(group, place) for group in arrays]
        self.device = cuda.Device(
            pathlib.Path(artifact), rank, place.index or 0, seed=None,
            memory=tensors and [table_tensors.as_slot_memory(group) for group in tensors])
        lease = table_tensors.Lease(self.device)
        require_driver(self.device, place)
        for shard, group, slot in zip(shards, arrays, self.device.slots):
            table_tensors.check_sizes(shard["name"], group, slot)
        if tensors is None:
            tensors = [table_tensors.adopt(group, slot, lease)
                       for group, slot in zip(arrays, self.device.slots)]
        self._lease = lease
        self.tensors = [[array.visible(tensor) for array, tensor in zip(group, own)]
                        for group, own in zip(arrays, tensors)]
        wrong = [one for one in self.device.lookups if cuda.ELEMENT_TYPES[one.output_type] != "f32"]
        if wrong:
            raise TensorError("the artifact's GPU kernels write "
                              f"{cuda.ELEMENT_TYPES[wrong[0].output_type]}; partial results must "
                              "be f32: compile it with --gpu-output f32")

    def stream(self) -> int | None:
        """The current CUDA stream; None on the CPU."""
        if self.place.type == "cpu":
            return None
        return torch.cuda.current_stream(self.place).cuda_stream

    def close(self) -> None:
        """Gives the device up; it closes once no tensor on its memory is left."""
        self.tensors, self.device, self._lease = [], None, None
