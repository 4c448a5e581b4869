r"""The dense part of DLRM-v2 as compiled code, beside torch.

    python -m neuroshard.bench.dense

The model of MLPerf's DLRM-v2 with small tables: bottom MLP, three low-rank cross layers, top MLP. torch-mlir gives
its dense part as linalg, which neuroshard-compile compiles; "torch" is the model in eager mode. Both take the same
batches on one thread, in turns. Printed are medians in milliseconds and quartiles of the ratio of ours to torch's in
the same turn."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

import neuroshard as ns
from neuroshard._arguments import Parser, whole

DIM, TABLES, NUMBERS = 128, 26, 13
TOLERANCE = 1e-5


class Cross(nn.Module):
    """x[l + 1] = x[0] * (W[l] V[l] x[l] + b[l]) + x[l], Wang et al. 2020, section 3.3."""

    def __init__(self, width: int, rank: int, layers: int) -> None:
        super().__init__()
        self.down = nn.ModuleList(nn.Linear(width, rank, bias=False) for _ in range(layers))
        self.up = nn.ModuleList(nn.Linear(rank, width) for _ in range(layers))

    def forward(self, first: torch.Tensor) -> torch.Tensor:
        x = first
        for down, up in zip(self.down, self.up):
            x = first * up(down(x)) + x
        return x


def mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Dlrm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        width = DIM * (TABLES + 1)
        self.tables = nn.ModuleList(nn.EmbeddingBag(100, DIM, mode="sum") for _ in range(TABLES))
        self.bottom = mlp(NUMBERS, 512, 256, DIM)
        self.cross = Cross(width, 512, 3)
        self.top = mlp(width, 1024, 1024, 512, 256, 1)

    def forward(self, numbers: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        rows = [table(ids[:, one:one + 1]) for one, table in enumerate(self.tables)]
        return self.top(self.cross(torch.cat([self.bottom(numbers), *rows], 1)))


def arguments() -> argparse.Namespace:
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=whole(2, 1 << 20), nargs="+", default=[64, 512, 2048], help="samples")
    parser.add_argument("--turns", type=whole(2, 10**6), default=15, help="of each")
    return parser.parse_args()


def milliseconds(call: Callable[[], object]) -> float:
    """CPU time, which other processes do not lengthen by taking turns with it."""
    begin = time.thread_time()
    call()
    return 1e3 * (time.thread_time() - begin)


def main() -> None:
    options = arguments()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Dlrm().eval()

    def batch(samples: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(samples, NUMBERS), torch.randint(100, (samples, TABLES))

    exported = ns.export(model, batch(4), dense="torch-mlir")
    print(f"{'samples':>8} {'ours, ms':>9} {'torch, ms':>9}   ratio: quartiles")
    with exported.open() as program, torch.inference_mode():
        for samples in options.batches:
            given = batch(samples)
            difference = (program(*given) - model(*given)).abs().max().item()
            if difference > TOLERANCE:
                raise SystemExit(f"error: results of {samples} samples differ by {difference:.2g}; expected at most "
                                 f"{TOLERANCE}")
            pairs = [(milliseconds(lambda: program(*given)), milliseconds(lambda: model(*given)))
                     for _ in range(options.turns)]
            quartiles = statistics.quantiles([ours / theirs for ours, theirs in pairs], n=4)
            ours, theirs = (statistics.median(one) for one in zip(*pairs))
            print(f"{samples:>8} {ours:>9.2f} {theirs:>9.2f}   " + " ".join(f"{one:.2f}" for one in quartiles),
                  flush=True)


if __name__ == "__main__":
    main()
