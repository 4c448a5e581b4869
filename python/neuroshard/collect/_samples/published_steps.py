"""Whole training steps on GPUs that others have published, and what ours would take there.

A step is predicted as

    fixed + table_ms x tables of a device + kernels x ours + exchanges x ours + dense / efficiency

where "ours" is the embeddings' part of a step as the planner predicts it for its own plan and
engine, and dense the time of the multiplications at the peak of the data sheet. Which of the five
figures an engine has, and which of them are fitted, its Form says."""

import csv
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import neuroshard as ns
from neuroshard.collect._samples.link_fit import minimise

CLASSES = {"NVIDIA H100-SXM5-80GB": "H100", "NVIDIA H200-SXM5-141GB": "H200",
           "NVIDIA A100-SXM-80GB CTS": "A100-80GB", "NVIDIA A100-SXM4-80GB": "A100-80GB",
           "NVIDIA A100-SXM-80GB": "A100-80GB", "NVIDIA A100-SXM4-40GB": "A100-40GB",
           "A100-SXM-80GB? (DGX-A100)": "A100-80GB", "A100-SXM (DGX-A100)": "A100-80GB",
           "A100": "A100-80GB", "NVIDIA H100-PCIe-80GB": "H100-PCIe", "NVIDIA L40S": "L40S",
           "NVIDIA Blackwell GPU (B200-SXM-180GB)": "B200"}
# TFLOP/s of dense matrices of f16 with sums in f32, and of tf32, as data sheets have them.
PEAK_TFLOPS = {"A100-80GB": (312, 156), "A100-40GB": (312, 156), "H100": (989, 495),
               "H200": (989, 495), "H100-PCIe": (756, 378), "L40S": (362, 183), "B200": (2250, 1125)}
# Multiplications and additions of a forward and a backward, for each weight that a sample meets.
FLOPS_OF_WEIGHT = 6


@dataclass(frozen=True)
class Form:
    """The figures of an engine: those that are fitted, with a first guess; others are fixed."""

    name: str
    fitted: dict[str, float]
    fixed: dict[str, float] = field(default_factory=dict)


# HugeCTR captures its steps in CUDA graphs and fuses tables, as we do. Engines on TensorFlow run the
# kernels of each table for itself.
HUGECTR = Form("HugeCTR", {"fixed_ms": 0.3, "dense": 2.0}, {"kernels": 1.0, "exchanges": 1.0})
TENSORFLOW = Form("TensorFlow", {"table_ms": 0.3, "kernels": 1.0, "exchanges": 1.0, "dense": 2.0})
FIGURES = ("fixed_ms", "table_ms", "kernels", "exchanges", "dense")


@dataclass(frozen=True)
class Model:
    """A published model. weights: of its dense part that a sample meets, where `columns` are those
    of all results."""

    name: str
    workload: str
    form: Form
    algorithm: str
    weights: Callable[[int], int]


def layers(*widths):
    return sum(one * next_one for one, next_one in zip(widths, widths[1:]))


def dlrm(columns):
    """The dense part of MLPerf's DLRM: two MLPs and the dot products of 27 vectors."""
    return layers(13, 512, 256, 128) + 27 * columns * 27 // 26 + layers(479, 1024, 1024, 512, 256, 1)


def dcn_v2(columns):
    """Of MLPerf's DCN v2: three cross layers of rank 512 in place of the dot products."""
    width = columns + 128
    return (layers(13, 512, 256, 128) + 3 * 2 * width * 512
            + layers(width, 1024, 1024, 512, 256, 1))


MODELS = {
    "DCN v2": Model("DCN v2", "mlperf_dlrm_v2", HUGECTR, "default", dcn_v2),
    "DLRM": Model("DLRM", "criteo_terabyte", HUGECTR, "default", dlrm),
    "DLRM on TensorFlow": Model("DLRM on TensorFlow", "criteo_terabyte", TENSORFLOW, "default",
                                dlrm),
    "Tiny": Model("Tiny", "synthetic_tiny", TENSORFLOW, "threshold",
                  lambda columns: layers(columns + 10, 256, 128, 1)),
    "Small": Model("Small", "synthetic_small", TENSORFLOW, "threshold",
                   lambda columns: layers(columns + 10, 512, 256, 128, 1)),
}


