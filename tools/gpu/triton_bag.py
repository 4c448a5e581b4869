"""A straightforward embedding operator in Triton, as a baseline: the first version one would write.

One program per (table, bag) sums the bag's rows, four ids at a time. The update sorts all
ids of a step with torch.sort; one program per distinct row sums its gradients and applies
row-wise Adagrad. All tables are of one shape, behind one pointer each."""

import torch
import triton
import triton.language as tl


@triton.jit
def bag_sum(weights, ids, offsets, out, rows, bags, DIM: tl.constexpr, UNROLL: tl.constexpr):
    """weights [T * rows, DIM], ids and offsets feature-major, out [bags, T * DIM] f32."""
    bag = tl.program_id(0).to(tl.int64)
    table = tl.program_id(1).to(tl.int64)
    tables = tl.num_programs(1)
    columns = tl.arange(0, DIM)
    lanes = tl.arange(0, UNROLL)
    begin = tl.load(offsets + table * bags + bag)
    end = tl.load(offsets + table * bags + bag + 1)
    first = weights + table * rows * DIM
    total = tl.zeros((DIM,), tl.float32)
    for position in range(begin, end, UNROLL):
        at = position + lanes
        valid = at < end
        row = tl.load(ids + at, mask=valid, other=0)
        block = tl.load(first + row[:, None] * DIM + columns[None, :], mask=valid[:, None],
                        other=0.0)
        total += tl.sum(block.to(tl.float32), axis=0)
    tl.store(out + bag * (tables * DIM) + table * DIM + columns, total)


@triton.jit
def keys_of_ids(ids, offsets, keys, bag_of, rows, bags, BLOCK: tl.constexpr):
    """For each id its row among the rows of all tables, and its (table, bag)."""
    slot = tl.program_id(0).to(tl.int64)
    begin = tl.load(offsets + slot)
    end = tl.load(offsets + slot + 1)
    table = slot // bags
    for position in range(begin, end, BLOCK):
        at = position + tl.arange(0, BLOCK)
        valid = at < end
        row = tl.load(ids + at, mask=valid, other=0)
        tl.store(keys + at, (table * rows + row).to(tl.int32), mask=valid)
        tl.store(bag_of + at, tl.zeros((BLOCK,), tl.int32) + slot.to(tl.int32), mask=valid)


@triton.jit
def rowwise_adagrad(weights, state, keys, order, bag_of, gradients, count, bags, tables,
                    learning_rate, eps, DIM: tl.constexpr):
    """Programs at the first position of a run of equal keys update that row."""
    position = tl.program_id(0).to(tl.int64)
    key = tl.load(keys + position)
    before = tl.load(keys + tl.maximum(position - 1, 0))
    if (position == 0) | (before != key):
        columns = tl.arange(0, DIM)
        total = tl.zeros((DIM,), tl.float32)
        at = position
        now = key
        while now == key:
            slot = tl.load(bag_of + tl.load(order + at)).to(tl.int64)
            total += tl.load(gradients + (slot % bags) * (tables * DIM) + (slot // bags) * DIM
                             + columns)
            at += 1
            now = tl.load(keys + at, mask=at < count, other=-1)
        row = key.to(tl.int64)
        mean = tl.load(state + row) + tl.sum(total * total) / DIM
        tl.store(state + row, mean)
        old = tl.load(weights + row * DIM + columns).to(tl.float32)
        new = old - learning_rate / (tl.sqrt(mean) + eps) * total
        tl.store(weights + row * DIM + columns, new.to(weights.dtype.element_ty))


class TritonBags:
    """The operator on tables [T * rows, DIM] and one f32 state per row."""

    def __init__(self, weights, state, tables, learning_rate=0.01, eps=1e-8):
        self.weights, self.state, self.tables = weights, state, tables
        self.rows, self.dim = weights.shape[0] // tables, weights.shape[1]
        self.learning_rate, self.eps = learning_rate, eps

    def forward(self, ids, offsets, out):
        """out [bags, T * DIM] f32."""
        bags = out.shape[0]
        bag_sum[(bags, self.tables)](self.weights, ids, offsets, out, self.rows, bags,
                                     DIM=self.dim, UNROLL=4)

    def backward(self, ids, offsets, gradients):
        """Sorts the ids and updates; gradients [bags, T * DIM]."""
        bags, count = gradients.shape[0], ids.numel()
        keys = torch.empty(count, dtype=torch.int32, device=ids.device)
        bag_of = torch.empty(count, dtype=torch.int32, device=ids.device)
        keys_of_ids[(self.tables * bags,)](ids, offsets, keys, bag_of, self.rows, bags, BLOCK=32)
        keys, order = torch.sort(keys, stable=True)
        rowwise_adagrad[(count,)](self.weights, self.state, keys, order, bag_of, gradients, count,
                                  bags, self.tables, self.learning_rate, self.eps, DIM=self.dim)
