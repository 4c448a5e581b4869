"""Writes MLPerf DLRM-v2 (DLRM-DCNv2) as logical IR.

Bottom MLP 13-512-256-128, one sum lookup per table, low-rank DCN-v2 interaction over the
27 x 128 concatenated features, top MLP to one probability. Tables and poolings come from
a workload file (workloads/mlperf_dlrm_v2.json); the dense weights are arguments
of the function, so that the file stays small.

    python3 generate.py > dlrm_v2.mlir
    python3 generate.py --row-cap 100000 --batch 512 > small.mlir
"""

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"


@dataclass
class Config:
    workload: dict
    batch: int
    optimizer: str
    row_cap: int | None = None
    dense_features: int = 13
    bottom: list = field(default_factory=lambda: [512, 256])
    top: list = field(default_factory=lambda: [1024, 1024, 512, 256])
    cross_layers: int = 3
    cross_rank: int = 512

    @property
    def dim(self):
        return self.workload["tables"][0]["dim"]

    @property
    def interaction_width(self):
        return (len(self.workload["features"]) + 1) * self.dim

    def rows(self, table):
        return min(table["rows"], self.row_cap) if self.row_cap else table["rows"]


class Function:
    """Text of one function body: arguments are declared and values numbered as they come."""

    def __init__(self):
        self.arguments = []
        self.lines = []
        self.values = 0

    def argument(self, name, type_):
        self.arguments.append((name, type_))
        return f"%{name}"

    def value(self, text):
        name = f"%v{self.values}"
        self.values += 1
        self.lines.append(f"  {name} = {text}")
        return name


def elementwise(function, operands, body, width):
    """A generic over (sample, column); operands are (value, type, map) and the last value
    of `body` is the result."""
    out = function.value(f"tensor.empty(%batch) : tensor<?x{width}xf32>")
    maps = ", ".join([map_ for _, _, map_ in operands] + ["affine_map<(i, j) -> (i, j)>"])
    names = ", ".join(value for value, _, _ in operands)
    types = ", ".join(type_ for _, type_, _ in operands)
    scalars = "".join(f"%x{n}: f32, " for n in range(len(operands)))
    steps = "\n".join(f"      {line}" for line in body)
    return function.value(
        f'linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}\n'
        f"      ins({names} : {types}) outs({out} : tensor<?x{width}xf32>) {{\n"
        f"    ^bb0({scalars}%o: f32):\n{steps}\n"
        f"      linalg.yield %r : f32\n    }} -> tensor<?x{width}xf32>")


ROW = "affine_map<(i, j) -> (i, j)>"
COLUMN = "affine_map<(i, j) -> (j)>"


def matmul(function, x, weights, inputs, outputs, initial):
    """x * weights added onto `initial`. The loops run sample, input, output, so that the
    innermost one is parallel and no sum is reordered."""
    return function.value(
        "linalg.generic {indexing_maps = [affine_map<(i, k, j) -> (i, k)>, "
        "affine_map<(i, k, j) -> (k, j)>, affine_map<(i, k, j) -> (i, j)>], "
        'iterator_types = ["parallel", "reduction", "parallel"]}\n'
        f"      ins({x}, {weights} : tensor<?x{inputs}xf32>, tensor<{inputs}x{outputs}xf32>) "
        f"outs({initial} : tensor<?x{outputs}xf32>) {{\n"
        "    ^bb0(%a: f32, %w: f32, %s: f32):\n"
        "      %p = arith.mulf %a, %w : f32\n"
        "      %r = arith.addf %s, %p : f32\n"
        f"      linalg.yield %r : f32\n    }} -> tensor<?x{outputs}xf32>")


def linear(function, name, x, inputs, outputs):
    weights = function.argument(f"{name}_weight", f"tensor<{inputs}x{outputs}xf32>")
    bias = function.argument(f"{name}_bias", f"tensor<{outputs}xf32>")
    initial = elementwise(function, [(bias, f"tensor<{outputs}xf32>", COLUMN)],
                          ["%r = arith.addf %x0, %zero : f32"], outputs)
    return matmul(function, x, weights, inputs, outputs, initial)


def relu(function, x, width):
    return elementwise(function, [(x, f"tensor<?x{width}xf32>", ROW)],
                       ["%r = arith.maximumf %x0, %zero : f32"], width)


def sigmoid(function, x, width):
    return elementwise(function, [(x, f"tensor<?x{width}xf32>", ROW)],
                       ["%n = arith.negf %x0 : f32", "%e = math.exp %n : f32",
                        "%d = arith.addf %e, %one : f32", "%r = arith.divf %one, %d : f32"],
                       width)


def mlp(function, name, x, widths):
    """Linear layers with ReLU between and after them, except after the last."""
    for layer, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        x = linear(function, f"{name}{layer}", x, inputs, outputs)
        if layer + 2 < len(widths):
            x = relu(function, x, outputs)
    return x


