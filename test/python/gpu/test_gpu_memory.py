"""What the planner says that a step takes on a GPU, beside what the runtime allocates for it.

The emulator stands in for the driver and hands out memory as it is asked for; kernels run on it,
so problems are small. The scratch of the sort is the stand-in's own and left out on both sides:
CUB's is known on a GPU alone (tools/gpu/sections/memory.py)."""

import ctypes
import os
import random

import pytest
import torch

import gpu_memory
import neuroshard as ns
from neuroshard import cuda
from neuroshard.distributed._compile_cache import make_artifact
from support.artifact import EMULATED
from support.model import KERNEL_ID_TYPES

pytestmark = pytest.mark.skipif(bool(gpu_memory.unusable()), reason=gpu_memory.unusable())

COUNT = 12 if os.environ.get("NEUROSHARD_ALL") else 5
SORT_BYTES = 9  # kDeviceSortBytes of lib/Planner/Memory/UpdateMemory.cpp
FACTOR_BYTES = 4  # there or not, for all ids of a device
ROUNDING = 32 << 10  # each array begins at a multiple of 256 bytes
OPTIMIZERS = ("sgd", "adagrad", "rowwise_adagrad", "adam", "lamb", "partial_rowwise_lamb",
              "rowwise_adagrad_with_counter")


def problem_of(number):
    """Tables of one dim, so that the widest row is that of every shard."""
    chooser = random.Random(f"memory {number}")
    dim, batch = chooser.choice((16, 64, 128, 36)), 2 * chooser.choice((128, 300))
    tables, features = [], []
    for index in range(chooser.randint(2, 4)):
        tables.append(ns.Table(f"t{index}", rows=chooser.choice((150, 900, 4000)), dim=dim,
                               optimizer=OPTIMIZERS[(index + number) % len(OPTIMIZERS)],
                               type=("f32", "bf16")[number % 2]))
        for copy in range(chooser.randint(1, 2)):
            features.append(ns.Feature(f"f{index}_{copy}", f"t{index}", mean_pooling=float(
                chooser.choice((1, 7, 40)))))
    rules = [ns.TableRule(table=table.name, allowed_kinds=[kind]) for table, kind in zip(
        tables, chooser.sample(("row_wise", "column_wise", "table_wise"), 2))]
    return ns.ShardingProblem(tables=tables, features=features, batch=batch,
                              topology="2xH200@20GiB", constraints=ns.Constraints(tables=rules))


def run_step(device, problem):
    """A training step with exactly the number of ids that the planner assumes; returns that
    number."""
    tables = {table.name: table for table in problem.tables}
    pooling = {feature.name: int(feature.mean_pooling) for feature in problem.features}
    batch, parts, keep, positions = problem.batch.global_size, [], [], 0
    for number, lookup in enumerate(device.lookups):
        slot = device.slots[lookup.slot]
        share = slot.rows / tables[slot.table.decode()].rows
        count = round(batch * pooling[lookup.feature.decode()] * share)
        ids = torch.randint(slot.row_begin, slot.row_end, (count,),
                            dtype=KERNEL_ID_TYPES[lookup.id_bytes])
        offsets = torch.arange(batch + 1) * count // batch
        out = torch.empty((batch, slot.columns + -slot.columns % 4))
        parts.append(cuda.part(number, ids, offsets, out, out.shape[1], bags=batch))
        keep.append((ids, offsets, out))
        positions += count
    device.forward(cuda.parts_of(parts), cuda.TRAINING)
    device.set_step(0.01, 1)
    device.backward([(out, out.shape[1]) for _, _, out in keep])
    if device.info.two_phase:
        device.backward_apply()
    device.check()
    return positions


def scratch_bytes(positions):
    size = ctypes.c_size_t(0)
    sort = gpu_memory.emulator().nsg_sort
    sort.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p,
                     ctypes.c_int32, ctypes.c_int32, *[ctypes.c_void_p] * 6, ctypes.c_int64,
                     ctypes.c_void_p]
    assert sort(None, ctypes.byref(size), None, 4, 32, *[None] * 6, positions, None) == 0
    return size.value


def predicted_update(memory, problem):
    """Of the update alone: the backward phase holds it and gradients of a device's own samples
    beyond what the forward phase has."""
    dims = {table.name: table.dim for table in problem.tables}
    local = problem.batch.global_size // 2
    own = sum(local * dims[feature.table] * 4 for feature in problem.features)
    return memory.backward_bytes - memory.forward_bytes - own


@pytest.mark.parametrize("number", range(COUNT))
def test_predicted_terms_are_what_the_runtime_takes(number):
    problem = problem_of(number)
    result = ns.plan(problem, seed=number)
    artifact = make_artifact(result.plan, problem, EMULATED)
    for rank, predicted in enumerate(result.memory.devices):
        with cuda.Device(artifact, rank, seed=None) as device:
            if not device.lookups:
                continue
            positions = run_step(device, problem)
            taken = device.memory
            assert taken.weights == predicted.weights_bytes
            assert taken.states == predicted.optimizer_state_bytes
            update = taken.step - scratch_bytes(positions) + taken.arrays
            expected = predicted_update(predicted, problem) - SORT_BYTES * positions
            assert update <= expected + ROUNDING, f"device {rank}: {positions} ids"
            assert expected <= 1.1 * update + FACTOR_BYTES * positions + ROUNDING
