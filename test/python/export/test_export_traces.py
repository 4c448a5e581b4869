"""Side effects of a traced model: writes in place, random numbers, training mode."""

import neuroshard
import pytest
import torch
import torch.nn.functional as functional
from export_runs import compare
from torch import nn

ROWS, DIM = 20, 4


class Of(nn.Module):
    """A module with a table whose forward is the given function."""

    def __init__(self, function, **modules):
        super().__init__()
        self.table, self.function = nn.Embedding(ROWS, DIM), function
        self.parts = nn.ModuleDict(modules)

    def forward(self, *arguments):
        return self.function(self.table, *arguments, **self.parts)


def ids(size, generator):
    return (torch.randint(ROWS, (size,), generator=generator),)


def filled_ids(table, given):
    changed = given.clone()
    changed[:] = 3
    return table(changed)


def filled_rows(table, given):
    rows = table(given) * 1
    rows[:, 0] = 7.0
    return rows


def copied_rows(table, given):
    both = torch.zeros(given.shape[0], 2 * DIM)
    both[:, :DIM].copy_(table(given))
    both[:, DIM:].add_(1)
    return both


def two_readings(table, given):
    changed = given.clone()
    before = table(changed)
    changed.view(-1, 1).remainder_(5)
    return before, table(changed)


def masked_rows(table, given):
    rows = table(given).detach().clone()
    rows[given % 2 == 0] = 0
    return rows.relu_()


WRITES = [filled_ids, filled_rows, copied_rows, two_readings, masked_rows]


@pytest.mark.parametrize("function", WRITES, ids=lambda one: one.__name__)
def test_writes_in_place(function, generator):
    model = Of(function).eval()
    exported = neuroshard.export(model, ids(4, generator))
    assert all("test_export_traces.py\":" in one.location for one in exported.lookups)
    compare(model, exported, [ids(size, generator) for size in (7, 1)], devices=2)


def changed_argument(table, given):
    given[:2] += 1
    return table(given)


def changed_table(table, given):
    with torch.no_grad():
        table.weight[0].fill_(1)
    return table(given)


@pytest.mark.parametrize("function", [changed_argument, changed_table])
def test_writes_that_others_see(function, generator):
    with pytest.raises(neuroshard.export.ExportError, match="in place|read by .* too"):
        neuroshard.export(Of(function).eval(), ids(4, generator))


def attention(table, given, chance=0.5):
    rows = table(given)[:, None, :]
    return functional.scaled_dot_product_attention(rows, rows, rows, dropout_p=chance)


def random_rows(table, given):
    return table(given) * torch.rand(given.shape[0], 1)


def recurrent(kind, **options):
    return Of(lambda table, given, layer: layer(table(given)[:, None])[0],
              layer=kind(DIM, DIM, 2, batch_first=True, **options))


@pytest.mark.parametrize("model, expected", [
    (recurrent(nn.LSTM, dropout=0.5), "lstm.* is as in training; call model.eval"),
    (recurrent(nn.GRU, dropout=0.5), "gru.* is as in training"),
    (recurrent(nn.RNN, dropout=0.5), "rnn_tanh.* is as in training"),
    (Of(attention), "attention.* is as in training"),
    (Of(lambda table, given: functional.feature_alpha_dropout(table(given), 0.3, True)),
     "alpha_dropout.* is as in training"),
    (Of(lambda table, given: functional.rrelu(table(given), training=True)), "is as in training"),
    (Of(random_rows), "draws random numbers with aten.rand"),
    (Of(lambda table, given: torch.bernoulli(table(given).sigmoid())), "draws random numbers"),
], ids=["lstm", "gru", "rnn", "attention", "alpha", "rrelu", "rand", "bernoulli"])
def test_random(model, expected, generator):
    with pytest.raises(neuroshard.export.ExportError, match=expected):
        neuroshard.export(model, ids(4, generator))


@pytest.mark.parametrize("model", [
    recurrent(nn.GRU), recurrent(nn.LSTM, dropout=0.5).eval(),
    Of(lambda *given: attention(*given, chance=0.0)),
    Of(lambda table, given: functional.dropout(table(given), 0.0)),
    Of(lambda table, given, norm: norm(table(given)),
       norm=nn.BatchNorm1d(DIM, track_running_stats=False)).eval()],
    ids=["gru", "lstm", "attention", "dropout", "norm"])
def test_not_random(model, generator):
    exported = neuroshard.export(model, ids(4, generator))
    arguments = ids(4, generator)
    rows = [model.table(*arguments).detach()]
    with torch.no_grad():
        made = exported.run_dense(rows, exported.flatten(arguments, {}))
        torch.testing.assert_close(made[0], model(*arguments))


def checked_ids(table, given):
    torch._check(given.max().item() < 10)
    return table(given)


def asserted_ids(table, given):
    torch._assert_async((given < 10).all())
    return table(given)


def checked_rows(table, given):
    rows = table(given)
    torch._check(rows.sum().item() < 1e6)
    return rows


@pytest.mark.parametrize("function", [checked_ids, asserted_ids, checked_rows])
def test_checks_of_values(function):
    model = Of(function).eval()
    with torch.no_grad():
        model.table.weight[10:] = 1e7
    exported = neuroshard.export(model, (torch.arange(8),))
    with exported.open() as program, torch.no_grad():
        assert torch.equal(program(torch.arange(5)), model(torch.arange(5)))
        with pytest.raises(neuroshard.export.ExportError, match="does not take these arguments"):
            program(torch.arange(12))
