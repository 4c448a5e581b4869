"""Wrong options and arguments raise one error that names what is expected; unusual ones that eager
mode accepts work."""

import neuroshard
import pytest
import torch
from torch import nn

ROWS, DIM = 20, 4
IDS = torch.arange(8)


class Of(nn.Module):
    """A module with a table whose forward is the given function."""

    def __init__(self, function=lambda table, ids: table(ids), table=None):
        super().__init__()
        self.table, self.function = table or nn.Embedding(ROWS, DIM), function

    def forward(self, *arguments):
        return self.function(self.table, *arguments)


class Named(nn.Module):
    """Arguments by name."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(ROWS, DIM)

    def forward(self, ids, scale, bias):
        return self.table(ids) * scale + bias


class Keyed(nn.Module):
    """A table of any name."""

    def __init__(self, key):
        super().__init__()
        self.tables = nn.ModuleDict({key: nn.Embedding(ROWS, DIM)})

    def forward(self, ids):
        return next(iter(self.tables.values()))(ids)


@pytest.fixture(scope="module")
def exported():
    return neuroshard.export(Of().eval(), (IDS,))


@pytest.fixture(scope="module")
def program(exported):
    with exported.open() as opened:
        yield opened


def refuses(expected):
    return pytest.raises(neuroshard.export.ExportError, match=expected)


@pytest.mark.parametrize("batch", [True, 0, -1, 1.5, 2**63, "8"])
def test_batch(exported, batch):
    with refuses(f"batch: expected a number of samples from 1 to .* found {batch!r}"):
        neuroshard.export(Of().eval(), (IDS,), batch=batch)
    with refuses(f"batch: expected a number of samples from 1 to .* found {batch!r}"):
        exported.problem("2xCPU", batch=batch)


@pytest.mark.parametrize("devices", [True, 0, -1, 1.5, None, 2**63])
def test_devices(exported, devices):
    with refuses(f"devices: expected a number of devices from 1 to .* found {devices!r}"):
        exported.open(devices=devices)


def test_plan(exported):
    with refuses("plan: expected a neuroshard.Plan, .* found 'x'"):
        exported.open(plan="x")
    plan = neuroshard.plan(exported.problem("2xCPU")).plan
    with refuses("devices: expected none beside a plan, or its 2, found 3"):
        exported.open(plan=plan, devices=3)


@pytest.mark.parametrize("names", [None, "table", 5, [3], [None]])
def test_dense_tables(names):
    with refuses("dense_tables: expected a list of names, found"):
        neuroshard.export(Of().eval(), (IDS,), dense_tables=names)


@pytest.mark.parametrize("kwargs", [5, [1], "x"])
def test_kwargs(kwargs):
    with pytest.raises(TypeError, match="kwargs: expected example inputs by name, found"):
        neuroshard.export(Of().eval(), (IDS,), kwargs)


@pytest.mark.parametrize("state, expected", [
    (None, "expected a state_dict, .* found NoneType"), ({}, '"table.weight", .*found NoneType'),
    ({"table.weight": 3}, "found int"), ({"table.weight": torch.ones(3, 4)}, r"found \(3, 4\)"),
    ({"table.weight": torch.ones(ROWS, DIM).double()}, "found .* of torch.float64"),
    ({"table.weight": torch.ones(ROWS, DIM).to_sparse()}, "found .* torch.sparse_coo"),
    ({"table.weight": torch.ones(ROWS, DIM, device="meta")}, "found .* on meta")], ids=str)
def test_load(program, state, expected):
    with refuses(expected):
        program.load(state)


def test_no_samples():
    with refuses("example inputs have no samples"):
        neuroshard.export(Of().eval(), (IDS[:0],), dynamic_batch=False)
    with refuses(r"expected ids \[batch, ...\] of every sample, found"):
        neuroshard.export(Of().eval(), (torch.zeros(8, 0, dtype=torch.long),))


def test_closed_bags_without_offsets():
    table = nn.EmbeddingBag(ROWS, DIM, mode="sum", include_last_offset=True)
    exported = neuroshard.export(Of(nn.Module.__call__, table).eval(),
                                 (IDS, torch.tensor([0, 3, 8])))
    with refuses("size 0|expected offsets with the last one"):
        exported.jagged(exported.flatten((IDS, torch.tensor([], dtype=torch.long)), {}))


@pytest.mark.parametrize("given", [torch.tensor(2), torch.tensor([1, 2]), 2.0, True])
def test_number_of_another_type(given):
    exported = neuroshard.export(Of(lambda table, ids, by: table(ids) * by).eval(), (IDS, 2))
    with refuses("exported for 2, found"):
        exported.flatten((IDS, given), {})
    exported.flatten((IDS, 2), {})


def test_keywords_in_another_order():
    model = Named().eval()
    scale, bias = torch.full((8, 1), 3.0), torch.ones(8, 1)
    exported = neuroshard.export(model, (IDS,), {"scale": scale, "bias": bias})
    with exported.open() as program, torch.no_grad():
        torch.testing.assert_close(program(IDS, bias=bias, scale=scale),
                                   model(IDS, bias=bias, scale=scale))


@pytest.mark.parametrize("key", ["a\0b", "\ud800"])
def test_names_that_no_file_has(key):
    with refuses("table 'tables.*expected a name of Unicode characters other than"):
        neuroshard.export(Keyed(key).eval(), (IDS,))
