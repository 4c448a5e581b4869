"""Runs steps of compiled models on the emulator, with every array in guarded memory, and
compares results, tables and states with gpu_reference bit by bit."""

from dataclasses import dataclass

import numpy
import torch

import gpu_reference as reference
from gpu_device import assert_same, assert_within
from gpu_memory import Memory, numbers_at
from neuroshard import cuda
from support.model import KERNEL_ID_TYPES

UNTOUCHED = 77.0  # exact in every element type


def padded(columns, dtype):
    """Columns of a row padded to 16 bytes."""
    step = 16 // dtype.itemsize
    return -(-columns // step) * step


@dataclass
class Work:
    """One lookup on one slot in one step."""

    number: int
    slot: int
    pooling: str
    ids: numpy.ndarray  # of the slot's rows
    offsets: numpy.ndarray
    weights: numpy.ndarray | None
    out: object = None
    view: torch.Tensor | None = None
    stride: int = 0
    gradient: object = None
    gradient_view: torch.Tensor | None = None
    weight_gradient: object = None

    @property
    def items(self):
        return len(self.ids) if self.pooling == "unpooled" else len(self.offsets) - 1


class Step:
    """A batch on one device. `batches` has a Jagged per input of the model."""

    def __init__(self, opened, batches, memory, fixed=None):
        self.opened, self.batches, self.memory, self.fixed = opened, batches, memory, fixed
        self.known = True
        self.works = [self.make_work(number) for number in range(len(opened.lookups))]

    def pooling_of(self, number):
        """The pooling in the model, compared with that in the runtime."""
        facts = self.opened.lookups[number]
        input_ = self.opened.model.inputs[facts.exchange]
        table = self.opened.slots[facts.slot].table.decode()
        # Ids are packed as i32 for several devices.
        assert facts.id_bytes == 4 or input_.id_type == "i64" and not self.opened.is_one_of_many
        if not facts.pooled:
            return "unpooled"
        poolings = {lookup.pooling for lookup in input_.lookups if lookup.table == table and
                    lookup.feature == input_.features[facts.feature_index]}
        # A mean over shards of rows is divided when these are joined.
        if facts.mean:
            assert "mean" in poolings and table not in self.opened.splits_rows
        else:
            assert "sum" in poolings or table in self.opened.splits_rows
        return "mean" if facts.mean else "sum"

    def make_work(self, number):
        """The ids of a lookup that lie in its slot."""
        facts = self.opened.lookups[number]
        slot = self.opened.slots[facts.slot]
        ids, offsets, weights = self.batches[facts.exchange].feature(facts.feature_index)
        own = ids.long() - slot.row_begin
        keep = torch.ones(len(ids), dtype=torch.bool)
        if slot.table.decode() in self.opened.splits_rows:
            keep = (own >= 0) & (own < slot.rows)
        before = torch.cat([torch.zeros(1, dtype=torch.int64), keep.long().cumsum(0)])
        return Work(number, facts.slot, self.pooling_of(number), own[keep].numpy(),
                    before[offsets].numpy(), weights[keep].numpy() if facts.weighted else None)

    # Forward

    def place_results(self):
        for work in self.works:
            columns = self.opened.slots[work.slot].columns
            work.stride = padded(columns, self.opened.output) + padded(1, self.opened.output)
            work.out, work.view = self.memory.rows(work.items, columns, work.stride,
                                                   self.opened.output, UNTOUCHED)

    def parts(self, known=True):
        """All lookups; whole inputs go through make_parts, the ids of shards do not."""
        self.place_results()
        if self.opened.splits_rows:
            return cuda.parts_of(self.part_of(work) for work in self.works)
        self.known = known
        inputs = [self.native_input(number, input_, batch, known) for number, (input_, batch)
                  in enumerate(zip(self.opened.model.inputs, self.batches))]
        return self.opened.device.make_parts(inputs, [(w.out, w.stride) for w in self.works])

    def native_input(self, number, input_, batch, known):
        weights = None if batch.weights is None else self.memory.copy(batch.weights)
        id_bytes = next((one.id_bytes for one in self.opened.lookups if one.exchange == number), 8)
        ids = self.memory.copy(batch.ids.to(KERNEL_ID_TYPES[id_bytes]))
        begin = [int(batch.offsets[feature * batch.batch]) for feature in range(batch.features)]
        known |= any(lookup.pooling == "unpooled" for lookup in input_.lookups)
        return cuda.Input(
            ids, None if self.fixed is not None else self.memory.copy(batch.offsets),
            batch=batch.batch, pooling=self.fixed or 0, sample_weights=weights,
            feature_begin=[*begin, len(batch.ids)] if known and self.fixed is None else None)

    def part_of(self, work):
        facts = self.opened.lookups[work.number]
        slot = self.opened.slots[work.slot]
        ids = self.memory.copy(torch.from_numpy(work.ids + slot.row_begin)
                               .to(KERNEL_ID_TYPES[facts.id_bytes]))
        offsets = self.memory.copy(torch.from_numpy(work.offsets)) if facts.pooled else None
        weights = None if work.weights is None else self.memory.copy(torch.from_numpy(work.weights))
        return cuda.part(work.number, ids, offsets, work.out, work.stride, bags=work.items,
                         sample_weights=weights)

    def forward(self, training=cuda.INFERENCE, known=True):
        parts = self.parts(known)
        self.opened.device.forward(parts, training)
        self.opened.device.check()

    def expected_result(self, work):
        table = reference.as_f32(self.opened.expected[work.slot][0])
        return reference.rounded(reference.lookup(table, work.ids, work.offsets, work.weights,
                                                  work.pooling), self.opened.output)

    def name(self, work):
        facts = self.opened.lookups[work.number]
        return (f"lookup {work.number}: {work.pooling}{' weighted' if facts.weighted else ''} of "
                f"{self.opened.table_of(work.slot)}")

    def check_results(self):
        for work in self.works:
            assert_same(work.view, self.expected_result(work), self.name(work))
            if work.items > 1:
                columns = self.opened.slots[work.slot].columns
                between = work.out.as_strided((work.items - 1, work.stride - columns),
                                              (work.stride, 1), columns)
                assert (between == UNTOUCHED).all(), f"{self.name(work)}: written beside the rows"

    # Backward

    def make_gradients(self, generator, integers):
        for work in self.works:
            columns = self.opened.slots[work.slot].columns
            # Rows of whole 16 bytes stay aligned; others begin anywhere.
            stride = columns + (3 if columns % 4 else 4)
            work.gradient, work.gradient_view = self.memory.rows(
                work.items, columns, stride, torch.float32, UNTOUCHED)
            shape = work.gradient_view.shape
            values = (torch.randint(-2, 3, shape, generator=generator).float() if integers
                      else torch.randn(shape, generator=generator))
            work.gradient_view.copy_(values)
            if work.weights is not None and self.opened.is_trained(work.slot):
                work.weight_gradient = self.memory.empty(self.ids_of_input(work), torch.float32)

    def ids_of_input(self, work):
        """Sample weights have their gradients where their part has them."""
        if self.opened.splits_rows:
            return len(work.ids)
        return len(self.batches[self.opened.lookups[work.number].exchange].ids)

    def backward(self):
        self.opened.device.backward(
            [(work.gradient, work.gradient_view.stride(0) if work.items else 4,
              work.weight_gradient) for work in self.works])

    def check_weight_gradients(self):
        """Compares gradients of sample weights, each a sum over columns."""
        for work in self.works:
            if work.weight_gradient is None or not len(work.ids):
                continue
            table = reference.as_f32(self.opened.expected[work.slot][0])
            bag = numpy.repeat(numpy.arange(work.items), numpy.diff(work.offsets))
            expected = reference.column_sums(
                table[reference.safe(work.ids, table)] * work.gradient_view.numpy()[bag])
            if work.pooling == "mean":
                expected = expected.divided_by(numpy.diff(work.offsets)[bag])
            begin = self.span_of(work)
            got = work.weight_gradient[begin:begin + len(work.ids)]
            assert_within(got, expected, f"weight gradient of {self.name(work)}")

    def span_of(self, work):
        if self.opened.splits_rows:
            return 0
        facts = self.opened.lookups[work.number]
        return self.batches[facts.exchange].span(facts.feature_index)[0]

    def slot_gradients(self):
        """Per slot (summed gradient, rows that have one), None if it is not trained."""
        gradients = [None] * len(self.opened.slots)
        for slot in self.opened.trained_slots():
            facts = self.opened.slots[slot]
            parts = [reference.Terms(work.ids, reference.spread(
                work.ids, work.offsets, work.weights, work.pooling, work.gradient_view.numpy()))
                for work in self.works if work.slot == slot]
            gradients[slot] = reference.table_gradient(parts, facts.rows, facts.columns,
                                                       self.opened.chunk)
        return gradients

    def check_update(self, learning_rate, number, norms=None, slots=None):
        """All tables and states are one step on. What may differ in its last bits, after sums
        over columns, is what the next step is expected to begin with. `norms`: of two-phase
        slots, for their rows with gradients, over all columns of the table. `slots`: only these."""
        for slot, gradient in enumerate(self.slot_gradients()):
            if slots is not None and slot not in slots:
                continue
            weights, states = self.opened.expected[slot]
            if gradient is None:
                self.check_slot(slot, numpy.zeros(len(weights), bool), [])
                continue
            total, touched = gradient
            table = self.opened.table_of(slot)
            norm = (norms or {}).get(slot)
            new = reference.update(
                table.optimizer, weights[torch.from_numpy(touched)], [s[touched] for s in states],
                total[touched], reference.step_size(table.optimizer, learning_rate, number),
                norm, table.dim if norm else None)
            self.check_slot(slot, touched, new)

    def check_slot(self, slot, touched, new):
        """Touched rows are `new`; all others are unchanged."""
        old = self.opened.expected[slot]
        got = self.opened.read(slot)
        rows = torch.from_numpy(touched)
        arrays = [(got[0], old[0]), *((now, torch.from_numpy(state))
                                      for now, state in zip(got[1], old[1]))]
        for index, (now, before) in enumerate(arrays):
            name = "weights" if index == 0 else f"state {index - 1}"
            what = f"{name} of slot {slot}, {self.opened.table_of(slot)}"
            assert_same(now[~rows], before[~rows], f"rows without ids, {what}")
            if new:
                assert_within(now[rows], new[index], what)
        self.opened.expected[slot] = got[0], [state.numpy() for state in got[1]]


def train_step(opened, batches, generator, number, *, integers, fixed=None, known=True,
               learning_rate=0.125):
    """One compared training step of a device whose slots need one phase."""
    with Memory() as memory:
        step = Step(opened, batches, memory, fixed)
        step.make_gradients(generator, integers)
        step.forward(cuda.TRAINING, known)
        step.check_results()
        opened.device.set_step(learning_rate, number)
        step.backward()
        opened.device.check()
        step.check_weight_gradients()
        step.check_update(learning_rate, number)


def norms_of(opened, slot):
    """The norms of a two-phase slot, a row of them for each distinct row, to be changed in place."""
    norms = opened.device.norms(slot)
    begin, end = numbers_at(norms.run_range, 2, numpy.int32)
    assert 0 <= end - begin <= norms.capacity
    return numbers_at(norms.norms, int(end - begin) * norms.per_row,
                      numpy.float32).reshape(-1, norms.per_row)
