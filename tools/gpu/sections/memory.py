"""Compares the planner's prediction of a device's memory with the memory of a training step.

One GPU plays one device of a plan. Weights, state, sorting and everything else of a step that
the runtime allocates is counted by itself; what the exchange between the devices holds (ids in
the copies that the input pipeline keeps, results and gradients sent and received) is allocated
here through torch, in the sizes of the step. Reserves are not predicted of a step and left
out. Ids are uniform."""

import torch

from neuroshard import cuda
from support.model import KERNEL_ID_TYPES

NOT_STEP = ("communicator_bytes", "dense_reserve_bytes", "fragmentation_reserve_bytes")


def run(context):
    for described in context.catalogue("memory"):
        for rank, predicted in described["predicted"].items():
            context.attempt(f"{described['name']}_device{rank}", lambda: measure(
                context, described, int(rank), predicted))


def predicted_bytes(predicted):
    return predicted["peak_bytes"] - sum(predicted[term] for term in NOT_STEP)


def measure(context, described, rank, predicted):
    machine, expected = context.machine, predicted_bytes(predicted)
    free = machine.free_bytes()
    if not machine.dry and expected + machine.spare_bytes() > free:
        return {"skipped": f"needs {expected / 2**30:.1f} GiB, {free / 2**30:.1f} are free"}
    before = machine.reset_peak()
    with cuda.Device(context.artifacts / "memory" / described["name"], rank,
                     seed=None) as device:
        step = Step(described, device, machine)
        step.forward()
        step.backward()
        device.check(machine.stream())
        ours, torchs = device.memory, machine.peak_bytes() - before
        return {"predicted": predicted, "predicted_bytes": expected,
                "runtime_bytes": {name: getattr(ours, name) for name, _ in ours._fields_},
                "torch_bytes": torchs, "measured_bytes": ours.total + torchs,
                "driver_bytes": free - machine.free_bytes()}


class Step:
    """The buffers and calls of one training step of a device."""

    def __init__(self, described, device, machine):
        self.described, self.device, self.machine = described, device, machine
        self.batch = described["batch"]
        self.local = -(-self.batch // described["devices"])
        self.pooling = {name: max(1, round(value))
                        for name, value in described["pooling"].items()}
        self.input_copies = [self.make_inputs() for _ in range(described["input_copies"])]
        self.ids = self.input_copies[0]

    def empty(self, *shape, dtype=torch.float32):
        return torch.empty(shape, dtype=dtype, device=self.machine.place)

    def make_inputs(self):
        """Ids that this device receives, and those of its own part of the batch."""
        received = []
        for lookup in self.device.lookups:
            slot = self.device.slots[lookup.slot]
            share = slot.rows / self.described["rows"][slot.table.decode()]
            count = round(self.batch * self.pooling[lookup.feature.decode()] * share)
            ids = torch.randint(slot.row_begin, slot.row_end, (count,), device=self.machine.place,
                                dtype=KERNEL_ID_TYPES[lookup.id_bytes])
            bags = torch.arange(self.batch + 1, device=self.machine.place)
            received.append((ids, bags * count // self.batch))
        own = [self.empty(self.local * (pooling + 1), dtype=torch.int64)
               for pooling in self.pooling.values()]
        return received, own

    def columns(self):
        return [self.device.slots[lookup.slot].columns for lookup in self.device.lookups]

    def forward(self):
        received, _ = self.ids
        results = [self.empty(self.batch, width) for width in self.columns()]
        self.parts = cuda.parts_of([
            cuda.part(number, ids, offsets, out, out.shape[1], bags=self.batch)
            for number, ((ids, offsets), out) in enumerate(zip(received, results))])
        self.device.forward(self.parts, cuda.TRAINING, self.machine.stream())
        self.joined = self.empty(self.local, 128 * len(self.pooling))
        self.machine.synchronize()

    def backward(self):
        """Frees the results and allocates their gradients."""
        joined_gradient = torch.zeros_like(self.joined)
        gradients = [torch.zeros((self.batch, width), device=self.machine.place)
                     for width in self.columns()]
        self.device.set_step(0.01, 1, self.machine.stream())
        self.device.backward([(gradient, gradient.shape[1]) for gradient in gradients],
                             self.machine.stream())
        if self.device.info.two_phase:
            self.device.backward_apply(self.machine.stream())
        self.machine.synchronize()
        del joined_gradient
