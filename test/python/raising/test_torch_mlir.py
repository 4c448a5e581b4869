"""Models of PyTorch as the real torch-mlir prints them are raised; what is all lookups, tensors and
linear algebra then gives what PyTorch gives, on one device and on two."""

import os
import random
import re

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.export import Dim
from torch_mlir import fx

from support import artifact, matrix
from support.batch import local_sizes
from support.host import World
from support.mutants import run

ROWS, DIM, BAG, SAMPLES = 50, 8, 3, 7
LEVELS = {"torch": fx.OutputType.TORCH, "linalg": fx.OutputType.LINALG_ON_TENSORS,
          "stablehlo": fx.OutputType.STABLEHLO}
BATCH, IDS = Dim("batch", min=2, max=1000), Dim("ids", min=2, max=1000)


class Rows(nn.Module):
    def __init__(self, then=lambda rows: rows):
        super().__init__()
        self.user, self.then = nn.Embedding(ROWS, DIM), then

    def forward(self, ids):
        return self.then(self.user(ids))


class Masked(Rows):
    def forward(self, ids, mask):
        return (self.user(ids) * mask.unsqueeze(-1)).sum(1)


class Indexed(nn.Module):
    def __init__(self, select):
        super().__init__()
        self.weight, self.select = nn.Parameter(torch.randn(ROWS, DIM)), select

    def forward(self, ids):
        return self.select(self.weight, ids)


class Bags(nn.Module):
    def __init__(self, last=True, **options):
        super().__init__()
        self.user = nn.EmbeddingBag(ROWS, DIM, include_last_offset=last, **options)

    def forward(self, ids, offsets, weights=None):
        return self.user(ids, offsets, weights)


