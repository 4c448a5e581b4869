"""The measured contenders: our kernels, and others on the same tables and inputs.

A contender has forward(set), results(set) -> a tensor [bags, dim] of each table after it, and
step(set), which run on the current stream; it says whether its step can be captured into a CUDA
graph, and whether its step is row-wise Adagrad on the tables that all share."""

import importlib.util

import torch

from neuroshard import cuda
from points import TABLES

LEARNING_RATE = 0.01


class Ours:
    """The compiled artifact, on memory that torch owns."""

    name = "neuroshard"
    graph_step = shares_tables = True

    def __init__(self, artifact, machine, tables, sets, bags, fixed=0):
        """`tables`: (weights, state) of each slot. fixed: the ids of every bag, then offsets
        are not read."""
        self.machine = machine
        self.parts, self.gradients = {}, {}
        self.device = cuda.Device(artifact, 0, seed=None,
                                  memory=[(weights, state, None) for weights, state in tables])
        try:
            self.dims = [lookup.dim for lookup in self.device.lookups]
            self.device.set_step(LEARNING_RATE, 1, machine.stream())
            for given in sets:
                self.add(given, bags, fixed)
        except BaseException:
            self.device.close()
            raise

    def add(self, given, bags, fixed):
        stride = given.out.shape[1]
        outputs, gradients, column = [], [], 0
        for dim in self.dims:
            outputs.append((given.out.data_ptr() + 4 * column, stride))
            if given.gradients is not None:
                gradients.append((given.gradients.data_ptr() + 4 * column, stride))
            column += dim
        begins = given.offsets[::bags].tolist()
        jagged = cuda.Input(given.ids, None if fixed else given.offsets, bags, fixed,
                            feature_begin=begins)
        self.parts[id(given)] = self.device.make_parts([jagged], outputs)
        self.gradients[id(given)] = gradients

    def forward(self, given):
        self.device.forward(self.parts[id(given)], cuda.INFERENCE, self.machine.stream())

    def results(self, given):
        return given.out.split(self.dims, 1)

    def sort(self, given):
        """The forward with the sort of the update beside it, joined."""
        self.device.forward(self.parts[id(given)], cuda.TRAINING_JOINED, self.machine.stream())

    def backward(self, given):
        self.device.backward(self.gradients[id(given)], self.machine.stream())

    def step(self, given):
        self.sort(given)
        self.backward(given)

    def check(self):
        """Raises cuda.BadId if a kernel met an id out of range."""
        self.device.check(self.machine.stream())

    def close(self):
        self.machine.synchronize()
        self.device.close()


class FixedPooling(Ours):
    """The same for bags of one length, without offsets."""

    name = "neuroshard, fixed pooling"


class TorchBags:
    """torch.nn.EmbeddingBag per table; sparse gradients and SGD, which is less work than the
    row-wise Adagrad of the others."""

    name = "torch.nn.EmbeddingBag"
    graph_step = shares_tables = False  # its sparse gradients make the host wait

    def __init__(self, tables, sets, bags):
        self.bags = []
        for table in tables:
            bag = torch.nn.EmbeddingBag.from_pretrained(
                table, freeze=False, mode="sum", sparse=True, include_last_offset=True)
            self.bags.append(bag)
        self.optimizer = torch.optim.SGD([bag.weight for bag in self.bags], lr=LEARNING_RATE)
        self.inputs = {id(given): split_by_table(given, bags, tables) for given in sets}

    def run(self, given):
        return [bag(ids, offsets) for bag, (ids, offsets, _)
                in zip(self.bags, self.inputs[id(given)])]

    def forward(self, given):
        with torch.no_grad():
            self.run(given)

    def results(self, given):
        with torch.no_grad():
            return self.run(given)

    def step(self, given):
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(self.run(given),
                                [gradient for _, _, gradient in self.inputs[id(given)]])
        self.optimizer.step()

    def close(self):
        self.optimizer.zero_grad(set_to_none=True)


def split_by_table(given, bags, tables):
    """(ids, offsets from 0, gradient or None) of each table."""
    offsets, bounds = given.offsets, given.offsets[::bags].tolist()
    gradients = ([None] * len(tables) if given.gradients is None else
                 [part.to(table.dtype).contiguous() for part, table
                  in zip(given.gradients.split([table.shape[1] for table in tables], 1), tables)])
    return [(given.ids[bounds[t]:bounds[t + 1]],
             offsets[t * bags:(t + 1) * bags + 1] - bounds[t], gradients[t])
            for t in range(len(tables))]


class TritonContender:
    """tools/gpu/triton_bag.py."""

    name = "Triton"
    graph_step = shares_tables = True

    def __init__(self, weights, state):
        from triton_bag import TritonBags
        self.operator = TritonBags(weights, state, TABLES, LEARNING_RATE)

    def forward(self, given):
        self.operator.forward(given.ids, given.offsets, given.out)

    def results(self, given):
        return given.out.chunk(TABLES, 1)

    def step(self, given):
        self.forward(given)
        self.operator.backward(given.ids, given.offsets, given.gradients)

    def close(self):
        pass


class Fbgemm:
    """FBGEMM's table-batched embedding with exact row-wise Adagrad, on tables of its own with
    the weights of the others."""

    name = "FBGEMM"
    graph_step = shares_tables = False

    def __init__(self, point, weights, dry):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen)
        precision = {"f32": SparseType.FP32, "f16": SparseType.FP16, "bf16": SparseType.BF16}
        where = ((EmbeddingLocation.HOST, ComputeDevice.CPU) if dry else
                 (EmbeddingLocation.DEVICE, ComputeDevice.CUDA))
        self.operator = SplitTableBatchedEmbeddingBagsCodegen(
            [(point.rows, point.dim, *where)] * TABLES,
            optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD, learning_rate=LEARNING_RATE,
            weights_precision=precision[point.dtype], output_dtype=SparseType.FP32)
        for own, other in zip(self.operator.split_embedding_weights(), weights.chunk(TABLES)):
            own.copy_(other)

    def forward(self, given):
        with torch.no_grad():
            self.operator(given.ids, given.offsets)

    def results(self, given):
        with torch.no_grad():
            return self.operator(given.ids, given.offsets).chunk(TABLES, 1)

    def step(self, given):
        self.operator(given.ids, given.offsets).backward(given.gradients)

    def close(self):
        pass


def importable(package):
    return importlib.util.find_spec(package) is not None
