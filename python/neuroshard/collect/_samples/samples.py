"""The file of measured exchanges: schema neuroshard.communication_samples.v1.

It is a safetensors file with a column per field; the metadata describe the run.
docs/communication-model.md lists both."""

import json
from dataclasses import dataclass, field, fields

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from neuroshard.collect._errors import CollectError
from neuroshard.collect._samples.link_fit import fit_links
from neuroshard.collect._samples.output import write_beside
from neuroshard.collect._samples.rejection import rejections
from neuroshard.collect._samples.soundness import check_columns, check_topologies

SCHEMA = "neuroshard.communication_samples.v1"
# Metadata that must be equal for all rows of a file.
IDENTITY = ("backend", "device_class", "machine", "torch", "seed", "rule")

DEVICE_COLUMNS = {"bytes_out": np.float64, "bytes_in": np.float64, "dims": np.float64,
                  "skews_ms": np.float64, "times_ms": np.float64, "spreads": np.float32,
                  "lateness_ms": np.float32}
SAMPLE_COLUMNS = {"topology": np.int64, "direction": np.uint8, "batch": np.int64,
                  "runs": np.int64, "draw": np.int64, "repeat_of": np.int64,
                  "held_out": np.uint8, "reference_before_ms": np.float64,
                  "reference_after_ms": np.float64, "time": np.int64}


@dataclass
class Sample:
    """One exchange among D devices; arrays are [D]. `repeat_of` is the row it measures
    again, or -1. `spreads`: (third - first quartile) / median of the runs."""

    topology: int
    direction: int
    batch: int
    runs: int
    draw: int
    repeat_of: int
    held_out: int
    reference_before_ms: float
    reference_after_ms: float
    time: int
    bytes_out: np.ndarray
    bytes_in: np.ndarray
    dims: np.ndarray
    skews_ms: np.ndarray
    times_ms: np.ndarray
    spreads: np.ndarray
    lateness_ms: np.ndarray

    @property
    def devices(self):
        return len(self.times_ms)


@dataclass
class SampleFile:
    """`identity`: IDENTITY -> text. `topologies`: as in a workload's JSON, without the
    links' figures."""

    identity: dict
    topologies: list
    samples: list = field(default_factory=list)

    def topology_index(self, topology):
        if topology not in self.topologies:
            self.topologies.append(topology)
        return self.topologies.index(topology)

    def key(self, sample):
        """A key that no other sample has."""
        return json.dumps(self.topologies[sample.topology]), sample.draw, sample.repeat_of >= 0

    def accepted(self):
        rejected = rejections(self.samples)
        return [sample for sample, no in zip(self.samples, rejected, strict=True) if not no]

    def metadata(self, rejected):
        fitted = fit_links(self.accepted(), self.topologies)
        counts = {"samples": len(self.samples), "rejected": int(sum(rejected)),
                  "repeats": sum(sample.repeat_of >= 0 for sample in self.samples),
                  "held_out": sum(bool(sample.held_out) for sample in self.samples)}
        links = [link.to_json() for link in fitted[0]] if fitted else []
        return {**self.identity, "schema": SCHEMA, "measured": "true",
                "topologies": json.dumps(self.topologies), "links": json.dumps(links),
                "counts": json.dumps(counts)}

    def write(self, path):
        """Writes beside `path` and renames: an interrupted call leaves the earlier file."""
        rejected = rejections(self.samples)
        ends = np.cumsum([0, *(sample.devices for sample in self.samples)])
        tensors = {"sample.first_device": ends.astype(np.int64),
                   "sample.rejected": np.array(rejected, dtype=np.uint8)}
        for name, kind in SAMPLE_COLUMNS.items():
            tensors[f"sample.{name}"] = np.array(
                [getattr(sample, name) for sample in self.samples], dtype=kind)
        for name, kind in DEVICE_COLUMNS.items():
            values = [np.asarray(getattr(sample, name), dtype=kind) for sample in self.samples]
            tensors[f"device.{name}"] = np.concatenate([np.empty(0, dtype=kind), *values])
        write_beside(path, lambda one: save_file(tensors, one, self.metadata(rejected)))


def read(path):
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("schema") != SCHEMA:
                raise CollectError(f"{path}: not a file of measured exchanges: expected schema "
                                   f"{SCHEMA}, got: {metadata.get('schema', 'none')}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        return from_tensors(metadata, tensors)
    except FileNotFoundError:
        raise CollectError(f"{path}: no such file") from None
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, IndexError,
            RecursionError) as error:
        raise CollectError(f"{path}: damaged: {error!r}") from None


def from_tensors(metadata, tensors):
    topologies = json.loads(metadata["topologies"])
    check_topologies(topologies)
    check_columns(tensors, [f"sample.{name}" for name in SAMPLE_COLUMNS],
                  [f"device.{name}" for name in DEVICE_COLUMNS], topologies)
    ends = tensors["sample.first_device"]
    samples = []
    for row, (first, last) in enumerate(zip(ends, ends[1:], strict=False)):
        values = {name: tensors[f"sample.{name}"][row].item() for name in SAMPLE_COLUMNS}
        values |= {name: tensors[f"device.{name}"][first:last] for name in DEVICE_COLUMNS}
        samples.append(Sample(**{item.name: values[item.name] for item in fields(Sample)}))
    identity = {name: metadata[name] for name in IDENTITY}
    return SampleFile(identity, topologies, samples)


def check_same(path, identity, other):
    """Raises if rows of different machines, back ends or settings would be merged."""
    for name in IDENTITY:
        if identity[name] != other[name]:
            raise CollectError(f"{path}: its {name} is '{identity[name]}', but this is "
                               f"'{other[name]}'; measure into another file")
