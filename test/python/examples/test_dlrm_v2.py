"""The example model is DLRM-DCNv2: compiled and sharded it gives the results of torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from support import artifact
from support.batch import from_features, local_sizes, split
from support.host import World

ROOT = Path(__file__).resolve().parents[3]
GENERATOR = ROOT / "examples" / "dlrm_v2" / "generate.py"
TABLES = {"red": 30, "green": 4, "blue": 900}
DIM, DENSE, BOTTOM, TOP, LAYERS, RANK = 8, 13, [16, 12], [24, 10], 2, 5


def workload():
    return {"schema": "neuroshard.workload.v1", "batch": {"global_size": 16},
            "tables": [{"name": name, "rows": rows, "dim": DIM} for name, rows in TABLES.items()],
            "features": [{"name": f"{name}_id", "table": name, "mean_pooling": 2}
                         for name in TABLES]}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dlrm")
    (folder / "workload.json").write_text(json.dumps(workload()))
    text = subprocess.run(
        [sys.executable, GENERATOR, "--workload", folder / "workload.json", "--bottom",
         *map(str, BOTTOM), "--top", *map(str, TOP), "--cross-layers", str(LAYERS),
         "--cross-rank", str(RANK)], capture_output=True, text=True, check=True).stdout
    return artifact.compile_text(text, folder / "model", "--topology", "3xCPU", "--training",
                                 "--reference")


def linear_weights(inputs, outputs, generator):
    return [torch.randn((inputs, outputs), generator=generator) / inputs ** 0.5,
            torch.randn((outputs,), generator=generator)]


def dense_weights(generator):
    """In the order of the function's arguments: bottom, cross, top."""
    width = (len(TABLES) + 1) * DIM
    weights = []
    for widths in ([DENSE, *BOTTOM, DIM],):
        for inputs, outputs in zip(widths, widths[1:]):
            weights += linear_weights(inputs, outputs, generator)
    for _ in range(LAYERS):
        weights.append(torch.randn((width, RANK), generator=generator) / width ** 0.5)
        weights += linear_weights(RANK, width, generator)
    for inputs, outputs in zip([width, *TOP], [*TOP, 1]):
        weights += linear_weights(inputs, outputs, generator)
    return weights


def torch_model(dense, embedded, weights):
    """DLRM-DCNv2 in float64."""
    rest = iter([weight.double() for weight in weights])
    x = dense.double()
    for _ in range(len(BOTTOM) + 1):
        x = torch.relu(x @ next(rest) + next(rest))
    x0 = x = torch.cat([x, *embedded], dim=1)
    for _ in range(LAYERS):
        x = x0 * (x @ next(rest) @ next(rest) + next(rest)) + x
    for layer in range(len(TOP) + 1):
        x = x @ next(rest) + next(rest)
        x = torch.sigmoid(x) if layer == len(TOP) else torch.relu(x)
    return x


def random_ids(batch, generator):
    features = []
    for rows in TABLES.values():
        lengths = torch.randint(0, 5, (batch,), generator=generator)
        ids = torch.randint(0, rows, (int(lengths.sum()),), generator=generator)
        features.append((ids, lengths, None))
    return from_features(features, "i64", False)


def test_equals_torch(compiled, generator):
    batch = 10
    dense = torch.randn((batch, DENSE), generator=generator)
    jagged = random_ids(batch, generator)
    weights = dense_weights(generator)
    with World(compiled) as world:
        tables = {}
        for name, rows in TABLES.items():
            tables[name] = torch.randn((rows, DIM), generator=generator)
            world.write_table(name, tables[name])
        parts = dense.split(local_sizes(batch, 3))
        out = world.invoke("forward", [[part.contiguous(), ids, *weights]
                                       for part, ids in zip(parts, split(jagged, 3))])
    embedded = []
    for number, table in enumerate(tables.values()):
        ids, offsets, _ = jagged.feature(number)
        embedded.append(torch.nn.functional.embedding_bag(
            ids, table.double(), offsets, mode="sum", include_last_offset=True))
    expected = torch_model(dense, embedded, weights)
    torch.testing.assert_close(torch.cat([part[0] for part in out]).double(), expected,
                               rtol=1e-5, atol=1e-6)


def test_driver_compares_with_the_unsharded_program(compiled):
    done = subprocess.run(
        [artifact.tool("neuroshard-run"), compiled, "--batch", "17", "--steps", "2", "--poisson",
         "--pooling", "3", "--train"], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if "largest difference" in line]
    # Results and tables of both steps.
    assert len(lines) == 4
    assert all(float(line.split()[2]) <= 1e-6 for line in lines), done.stdout


def test_driver_names_what_is_missing(tmp_path):
    code, message = artifact.run_tool("neuroshard-run", tmp_path)
    assert code == 1
    assert "manifest.json" in message and "neuroshard-compile" in message


def test_driver_refuses_an_empty_batch(compiled):
    code, message = artifact.run_tool("neuroshard-run", compiled, "--batch", "0")
    assert code == 1
    assert "--batch" in message