@dataclass(frozen=True)
class Step:
    """A published step: its median over submissions."""

    model: Model
    device_class: str
    devices: int
    nodes: int
    batch: int
    half: bool
    published_ms: float

    @property
    def topology(self):
        inner = f"{self.devices // self.nodes}x{self.device_class}"
        return inner if self.nodes == 1 else f"{self.nodes}x{inner}"

    @property
    def place(self):
        """What is left out together."""
        return self.model.name, self.device_class, self.devices


def model_of(row):
    """The model of a row of the file; None for rows that are no step of a known one."""
    phase, tables = row["phase"], row["E"]
    if phase == "DLRM-DCNv2 train iteration (derived)":
        return MODELS["DCN v2"]
    if phase == "DLRM v1 train iteration (derived)":
        return MODELS["DLRM"]
    if phase == "distributed-embeddings synthetic train step":
        return MODELS[tables.split()[-1]]
    if phase == "distributed-embeddings DLRM train" or (
            phase == "HugeCTR SOK DLRM train iter" and tables == "Criteo DLRM"):
        return MODELS["DLRM on TensorFlow"]
    return None


def read_steps(path):
    """The published steps of models and devices that are known here, in a fixed order."""
    found = defaultdict(list)
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            device = CLASSES.get(row["gpu"])
            model = model_of(row) if row["kind"] == "e2e" and device else None
            if not model:
                continue
            value, batch = float(row["value"]), int(row["B"])
            half = model.form is HUGECTR or row["dtype"] == "amp"
            key = (model.name, device, int(row["count"]), int(row["nodes"]), batch, half)
            found[key].append(batch / value * 1e3 if row["unit"] == "samples/s" else value)
    if not found:
        raise ValueError(f"{path} has no published steps of the models that are known here")
    return [Step(MODELS[key[0]], *key[1:], statistics.median(values))
            for key, values in sorted(found.items())]


@dataclass(frozen=True)
class Parts:
    """Milliseconds of our own step, tables on a device, and dense milliseconds at the peak."""

    kernels_ms: float
    exchanges_ms: float
    tables: float
    dense_ms: float

    def columns(self):
        """What the FIGURES multiply."""
        return np.array([1.0, self.tables, self.kernels_ms, self.exchanges_ms, self.dense_ms])


def parts_of(step, workloads):
    """Plans the step's workload, a file in the folder `workloads`."""
    problem = ns.ShardingProblem.load(Path(workloads) / f"{step.model.workload}.json")
    wire = "f16" if step.half else "f32"
    problem = problem.replace(topology=step.topology, batch=problem.batch.replace(
        global_size=step.batch, wire_type=wire))
    breakdown = ns.plan(problem, algorithm=step.model.algorithm).breakdown
    columns = sum(problem.table(one.table).dim for one in problem.features)
    flops = FLOPS_OF_WEIGHT * step.model.weights(columns) * step.batch / step.devices
    peak = PEAK_TFLOPS[step.device_class][0 if step.half else 1]
    return Parts(breakdown.max_forward_ms + breakdown.max_backward_ms, breakdown.exchange_ms,
                 len(problem.tables) / step.devices, flops / peak / 1e9)


class _Rows:
    """What minimise() fits: logarithms of the fitted figures of a form."""

    def __init__(self, form, steps, parts):
        columns = np.array([one.columns() for one in parts])
        self._columns = columns[:, [FIGURES.index(name) for name in form.fitted]]
        self._fixed = columns @ [form.fixed.get(name, 0.0) for name in FIGURES]
        self.time_ms = np.array([one.published_ms for one in steps])

    def predict(self, parameters):
        return self._fixed + self._columns @ np.exp(parameters)


def fit(form, steps, parts):
    """All FIGURES by name, by relative errors, large ones weighted down (Huber)."""
    fitted = minimise(_Rows(form, steps, parts), np.log(list(form.fitted.values())))
    found = dict(zip(form.fitted, map(float, np.exp(fitted))))
    return {name: found.get(name, form.fixed.get(name, 0.0)) for name in FIGURES}


def predict(figures, parts):
    return float(parts.columns() @ [figures[name] for name in FIGURES])


def left_out(steps, parts):
    """For each step what a fit without it, and without others at its place, predicts. The steps are
    of one form."""
    form, found = steps[0].model.form, []
    for step, own in zip(steps, parts):
        others = [at for at, one in enumerate(steps) if one.place != step.place]
        figures = fit(form, [steps[at] for at in others], [parts[at] for at in others])
        found.append(predict(figures, own))
    return found


def rank_correlation(one, other):
    """Spearman's, without ties."""
    ranks = [np.argsort(np.argsort(values)) for values in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])