class TwoTowers(nn.Module):
    """Two tables, linear layers behind each, and the product of both."""

    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(ROWS, DIM), nn.Embedding(ROWS // 2, DIM)
        self.left, self.right = nn.Linear(DIM, 4), nn.Linear(DIM, 4)

    def forward(self, user, items):
        left = torch.relu(self.left(self.user(user)))
        right = torch.relu(self.right(self.item(items).sum(1)))
        return torch.sigmoid((left * right).sum(1))


def per_sample(*shape):
    ids = torch.randint(0, ROWS // 2, (SAMPLES, *shape))
    ids.view(-1)[0] = ROWS // 2 - 1
    return ids, {0: BATCH}


def mask():
    return torch.rand(SAMPLES, BAG), {0: BATCH}


def bag_inputs(weighted=False, last=True):
    offsets = torch.tensor([0, 2, 2, 5, 6, 9, 10, 12])
    ids = torch.randint(0, ROWS, (int(offsets[-1]),))
    ids[1] = ROWS - 1  # -1 is no padding_idx
    more = [(torch.rand(len(ids)), {0: IDS})] if weighted else []
    given = (offsets, {0: BATCH + 1}) if last else (offsets[:-1], {0: BATCH})
    return [(ids, {0: IDS}), given, *more]


def negative():
    return torch.randint(-ROWS, ROWS, (SAMPLES, BAG)), {0: BATCH}


# name: (model, inputs with their dynamic dimensions, lookups by level; a level that torch-mlir has
# not for the model is left out)
CASES = {
    "embedding": (Rows, [per_sample()], dict.fromkeys(LEVELS, ["unpooled"])),
    "embedding of bags": (Rows, [per_sample(BAG)], dict.fromkeys(LEVELS, ["unpooled"])),
    "sum": (lambda: Rows(lambda rows: rows.sum(1)), [per_sample(BAG)],
            dict.fromkeys(LEVELS, ["sum"])),
    "mean": (lambda: Rows(lambda rows: rows.mean(1)), [per_sample(BAG)],
             {"torch": ["mean"], "linalg": ["mean"], "stablehlo": ["sum"]}),
    "maximum": (lambda: Rows(lambda rows: rows.amax(1)), [per_sample(BAG)],
                dict.fromkeys(LEVELS, ["unpooled"])),
    "masked": (Masked, [per_sample(BAG), mask()],
               {"torch": ["sum"], "linalg": ["sum"], "stablehlo": ["unpooled"]}),
    "index": (lambda: Indexed(lambda weight, ids: weight[ids]), [negative()],
              dict.fromkeys(LEVELS, ["unpooled"])),
    "index_select": (lambda: Indexed(lambda weight, ids: weight.index_select(0, ids)),
                     [per_sample()], dict.fromkeys(LEVELS, ["unpooled"])),
    "bag, sum": (lambda: Bags(mode="sum"), bag_inputs(), {"torch": ["sum"]}),
    "bag, mean": (lambda: Bags(mode="mean"), bag_inputs(), {"torch": ["mean"]}),
    "bag, padding": (lambda: Bags(mode="sum", padding_idx=3), bag_inputs(), {"torch": ["sum"]}),
    "bag, weighted": (lambda: Bags(mode="sum"), bag_inputs(weighted=True), {"torch": ["sum"]}),
    "bag without the last end": (lambda: Bags(last=False, mode="sum"), bag_inputs(last=False),
                                 {"torch": ["sum"], "linalg": ["sum"]}),
    "two towers": (TwoTowers, [per_sample(), per_sample(BAG)],
                   {"torch": ["unpooled", "sum"], "linalg": ["unpooled", "sum"],
                    "stablehlo": ["unpooled", "sum"]}),
}
# What has ops of torch or StableHLO beside its lookups: their own tools lower these.
OTHERS = {("maximum", "torch"), ("two towers", "torch")} | {
    (name, "stablehlo") for name in ("mean", "maximum", "masked", "index", "two towers")}
ALL = [(name, level) for name, (_, _, levels) in CASES.items() for level in levels]
SAMPLE = ALL if os.environ.get("NEUROSHARD_ALL") else random.Random(matrix.seed()).sample(ALL, 10)


def printed(model, inputs, level):
    module = fx.export_and_import(model, *(value for value, _ in inputs), func_name="forward",
                                  dynamic_shapes=tuple(dims for _, dims in inputs),
                                  output_type=LEVELS[level])
    return module.operation.get_asm(print_generic_op_form=True)


def parts(inputs, sizes):
    """The inputs of each device; offsets and what they divide are those of whole samples."""
    values = [value for value, _ in inputs]
    if len(values) > 1 and values[1].dim() == 1:
        ids, offsets, *weights = values
        ends = torch.cat([offsets[1:], torch.tensor([len(ids)])])
        devices, begin = [], 0
        for size in sizes:
            mine = offsets[begin:begin + size + len(offsets) - SAMPLES]
            taken = slice(int(mine[0]), int(ends[begin + size - 1]))
            devices.append([ids[taken], mine - mine[0], *(one[taken] for one in weights)])
            begin += size
        return devices
    return [list(device) for device in zip(*(value.split(sizes) for value in values))]


@pytest.mark.parametrize(("name", "level"), SAMPLE)
def test_as_torch_mlir_prints_it(name, level, tmp_path):
    torch.manual_seed(matrix.seed())
    make, inputs, levels = CASES[name]
    model = make().eval()
    before, after = tmp_path / "before.mlir", tmp_path / "after.mlir"
    before.write_text(printed(model, inputs, level))
    run(artifact.tool("neuroshard-opt"), before, "--allow-unregistered-dialect",
        f"--neuroshard-raise-lookups=strict=true weights-file={tmp_path / 'rows.safetensors'}",
        "-o", after)
    text = after.read_text()
    assert re.findall(r"neuroshard\.lookup (\w+)", text) == levels[level]
    tables = load_file(tmp_path / "rows.safetensors")
    assert sorted(map(tuple, (table.shape for table in tables.values()))) == sorted(
        tuple(value.shape) for key, value in model.state_dict().items()
        if value.dim() == 2 and value.shape[0] in (ROWS, ROWS // 2))
    is_whole = not re.search(r'"(torch|stablehlo)\.', text)
    assert is_whole == ((name, level) not in OTHERS)
    if not is_whole:
        return
    expected = model(*(value for value, _ in inputs))
    for devices in (1, 2):
        folder = tmp_path / f"on{devices}"
        run(artifact.tool("neuroshard-compile"), after, "-o", folder, "--topology",
            f"{devices}xCPU", "--batch", 64, "-O", "0")
        with World(folder) as world:
            for table, rows in tables.items():
                world.write_table(table, rows)
            results = world.invoke("forward", parts(inputs, local_sizes(SAMPLES, devices)))
        torch.testing.assert_close(torch.cat([result[0] for result in results]), expected,
                                   rtol=1e-5, atol=1e-5)
