"""Models that cannot be exported raise one error that names the place and what is expected."""

import neuroshard
import pytest
import torch
import torch.nn.functional as functional
from export_models import DLRM, bags
from torch import nn

ROWS, DIM = 20, 4
IDS = torch.tensor([[1, 2], [3, 4], [5, 6]])


class Of(nn.Module):
    """A module with a table whose forward is the given function."""

    def __init__(self, function, table=None):
        super().__init__()
        self.table = table or nn.Embedding(ROWS, DIM)
        self.other = nn.Linear(DIM, ROWS, bias=False)
        self.function = function

    def forward(self, *arguments):
        return self.function(self.table, *arguments)


def tied(table, ids):
    return functional.linear(table(ids).sum(1), table.weight)


def branching(table, ids):
    return table(ids) if ids.sum() > 0 else -table(ids)


def dropping(table, ids):
    return functional.dropout(table(ids), 0.5, training=True)


def positions(table, ids):
    return table(torch.arange(2)) + ids[:, :, None]


def looked_up_twice(table, ids):
    return table(table(ids).sum(2).long())


def scaled(table, ids):
    return functional.embedding(ids, table.weight * 2)


def bag(**options):
    return nn.EmbeddingBag(ROWS, DIM, **options)


def call(table, *arguments):
    return table(*arguments)


