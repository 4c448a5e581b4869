r"""Lookups of frozen tables beside FBGEMM's kernels for CPUs, on the same quantized rows.

    python -m neuroshard.bench.serving --dtype int8

Requests of each size have random ids by a power law. All answer the same requests on one thread, in turns; the
arguments of the calls are made beforehand, so that only the calls are timed: ours through ctypes, "tbe", the module
of the package fbgemm_gpu that TorchRec uses, and "torch", the operators of torch.ops.quantized, which have
FBGEMM's generated kernels, one call for each table (int8 and int4). Printed are the medians and
99th percentiles of a request in microseconds, requests per second, and quartiles of the ratio of another's median
to ours in the same turn."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

import neuroshard as ns
from neuroshard._arguments import Parser, whole
from neuroshard.serving import quantize

SKEW = 2.0  # an id is the number of a rank of popularity, rows * uniform^SKEW
REQUESTS = 64  # different ones of a size
TOLERANCE = 1e-4
SCALE_AND_BIAS_BYTES = 4  # in front of a row of int8 or int4


def arguments() -> argparse.Namespace:
    parser = Parser(description=__doc__.splitlines()[0])
    for name, default, text in (("tables", 26, ""), ("rows", 1_000_000, "of a table"), ("dim", 64, "columns"),
                                ("pooling", 10, "ids of a bag"), ("turns", 15, "of each"),
                                ("seconds", 0.3, "of a turn")):
        kind = float if isinstance(default, float) else whole(1, 2**40)
        parser.add_argument(f"--{name}", type=kind, default=default, help=text)
    parser.add_argument("--dtype", default="int8", choices=("int8", "int4", "fp8", "f16"))
    parser.add_argument("--batches", type=whole(1, 1 << 20), nargs="+", default=[1, 8, 64, 512],
                        help="samples of a request")
    return parser.parse_args()


class Ours:
    """Calls nsrt_look_up, which writes all results anew."""

    def __init__(self, tables: ns.ServedTables) -> None:
        self.tables = tables

    def prepare(self, ids: torch.Tensor, offsets: torch.Tensor) -> Callable[[], Any]:
        call = self.tables.prepare(ns.distributed.Jagged(ids, offsets))
        return lambda: list(call().values())


class Torch:
    """Calls the operators of torch.ops.quantized, table by table."""

    def __init__(self, weights: Sequence[torch.Tensor], dtype: str) -> None:
        operators, prefix = torch.ops.quantized, SCALE_AND_BIAS_BYTES
        if dtype == "int8":  # scale and bias as f32, behind the elements
            self.weights = [torch.cat([one[:, prefix:], one[:, :prefix].contiguous().view(torch.float16).float()
                                       .view(torch.uint8)], 1) for one in weights]
            operator = operators.embedding_bag_byte_rowwise_offsets
        else:
            self.weights = [torch.cat([one[:, prefix:], one[:, :prefix]], 1) for one in weights]
            operator = operators.embedding_bag_4bit_rowwise_offsets
        self.look_up = lambda one, ids, offsets: operator(one, ids, offsets, False, 0, False, None, None, True)

    def prepare(self, ids: torch.Tensor, offsets: torch.Tensor) -> Callable[[], Any]:
        batch = (offsets.numel() - 1) // len(self.weights)
        parts = [(one, ids[offsets[i * batch]:offsets[(i + 1) * batch]],
                  offsets[i * batch:(i + 1) * batch + 1] - offsets[i * batch])
                 for i, one in enumerate(self.weights)]
        return lambda: [self.look_up(*part) for part in parts]


class Tbe:
    """Calls the operator of FBGEMM's IntNBitTableBatchedEmbeddingBagsCodegen."""

    def __init__(self, weights: Sequence[torch.Tensor], dim: int, dtype: str) -> None:
        from fbgemm_gpu.split_embedding_configs import SparseType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
        from fbgemm_gpu.split_table_batched_embeddings_ops_inference import \
            IntNBitTableBatchedEmbeddingBagsCodegen as Tables

        kind = {"int8": SparseType.INT8, "int4": SparseType.INT4, "fp8": SparseType.FP8, "f16": SparseType.FP16}
        self.module = Tables([(str(i), len(one), dim, kind[dtype], EmbeddingLocation.HOST)
                              for i, one in enumerate(weights)], device="cpu", output_dtype=SparseType.FP32)
        self.module.initialize_weights()
        for own, given in zip(self.module.split_embedding_weights(split_scale_shifts=False), weights):
            own[0][:, :given.shape[1]] = given

    def prepare(self, ids: torch.Tensor, offsets: torch.Tensor) -> Callable[[], Any]:
        return lambda: self.module(ids, offsets)


