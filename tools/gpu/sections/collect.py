"""Measures the compute of random shard sets, for a cost model of this GPU.

Writes the file that neuroshard-train reads (docs/cost-models.md): the list of sets made by
`neuroshard-collect sets`, with the times filled in. Forward is the lookup, by graph replay;
backward what a training step takes more: sort, sums, optimizer. The reference around each
sample is a device-to-device copy of 256 MiB."""

import json
import time

import numpy as np
import torch
from safetensors.numpy import save_file

import timing
from case_checks import tensor_at
from neuroshard import cuda
from records import Records
from report import MACHINES
from sample_sets import ReuseIds, SetList, bag_lengths, tables_of
from support.model import DTYPES, KERNEL_ID_TYPES
from timing_math import median

INPUT_SETS = 3
REFERENCE_BYTES = 256 << 20
BUDGET_S = 0.06
WRITE_EVERY = 10
OUTPUT = "compute_samples.safetensors"


def run(context):
    sets = SetList(context.artifacts / "collect" / "sets.safetensors")
    reference = Reference(context.machine)
    for index in range(len(sets)):
        context.attempt(f"set{index}", lambda index=index: measure(context, sets, index, reference))
        if index % WRITE_EVERY == 0 or index == len(sets) - 1:
            write_from(context.artifacts, context.work, context.out)


class Reference:
    def __init__(self, machine):
        self.machine = machine
        size = REFERENCE_BYTES // (4096 if machine.dry else 1)
        self.source = torch.ones(size, dtype=torch.uint8, device=machine.place)
        self.target = torch.empty_like(self.source)

    def measure_ms(self):
        return median([self.machine.time_ms(lambda: self.target.copy_(self.source), 1)
                       for _ in range(5)])


def measure(context, sets, index, reference):
    machine, before = context.machine, reference.measure_ms()
    try:
        with cuda.Device(context.artifacts / "collect" / f"set{index}", 0,
                         seed=None) as device:
            fill_weights(device, machine)
            batches = [LocalBatch(device, sets, index, machine, seed)
                       for seed in range(INPUT_SETS)]
            device.set_step(0.01, 1, machine.stream())
            times = time_set(machine, batches)
            device.check(machine.stream())
    except (cuda.OutOfMemory, torch.OutOfMemoryError) as error:
        return {"skipped": str(error)[:200]}
    return {"reference_ms": [before, reference.measure_ms()], "time": int(time.time()),
            "samples_ms": times}


def fill_weights(device, machine):
    """Random weights, made on the GPU: zeros may take another time."""
    for slot in device.slots:
        words = tensor_at(slot.weights, slot.weight_bytes // 4, "i4", machine.place)
        dtype = DTYPES[cuda.ELEMENT_TYPES[slot.element_type]]
        words.view(dtype).uniform_(-0.01, 0.01)


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
        return ids.to(KERNEL_ID_TYPES[id_bytes]), offsets, weights

    def forward(self):
        self.device.forward(self.parts, cuda.INFERENCE, self.machine.stream())

    def step(self):
        stream = self.machine.stream()
        self.device.forward(self.parts, cuda.TRAINING_JOINED, stream)
        self.device.backward(self.gradients, stream)
        if self.device.info.two_phase:
            self.device.backward_apply(stream)


def time_set(machine, batches):
    calls = {"forward": machine.capture([batch.forward for batch in batches]),
             "step": machine.capture([batch.step for batch in batches])}
    samples, errors = timing.time_in_turn(machine, calls, len(batches), BUDGET_S)
    if errors:
        raise RuntimeError(f"{errors}")
    return samples


def write_from(artifacts, work, out):
    """Writes the sets that were measured, with their times, from the records in `work`; the
    others are left out. Needs no GPU. True if there are some."""
    machines, listed = work / MACHINES, artifacts / "collect" / "sets.safetensors"
    if not machines.exists() or not listed.exists():
        return False
    facts, sets = json.loads(machines.read_text())[-1], SetList(listed)
    records = Records(work / "collect.jsonl").items
    times = [(index, records[f"set{index}"]) for index in range(len(sets))
             if "samples_ms" in records.get(f"set{index}", {})]
    if not times or not facts["measured"]:
        return False
    part = out / f"{OUTPUT}.part"
    save_file(columns_of(sets, times), part, metadata(sets, facts))
    part.replace(out / OUTPUT)
    return True


def metadata(sets, facts):
    return {**sets.metadata, "measured": "true", "device_class": device_class(facts["device"]),
            "machine": facts["device"], "threads": "1", "target_cpu": "",
            "created": facts["date"], "uuid": facts["uuid"], "driver": facts["driver"],
            "torch": facts["torch"],
            "reference": f"device-to-device copy of {REFERENCE_BYTES >> 20} MiB"}


def device_class(device):
    """"NVIDIA H100 80GB HBM3" is H100: times of one GPU must not pass for those of another."""
    return next((word for word in device.split() if word != "NVIDIA"), device)


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