ERRORS = {
    "no table": (lambda _, ids: ids * 2, None, (IDS,), r"no embedding to take out; expected nn\."),
    "tied weights": (tied, None, (IDS,), r'table "table" is read by linear \(.*export_errors.py:'
                     r'\d+\), too, .* lookups alone. dense_tables=\["table"\]'),
    "branch": (branching, None, (IDS,), r"torch.export cannot trace Of: .*\n(.*\n)*.*values of the "
               "inputs; write it with torch.where"),
    "dropout": (dropping, None, (IDS,), r"dropout \(.*\) is as in training; call model.eval\(\)"),
    "positions": (positions, None, (IDS,), r"reads 2 samples whatever the batch is.*"
                  r'dense_tables=\["table"\]'),
    "two steps": (looked_up_twice, None, (IDS,), "computed from the rows of embedding"),
    "computed table": (scaled, None, (IDS,), "its table is computed in the model; expected a "),
    "max_norm": (call, nn.Embedding(ROWS, DIM, max_norm=1.0), (IDS,), "max_norm"),
    "frequency": (call, nn.Embedding(ROWS, DIM, scale_grad_by_freq=True), (IDS,),
                  "scale_grad_by_freq cannot be exported; expected False"),
    "maximum": (call, bag(mode="max"), (IDS,), 'mode "max" cannot be .* expected "sum" or "mean"'),
    "doubles": (call, bag(mode="sum").double(), (IDS,),
                'table "table" .*float64; expected f32, f16 or bf16'),
    "other device": (call, bag(mode="sum"), (IDS.to("meta"),), "input is on meta; expected all on"),
    "too few inputs": (call, bag(mode="sum"), (), "example inputs do not fit|torch.export cannot"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_refused(name):
    function, table, arguments, expected = ERRORS[name]
    with pytest.raises(neuroshard.export.ExportError, match=expected):
        neuroshard.export(Of(function, table).eval(), arguments)


class Tied(nn.Module):
    """One table under several names, the first of which is a dense layer's."""

    def __init__(self):
        super().__init__()
        self.a, self.o = nn.Embedding(ROWS, DIM), nn.Linear(DIM, ROWS, bias=False)
        self.b = nn.Embedding(ROWS, DIM)
        self.o.weight = self.a.weight

    def forward(self, ids):
        return self.o(self.a(ids)) + self.b(ids).sum(-1, keepdim=True)


@pytest.mark.parametrize("name", ["a", "o", "a.weight", "o.weight"])
def test_dense_tables_by_any_name(name):
    with pytest.raises(neuroshard.export.ExportError, match=r'dense_tables=\["a"\] leaves'):
        neuroshard.export(Tied().eval(), (IDS,))
    exported = neuroshard.export(Tied().eval(), (IDS,), dense_tables=[name])
    assert exported.counts["embeddings left to torch"] == 1
    assert [table.name for table in exported.tables] == ["b"]


def test_dense_tables_keep_tied_weights():
    model = Of(tied).eval()
    with pytest.raises(neuroshard.export.ExportError, match="no embedding"):
        neuroshard.export(model, (IDS,), dense_tables=["table"])


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm = bag(mode="sum"), nn.BatchNorm1d(DIM)

    def forward(self, ids):
        return self.norm(self.table(ids))


def test_training_mode():
    with pytest.raises(neuroshard.export.ExportError, match=r"call model.eval\(\)"):
        neuroshard.export(Normed(), (IDS,))
    neuroshard.export(Normed().eval(), (IDS,))


@pytest.mark.parametrize("wrong", [{"dense": "onnx"}, {"optimizer": {"tabel": "sgd"}},
                                   {"dense_tables": ["tabel"]}, {"batch": 0}], ids=str)
def test_wrong_options(wrong):
    with pytest.raises(ValueError, match=r'expected "external" or|no table "tabel"; expected|no '
                       r'parameter "tabel"|samples from 1 to \d+, found 0'):
        neuroshard.export(Of(call).eval(), (IDS,), **wrong)


def test_arguments_that_are_no_tuple():
    with pytest.raises(TypeError, match="expected a tuple of example inputs, found Tensor"):
        neuroshard.export(Of(call).eval(), IDS)
    with pytest.raises(neuroshard.export.ExportError, match="expected an nn.Module, found int"):
        neuroshard.export(3, (IDS,))


def test_linalg_that_cannot_be_shared():
    model = Of(lambda table, ids, matrix: table(ids).sum(1) * matrix.sum()).eval()
    with pytest.raises(neuroshard.export.ExportError, match="no row for each sample"):
        neuroshard.export(model, (IDS, torch.ones(5, 2)), dense="torch-mlir")


def test_dense_part_that_mixes_samples(monkeypatch):
    """Allowed on one device, refused on two; with the dense part in torch allowed on any number."""
    model = Of(lambda table, ids: table(ids) - table(ids).mean(0), bag(mode="sum")).eval()
    exported = neuroshard.export(model, (IDS,))
    monkeypatch.setattr(exported.dense, "linalg", "as if")
    with pytest.raises(neuroshard.export.ExportError, match="result_0 of a sample depends on oth"):
        exported.open(devices=2)
    monkeypatch.undo()
    with exported.open(devices=2) as opened, torch.no_grad():
        torch.testing.assert_close(opened(IDS), model(IDS))


@pytest.mark.parametrize("mixing", [
    lambda table, ids, dense: table(ids) + dense - dense.mean(0),
    lambda table, ids, dense: table(ids) + dense.roll(1, 0),
    lambda table, ids, dense: table(ids) + dense - dense.max(0).values])
def test_mixing_that_an_example_of_equal_rows_hides(mixing, monkeypatch):
    exported = neuroshard.export(Of(mixing, bag(mode="sum")).eval(), (IDS, torch.ones(3, DIM)))
    monkeypatch.setattr(exported.dense, "linalg", "as if")
    with pytest.raises(neuroshard.export.ExportError, match="result_0 of a sample depends on oth"):
        exported.open(devices=2)


def test_mixing_of_two_samples(monkeypatch):
    """Mixing that halves of a batch of four do not show."""
    model = Of(lambda table, ids: table(ids).view(-1, 2, DIM).flip(1).reshape(-1, DIM),
               bag(mode="sum")).eval()
    exported = neuroshard.export(model, (torch.arange(8).view(4, 2),))
    monkeypatch.setattr(exported.dense, "linalg", "as if")
    with pytest.raises(neuroshard.export.ExportError, match="on a part of the batch, as each"):
        exported.open(devices=2)


@pytest.fixture(scope="module")
def program():
    generator = torch.Generator().manual_seed(1)
    exported = neuroshard.export(DLRM().eval(), DLRM.batch(3, generator))
    with exported.open(devices=2) as opened:
        yield opened


def change(place, value):
    """Arguments of a DLRM with one of them changed."""
    dense, ids, offsets = DLRM.batch(4, torch.Generator().manual_seed(2))
    changed = {"dense": dense, "ids": list(ids), "offsets": list(offsets)}
    value(changed) if callable(value) else changed.update({place: value})
    return tuple(changed.values())


def last_offset(arguments):
    arguments["offsets"][1][-1] += 1


def fewer_samples(arguments):
    arguments["ids"][1], arguments["offsets"][1] = bags(3, 7, torch.Generator().manual_seed(1))


def other_batch(arguments):
    arguments["dense"] = arguments["dense"][:3]


def wrong_id(arguments):
    arguments["ids"][1][0] = 7


@pytest.mark.parametrize("place, value, expected", [
    ("dense", torch.ones(4, 12), r'"dense": expected \[batch, 13\] of torch.float32'),
    ("dense", torch.ones(4, 13, dtype=torch.float64), r'"dense": expected .*float32'),
    ("dense", 3.0, r'"dense": expected a tensor, found float'),
    ("ids", [torch.tensor([1])], "not built as the example inputs were"),
    ("offsets", last_offset, r'feature "ids_1": offsets must go from 0 to the number of ids'),
    ("offsets", fewer_samples, r'"offsets_1": expected 5 for size 0, by .* other arguments, found 4'),
    ("dense", other_batch, r'"offsets_0": expected 4 for size 0, by .* found 5'),
    ("ids", wrong_id, r'feature "ids_1", bag 0.*id 7 is out of range for table "tables.1"'),
], ids=["width", "type", "number", "structure", "offsets", "batch", "other batch", "id"])
def test_wrong_arguments_of_a_call(program, place, value, expected):
    with pytest.raises(ValueError, match=expected):
        program(*change(place, value))
    program(*change("dense", torch.ones(4, 13)))  # goes on


def test_features_of_different_batches(generator):
    """Features whose offsets torch.export does not relate."""
    model = Of(lambda table, ids, more: (table(ids).sum(1), table(more))).eval()
    exported = neuroshard.export(model, (IDS, torch.tensor([1, 2, 3, 4])))
    assert len(exported.inputs) == 2
    with exported.open(devices=2) as opened, torch.no_grad():
        got = opened(IDS, torch.tensor([5, 6]))
        torch.testing.assert_close(got, model(IDS, torch.tensor([5, 6])))


def test_closed_program(generator):
    exported = neuroshard.export(DLRM().eval(), DLRM.batch(3, generator))
    program = exported.open()
    program.close()
    program.close()
    with pytest.raises(ValueError, match="has been closed"):
        program(*DLRM.batch(3, generator))


def test_lengths_that_do_not_fit():
    from torchrec import KeyedJaggedTensor

    from export_torchrec_models import DCN
    model = DCN().eval()
    batch = DCN.batch(3, torch.Generator().manual_seed(1))
    exported = neuroshard.export(model, batch)

    def changed(lengths):
        return exported.jagged(exported.flatten((batch[0], KeyedJaggedTensor(
            keys=batch[1].keys(), values=batch[1].values(), lengths=lengths)), {}))

    lengths = batch[1].lengths()
    changed(lengths)
    for wrong, expected in ((lengths - torch.eye(len(lengths))[0].int(), "sum is the number of"),
                            (lengths.roll(1) * 9, "lengths whose sum"),
                            (torch.cat([lengths[:2] * torch.tensor([9, -7]).int(), lengths[2:]]),
                             "lengths from 0, found -")):
        with pytest.raises(neuroshard.export.ExportError, match=expected):
            changed(wrong)


def test_features_that_the_keys_lack(generator):
    from export_torchrec_models import DCN, keyed
    keys = keyed(3, {"city": 50}, generator)
    with pytest.raises(neuroshard.export.ExportError, match='no feature "device" in .*city'):
        neuroshard.export(DCN().eval(), (torch.ones(3, 13), keys))
    model = DCN().eval()
    exported = neuroshard.export(model, DCN.batch(3, generator))
    assert "forward" not in vars(model.sparse)
    with exported.open() as program, pytest.raises(ValueError, match="not built as the example"):
        program(torch.ones(3, 13), keys)