def requests(given: argparse.Namespace, batch: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(batch)
    bags = given.tables * batch
    offsets = torch.arange(0, bags * given.pooling + 1, given.pooling)
    return [((given.rows * torch.rand(bags * given.pooling, generator=generator, dtype=torch.float64)**SKEW).long(),
             offsets) for _ in range(REQUESTS)]


def turn(calls: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """Microseconds of each request."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        for call in calls:
            start = time.perf_counter_ns()
            call()
            times.append((time.perf_counter_ns() - start) / 1e3)
    return times


def main() -> None:
    given = arguments()
    torch.set_num_threads(1)
    names = [f"t{i}" for i in range(given.tables)]
    problem = ns.ShardingProblem(
        tables=[ns.Table(name, given.rows, given.dim) for name in names],
        features=[ns.Feature(name, name, mean_pooling=given.pooling) for name in names], batch=1024,
        topology="1xCPU")
    generator = torch.Generator().manual_seed(0)
    values = {name: torch.rand(given.rows, given.dim, generator=generator) - 0.5 for name in names}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        contenders: dict[str, Any] = {
            "ours": Ours(ns.serve(ns.freeze(values, problem, f"{folder}/frozen", dtype=given.dtype)))}
        stored = [quantize(one, given.dtype) for one in values.values()]
        values.clear()
        if given.dtype in ("int8", "int4"):
            contenders["torch"] = Torch(stored, given.dtype)
        contenders["tbe"] = Tbe(stored, given.dim, given.dtype)
        print(f"{given.tables} tables of {given.rows} x {given.dim} {given.dtype}, {given.pooling} ids a bag, 1 thread")
        print("| batch | | median | 99 % | per second | ratio to ours (quartiles) |\n|---|---|---|---|---|---|")
        for batch in given.batches:
            for line in measure(given, batch, contenders):
                print(line, flush=True)


def measure(given: argparse.Namespace, batch: int, contenders: dict[str, Any]) -> list[str]:
    calls = {name: [one.prepare(*request) for request in requests(given, batch)] for name, one in contenders.items()}
    ours = torch.cat(calls["ours"][0](), 1)
    for name, own in calls.items():
        for call in own:  # memory of results is there before any is timed
            call()
        result = own[0]()
        result = torch.cat(result, 1) if isinstance(result, list) else result
        difference = (ours - result).abs().max().item()
        if difference > TOLERANCE * given.pooling:
            raise RuntimeError(f"the results of {name} differ by {difference}")
    times: dict[str, list[float]] = {name: [] for name in calls}
    ratios: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(given.turns):
        turns = {name: turn(own, given.seconds) for name, own in calls.items()}
        for name, one in turns.items():
            times[name].extend(one)
            ratios[name].append(statistics.median(one) / statistics.median(turns["ours"]))
    lines = []
    for name, one in times.items():
        one.sort()
        low, middle, high = statistics.quantiles(ratios[name], n=4)
        lines.append(f"| {batch} | {name} | {one[len(one) // 2]:.1f} | {one[int(len(one) * 0.99)]:.1f} | "
                     f"{1e6 / statistics.mean(one):.0f} | {middle:.2f} ({low:.2f}, {high:.2f}) |")
    return lines


if __name__ == "__main__":
    main()
