"""Measures the compute of random shard sets, for a cost model of this GPU.

Writes the file that neuroshard-train reads (docs/cost-models.md): the list of sets made by
`neuroshard-collect sets`, with the times filled in. Forward is the lookup, by graph replay;
backward what a training step takes more: sort, sums, optimizer. The reference around each
sample is a device-to-device copy of 256 MiB."""

import time

import numpy as np
import torch
from safetensors.numpy import save_file

import timing
from machine import Machine
from neuroshard import cuda
from sample_sets import ReuseIds, SetList, bag_lengths, tables_of
from support.model import ID_TYPES
from timing_math import median

INPUT_SETS = 3
REFERENCE_BYTES = 256 << 20
BUDGET_S = 0.06
OUTPUT = "compute_samples.safetensors"


def run(context):
    machine = Machine(context.dry)
    records = context.records("collect")
    sets = SetList(context.artifacts / "collect" / "sets.safetensors")
    reference = Reference(machine)
    try:
        for index in range(len(sets)):
            if f"set{index}" not in records:
                records.add(f"set{index}", **measure(context, machine, sets, index, reference))
    finally:
        # Also when the time limit has come: what is measured counts.
        if not context.dry:
            write(sets, records, machine, context.out / OUTPUT)


class Reference:
    def __init__(self, machine):
        self.machine = machine
        if not machine.dry:
            self.source = torch.zeros(REFERENCE_BYTES, dtype=torch.uint8, device=machine.place)
            self.target = torch.empty_like(self.source)

    def measure_ms(self):
        if self.machine.dry:
            return 0.0
        return median([timing.time_once(lambda: self.target.copy_(self.source), 1)
                       for _ in range(5)])


def measure(context, machine, sets, index, reference):
    before = reference.measure_ms()
    try:
        with cuda.Device(context.artifacts / "collect" / f"set{index}", 0, seed=0) as device:
            batches = [LocalBatch(device, sets, index, machine, seed)
                       for seed in range(INPUT_SETS)]
            device.set_step(0.01, 1, machine.stream())
            times = time_set(device, batches, machine)
            device.check(machine.stream())
    except (cuda.OutOfMemory, torch.OutOfMemoryError) as error:
        return {"skipped": str(error)[:200]}
    return {"reference_ms": [before, reference.measure_ms()], "time": int(time.time()), **times}


class LocalBatch:
    """Inputs, results and gradients of one step of a set."""

    def __init__(self, device, sets, index, machine, seed):
        self.device, self.machine = device, machine
        generator = torch.Generator(machine.place).manual_seed(seed)
        batch = sets.batch(index)
        tables = {group.name: group for group in tables_of(sets.shards(index))}
        features, parts, self.gradients, self.keep = {}, [], [], []
        for number, lookup in enumerate(device.lookups):
            name, slot = lookup.feature.decode(), device.slots[lookup.slot]
            if name not in features:
                group = tables[slot.table.decode()]
                features[name] = self.draw(sets, group.table, batch, generator, seed + number,
                                           lookup.id_bytes)
            ids, offsets, weights = features[name]
            items = batch if lookup.pooled else len(ids)
            width = slot.columns + -slot.columns % 4
            out = torch.empty((items, width), device=machine.place)
            gradient = torch.full((items, width), 1e-3, device=machine.place)
            parts.append(cuda.part(number, ids, offsets if lookup.pooled else None, out, width,
                                   bags=batch, sample_weights=weights if lookup.weighted else None))
            self.gradients.append((gradient, width))
            self.keep.append(out)
        self.keep.append(features)
        self.parts = cuda.parts_of(parts)

    def draw(self, sets, facts, batch, generator, seed, id_bytes):
        place = self.machine.place
        lengths = bag_lengths(facts, batch, generator, place)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64, device=place), lengths.cumsum(0)])
        table = facts["table"]
        measured = (facts["lookups"] / facts["features"] / batch
                    * float(sets.columns["pool.batch"][table]))
        ids = ReuseIds(sets.columns["pool.reuse"][table], measured, facts["rows"], place,
                       seed).draw(int(offsets[-1]))
        weights = torch.full((len(ids),), 0.5, device=place)
        return ids.to(ID_TYPES["i32" if id_bytes == 4 else "i64"]), offsets, weights

    def forward(self):
        self.device.forward(self.parts, cuda.INFERENCE, self.machine.stream())

    def step(self):
        stream = self.machine.stream()
        self.device.forward(self.parts, cuda.TRAINING_JOINED, stream)
        self.device.backward(self.gradients, stream)
        if self.device.info.two_phase:
            self.device.backward_apply(stream)


def time_set(device, batches, machine):
    if machine.dry:
        batches[0].forward()
        batches[0].step()
        return {}
    calls = {"forward": timing.capture([batch.forward for batch in batches]),
             "step": timing.capture([batch.step for batch in batches])}
    return {"samples_ms": timing.time_in_turn(calls, len(batches), BUDGET_S)}


def write(sets, records, machine, path):
    """The sets that were measured, with their times; the others are left out."""
    times = [(index, records.items[f"set{index}"]) for index in range(len(sets))
             if "samples_ms" in records.items.get(f"set{index}", {})]
    if times:
        save_file(columns_of(sets, times), path, metadata(sets, machine))


def metadata(sets, machine):
    facts = machine.facts()
    return {**sets.metadata, "measured": "true", "machine": facts["device"], "threads": "1",
            "target_cpu": "", "created": facts["date"], "uuid": facts["uuid"],
            "driver": facts["driver"], "torch": facts["torch"],
            "reference": f"device-to-device copy of {REFERENCE_BYTES >> 20} MiB"}


def columns_of(sets, times):
    """All columns of the listed sets; times: (index, record) pairs."""
    kept = [index for index, _ in times]
    first = sets.columns["sample.first_shard"]
    shards = np.concatenate([np.arange(first[index], first[index + 1]) for index in kept])
    columns = {}
    for name, column in sets.columns.items():
        if name.startswith("shard."):
            columns[name] = column[shards]
        elif name.startswith("sample.") and name != "sample.first_shard":
            columns[name] = column[kept].copy()
        else:
            columns[name] = column
    sizes = [int(first[index + 1] - first[index]) for index in kept]
    columns["sample.first_shard"] = np.cumsum([0, *sizes]).astype(first.dtype)
    for row, (_, record) in enumerate(times):
        fill(columns, row, record)
    return {name: np.ascontiguousarray(column) for name, column in columns.items()}


def fill(columns, row, record):
    forward, step = (np.array(record["samples_ms"][name]) for name in ("forward", "step"))
    low, middle, high = np.percentile(step, [25, 50, 75])
    values = {"forward_ms": np.median(forward), "backward_ms": middle - np.median(forward),
              "spread": (high - low) / middle, "time": record["time"],
              "reference_before_ms": record["reference_ms"][0],
              "reference_after_ms": record["reference_ms"][1]}
    for name, value in values.items():
        columns[f"sample.{name}"][row] = value
