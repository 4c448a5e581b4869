"""Every form of an embedding becomes a lookup that gives the results of eager mode."""

import neuroshard
import pytest
import torch
import torch.nn.functional as functional
from export_models import bags
from export_runs import compare, embeddings_left, hand_made_plan, lookups_in
from torch import nn

ROWS, DIM = 23, 8


class Form(nn.Module):
    """`rows(table, *arguments)` on one table, and a dense layer on what it gives."""

    def __init__(self, rows, table=None):
        super().__init__()
        self.table = table or nn.EmbeddingBag(ROWS, DIM, mode="sum")
        self.rows = rows
        self.head = nn.Linear(DIM, 2)

    def forward(self, *arguments):
        return self.head(self.rows(self.table, *arguments))


def open_bags(samples, generator, id_type=torch.int64):
    ids, offsets = bags(samples, ROWS, generator, id_type=id_type)
    return ids, offsets[:-1]


def i32_bags(samples, generator):
    return open_bags(samples, generator, torch.int32)


def closed_bags(samples, generator):
    return bags(samples, ROWS, generator)


def weighted_bags(samples, generator):
    ids, offsets = bags(samples, ROWS, generator)
    return ids, offsets[:-1], torch.randn(len(ids), generator=generator)


def rows_of_ids(samples, generator):
    return (torch.randint(0, ROWS, (samples, 3), generator=generator),)


def weighted_rows(samples, generator):
    return (*rows_of_ids(samples, generator), torch.randn(samples, 3, generator=generator))


def one_id(samples, generator):
    return (torch.randint(0, ROWS, (samples,), generator=generator),)


def grid_of_ids(samples, generator):
    return (torch.randint(0, ROWS, (samples, 2, 3), generator=generator),)


def bag(**options):
    return nn.EmbeddingBag(ROWS, DIM, **options)


def from_function(table, ids, offsets, weights=None):
    return functional.embedding_bag(ids, table.weight, offsets, mode="sum",
                                    per_sample_weights=weights)


def hashed(table, ids, offsets):
    return table((ids * 2654435761 + 7) % ROWS, offsets)


def learned_weights(table, ids, offsets, weights):
    return table(ids, offsets, torch.sigmoid(weights))


# form: (what reads the table, the table, its arguments, how the IR says it)
FORMS = {
    "first offsets": (nn.Module.__call__, bag(mode="sum"), open_bags, "sum"),
    "all offsets": (nn.Module.__call__, bag(mode="mean", include_last_offset=True), closed_bags,
                    "mean"),
    "i32 ids": (nn.Module.__call__, bag(mode="sum"), i32_bags, "sum"),
    "sample weights": (nn.Module.__call__, bag(mode="sum"), weighted_bags, "weighted"),
    "fixed bags": (nn.Module.__call__, bag(mode="mean"), rows_of_ids, "mean"),
    "weighted fixed bags": (lambda table, ids, weights: table(ids, None, weights),
                            bag(mode="sum"), weighted_rows, "weighted"),
    "padding": (nn.Module.__call__, bag(mode="mean", padding_idx=-3), open_bags,
                f"padding_idx {ROWS - 3}"),
    "sparse gradients": (nn.Module.__call__, bag(mode="sum", sparse=True), open_bags, "sum"),
    "function": (from_function, bag(), open_bags, "sum"),
    "weighted function": (from_function, bag(), weighted_bags, "weighted"),
    "hashed ids": (hashed, bag(mode="sum"), open_bags, "sum"),
    "computed weights": (learned_weights, bag(mode="sum"), weighted_bags, "weighted"),
    "one row": (nn.Module.__call__, nn.Embedding(ROWS, DIM), one_id, "unpooled"),
    "rows": (lambda table, ids: table(ids).mean(1), nn.Embedding(ROWS, DIM, padding_idx=1),
             rows_of_ids, "unpooled"),
    "grid of rows": (lambda table, ids: table(ids).sum((1, 2)), nn.Embedding(ROWS, DIM),
                     grid_of_ids, "unpooled"),
    "rows by function": (lambda table, ids: functional.embedding(ids, table.weight).sum(1),
                         nn.Embedding(ROWS, DIM), rows_of_ids, "unpooled"),
    "frozen": (nn.Module.__call__, nn.EmbeddingBag.from_pretrained(
        torch.randn(ROWS, DIM), mode="sum"), open_bags, "sum"),
}