def cross(function, config, x0):
    """x[l + 1] = x[0] * (W[l] (V[l] x[l]) + b[l]) + x[l], Wang et al. 2020, section 3.3."""
    width, rank = config.interaction_width, config.cross_rank
    type_ = f"tensor<?x{width}xf32>"
    x = x0
    for layer in range(config.cross_layers):
        down = function.argument(f"cross{layer}_v", f"tensor<{width}x{rank}xf32>")
        empty = function.value(f"tensor.empty(%batch) : tensor<?x{rank}xf32>")
        zeros = function.value(f"linalg.fill ins(%zero : f32) outs({empty} : "
                               f"tensor<?x{rank}xf32>) -> tensor<?x{rank}xf32>")
        low = matmul(function, x, down, width, rank, zeros)
        high = linear(function, f"cross{layer}_w", low, rank, width)
        x = elementwise(function, [(x0, type_, ROW), (high, type_, ROW), (x, type_, ROW)],
                        ["%m = arith.mulf %x0, %x1 : f32", "%r = arith.addf %m, %x2 : f32"],
                        width)
    return x


def lookups(function, config):
    names = []
    for feature in config.workload["features"]:
        stats = f"#neuroshard.feature<mean = {float(feature.get('mean_pooling', 1))}>"
        names.append(function.value(
            f"neuroshard.lookup {feature.get('pooling', 'sum')} @{feature['table']}"
            f"[%ids, \"{feature['name']}\"] {{stats = {stats}}} : !ids -> "
            f"tensor<?x{config.dim}xf32>"))
    return names


def concatenate(function, config, parts):
    width = config.interaction_width
    whole = function.value(f"tensor.empty(%batch) : tensor<?x{width}xf32>")
    for position, part in enumerate(parts):
        whole = function.value(
            f"tensor.insert_slice {part} into {whole}[0, {position * config.dim}] "
            f"[%batch, {config.dim}] [1, 1] : tensor<?x{config.dim}xf32> into "
            f"tensor<?x{width}xf32>")
    return whole


def forward(config):
    function = Function()
    dense = function.argument("dense", f"tensor<?x{config.dense_features}xf32>")
    function.argument("ids", "!ids")
    function.lines += ["  %c0 = arith.constant 0 : index",
                       "  %zero = arith.constant 0.0 : f32",
                       "  %one = arith.constant 1.0 : f32",
                       f"  %batch = tensor.dim {dense}, %c0 : "
                       f"tensor<?x{config.dense_features}xf32>"]
    embedded = lookups(function, config)
    bottom = mlp(function, "bottom", dense,
                 [config.dense_features, *config.bottom, config.dim])
    bottom = relu(function, bottom, config.dim)
    crossed = cross(function, config, concatenate(function, config, [bottom, *embedded]))
    logit = mlp(function, "top", crossed, [config.interaction_width, *config.top, 1])
    function.lines.append(f"  return {sigmoid(function, logit, 1)} : tensor<?x1xf32>")
    arguments = ",\n    ".join(f"%{name}: {type_}" for name, type_ in function.arguments)
    return (f"func.func @forward(\n    {arguments}) -> tensor<?x1xf32> {{\n"
            + "\n".join(function.lines) + "\n}\n")


def tables(config):
    return "\n".join(
        f"neuroshard.table private @{table['name']} : {config.rows(table)} x {table['dim']} x "
        f"{table.get('type', 'f32')} {{optimizer = #neuroshard.optimizer<{config.optimizer}>}}"
        for table in config.workload["tables"])


def module(config):
    features = ", ".join(f'"{feature["name"]}"' for feature in config.workload["features"])
    return (f"!ids = !neuroshard.jagged<[{features}], i64>\n"
            f"module attributes {{neuroshard.batch = {config.batch} : i64}} {{\n"
            f"{tables(config)}\n{forward(config)}}}\n")


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workload", type=Path, default=WORKLOADS / "mlperf_dlrm_v2.json")
    parser.add_argument("--batch", type=int, help="global batch; default: the workload's")
    parser.add_argument("--optimizer", default="rowwise_adagrad",
                        choices=["sgd", "adagrad", "rowwise_adagrad", "adam"])
    parser.add_argument("--row-cap", type=int, help="no table has more rows than this")
    parser.add_argument("--bottom", type=int, nargs="+", help="hidden widths, e.g. 512 256")
    parser.add_argument("--top", type=int, nargs="+", help="hidden widths")
    parser.add_argument("--cross-layers", type=int)
    parser.add_argument("--cross-rank", type=int)
    parser.add_argument("-o", "--output", type=Path, help="default: standard output")
    return parser.parse_args(arguments)


def config_of(options):
    workload = json.loads(options.workload.read_text())
    config = Config(workload, options.batch or workload["batch"]["global_size"],
                    options.optimizer, options.row_cap)
    for name in ("bottom", "top", "cross_layers", "cross_rank"):
        if (given := getattr(options, name)) is not None:
            setattr(config, name, given)
    return config


def main(arguments=None):
    options = parse_arguments(arguments)
    text = module(config_of(options))
    if options.output:
        options.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