@pytest.mark.parametrize("name", FORMS)
def test_form(name, generator):
    rows, table, arguments, written = FORMS[name]
    model = Form(rows, table).eval()
    exported = neuroshard.export(model, arguments(3, generator), optimizer="sgd")
    (line,) = lookups_in(exported)
    assert written in line and not embeddings_left(exported)
    assert ("optimizer" in exported.mlir) == table.weight.requires_grad
    plan = hand_made_plan(exported, 2, name, ("rows", "columns"))
    compare(model, exported, [arguments(size, generator) for size in (7, 2)], plan=plan)


def test_half_precision_tables(generator):
    for dtype, name in ((torch.float16, "f16"), (torch.bfloat16, "bf16")):
        model = Form(lambda table, *ids: table(*ids).float(), bag(mode="sum").to(dtype)).eval()
        exported = neuroshard.export(model, rows_of_ids(3, generator))
        assert f"{ROWS} x {DIM} x {name}" in exported.mlir
        with exported.open(devices=2) as program, torch.no_grad():
            arguments = rows_of_ids(9, generator)
            # Both round sums of three, eager maybe after each addition.
            torch.testing.assert_close(program(*arguments), model(*arguments), rtol=0.02,
                                       atol=0.02)


class Shared(nn.Module):
    """Two modules on one parameter, one feature in two tables, one column taken twice."""

    def __init__(self):
        super().__init__()
        self.first, self.second = bag(mode="sum"), nn.Embedding(ROWS, DIM)
        self.second.weight = self.first.weight
        self.bias = nn.Embedding(ROWS, 1)

    def forward(self, ids):
        return (self.first(ids[:, :1]) + self.second(ids[:, 1]) + self.first(ids[:, :1])
                + self.bias(ids[:, 1]))


def test_shared_tables_and_features(generator):
    model = Shared().eval()
    exported = neuroshard.export(model, rows_of_ids(3, generator))
    assert [table.name for table in exported.tables] == ["first", "bias"]
    (input_,) = exported.inputs
    assert len(exported.lookups) == 4 and len(input_.features) == 2
    assert [one.feature for one in exported.lookups] == ["ids", "ids_1", "ids", "ids_1"]
    compare(model, exported, [rows_of_ids(5, generator)], devices=2)


class Inputs(nn.Module):
    """Arguments by keyword, ids of two types, numbers that are no tensors."""

    def __init__(self):
        super().__init__()
        self.wide, self.narrow = bag(mode="sum"), bag(mode="sum")

    def forward(self, wide, narrow, *, scale=1, extra=None):
        rows = self.wide(*wide) * scale + self.narrow(*narrow["ids"])
        return (rows, {"extra": None if extra is None else extra + 1})


def test_arguments_of_many_kinds(generator):
    model = Inputs().eval()

    def keywords(size, scale=2):
        return {"scale": scale, "extra": torch.randn(size, 2, generator=generator)}

    def arguments(size):
        return open_bags(size, generator), {"ids": i32_bags(size, generator)}

    exported = neuroshard.export(model, arguments(3), keywords(3))
    assert [one.id_type for one in exported.inputs] == ["i64", "i32"]
    with exported.open(devices=2) as program, torch.no_grad():
        given, named = arguments(5), keywords(5)
        rows, rest = program(*given, **named)
        torch.testing.assert_close((rows, rest), model(*given, **named), rtol=1e-5, atol=1e-5)
        with pytest.raises(neuroshard.export.ExportError, match=r'"scale".*exported for 2'):
            program(*given, **keywords(5, scale=3))


class Positions(nn.Module):
    """An embedding of positions, the same for every sample, and a tied output layer."""

    def __init__(self):
        super().__init__()
        self.items, self.places = nn.Embedding(ROWS, DIM), nn.Embedding(3, DIM)

    def forward(self, ids):
        rows = (self.items(ids) + self.places(torch.arange(3))).sum(1)
        return rows


def test_tables_that_stay_dense(generator):
    model = Positions().eval()
    exported = neuroshard.export(model, rows_of_ids(4, generator), dense_tables=["places"])
    assert exported.counts == {"neuroshard.table": 1, "neuroshard.lookup": 1,
                               "embeddings left to torch": 1}
    compare(model, exported, [rows_of_ids(6, generator)], devices=2)
