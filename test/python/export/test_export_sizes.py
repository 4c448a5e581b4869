"""A program never takes the example's path for sizes for which the model takes another."""

import json

import neuroshard
import pytest
import torch
from export_runs import assert_equal, compare
from torch import nn

ROWS, DIM = 20, 4


class Of(nn.Module):
    """A module whose forward is the given function of module and arguments."""

    def __init__(self, function):
        super().__init__()
        self.rows, self.bags = nn.Embedding(ROWS, DIM), nn.EmbeddingBag(ROWS, DIM, mode="sum")
        self.function = function

    def forward(self, *arguments):
        return self.function(self, *arguments)


def ids(count):
    return torch.arange(count) % ROWS


def dense(size):
    return torch.ones(size, DIM)


def bags(samples, count):
    return ids(count), torch.arange(samples)


# function, example, calls with what the error says of them; "" where the program equals eager
CASES = {
    "more than": (lambda m, i: m.rows(i) * (2 if i.shape[0] > 4 else 1), (ids(8),),
                  {(ids(5),): "", (ids(4),): r"is for arguments_0.shape\[0\] > 4.*sizes.py:\d+\).*found"}),
    "even": (lambda m, i: m.rows(i) * (2 if i.shape[0] % 2 == 0 else 1), (ids(8),),
             {(ids(2),): "", (ids(7),): "Mod", (ids(1),): "Mod"}),
    "several": (lambda m, i: m.rows(i) * (2 if i.shape[0] > 1 else 1), (ids(8),),
                {(ids(2),): "", (ids(1),): r"shape\[0\] > 1", (ids(0),): r"shape\[0\] > 1"}),
    "not one": (lambda m, i: m.rows(i) * (2 if i.shape[0] == 1 else 1), (ids(8),),
                {(ids(3),): "", (ids(1),): r"Ne\(arguments_0.shape\[0\], 1\)"}),
    "dense": (lambda m, i, d: m.rows(i) * (2 if d.shape[0] > 4 else 1), (ids(8), dense(6)),
              {(ids(3), dense(5)): "", (ids(8), dense(3)): r"arguments_1.shape\[0\] > 4"}),
    "constant": (lambda m, i, d: m.rows(i) * (2 if d.shape[0] == 6 else 1), (ids(8), dense(6)),
                 {(ids(3), dense(6)): "", (ids(3), dense(5)): r'"arguments_1": expected 6 .* example, found 5'}),
    "ids of bags": (lambda m, i, o: m.bags(i, o) * (2 if i.shape[0] > 9 else 1), bags(4, 12),
                    {bags(3, 10): "", bags(4, 9): r"arguments_0.shape\[0\] > 9"}),
    "split": (lambda m, i: torch.cat(m.rows(i).split(4)[::-1]), (ids(8),),
              {(ids(7),): "", (ids(5),): "", (ids(9),): "arguments_0.shape", (ids(4),): "arguments_0.shape"}),
    "pairs": (lambda m, i: m.rows(i).view(-1, 2 * DIM), (ids(8),),
              {(ids(2),): "", (ids(6),): "", (ids(5),): "arguments_0.shape"}),
}


@pytest.mark.parametrize("name", CASES)
def test_other_sizes(name):
    function, example, calls = CASES[name]
    model = Of(function).eval()
    exported = neuroshard.export(model, example)
    for arguments, expected in calls.items():
        if expected:
            with pytest.raises(neuroshard.export.ExportError, match=expected):
                exported.flatten(arguments, {})
            continue
        values = exported.flatten(arguments, {})
        with torch.no_grad():
            table = model.bags if "bags" in name else model.rows
            offsets = arguments[1:] if "bags" in name else ()
            made = exported.run_dense([table(arguments[0], *offsets)], values)
            assert_equal(made[0], model(*arguments))


def test_loop_over_the_batch():
    model = Of(lambda m, i: sum(m.rows(i)[number] for number in range(i.shape[0]))).eval()
    with pytest.raises(neuroshard.export.ExportError, match="reads 8 samples whatever the batch"):
        neuroshard.export(model, (ids(8),))
    exported = neuroshard.export(model, (ids(8),), dynamic_batch=False)
    with pytest.raises(neuroshard.export.ExportError, match='"arguments_0": expected 8 for size 0'):
        exported.flatten((ids(7),), {})


def test_conditions_are_saved(tmp_path):
    exported = neuroshard.export(Of(CASES["several"][0]).eval(), (ids(8),))
    exported.save(tmp_path / "model")
    said = json.loads((tmp_path / "model.json").read_text())["sizes"]
    assert said == exported.conditions == ["arguments_0.shape[0] > 1"]


# function and example of 0 or 1 samples or ids, and calls of other sizes
FEW = {
    **{f"{count} ids": (lambda m, i: m.rows(i) * 2, (ids(count),),
                        [(ids(5),), (ids(1),), (ids(0),)])
       for count in (0, 1)},
    **{f"{samples} bags of {count} ids": (
        lambda m, i, o: m.bags(i, o) * 2, (ids(count), torch.zeros(samples, dtype=torch.int64)),
        [bags(3, 7), bags(1, 1), (ids(0), torch.zeros(2, dtype=torch.int64))])
       for samples, count in ((0, 0), (1, 0), (1, 1), (1, 4), (4, 0), (4, 1))},
    **{f"{count} rows of ids": (lambda m, i: m.rows(i).sum(1), (ids(3 * count).view(count, 3),),
                                [(ids(6).view(2, 3),), (ids(3).view(1, 3),)]) for count in (0, 1)},
    "one sample of numbers": (lambda m, i, d: m.rows(i) + d, (ids(1), dense(1)),
                              [(ids(6), dense(6)), (ids(1), dense(1))]),
    "numbers for all samples": (lambda m, i, d: m.rows(i) + d, (ids(8), dense(1)),
                                [(ids(6), dense(1)), (ids(1), dense(1))]),
    "one id and numbers for all bags": (
        lambda m, i, o, d: m.bags(i, o) * d, (ids(1), torch.zeros(4, dtype=torch.int64), dense(1)),
        [(*bags(2, 6), dense(1))]),
}


@pytest.mark.parametrize("name", FEW)
def test_examples_of_few(name, tmp_path):
    function, example, calls = FEW[name]
    model = Of(function).eval()
    exported = neuroshard.export(model, example, batch=8)
    exported.save(tmp_path / "model", weights=True)
    compare(model, exported, calls)
    compare(model, neuroshard.load_export(tmp_path / "model"), calls)


def test_branch_on_one_sample():
    exported = neuroshard.export(
        Of(lambda m, i: m.rows(i) * (2 if i.shape[0] > 1 else 1)).eval(), (ids(1),))
    with pytest.raises(neuroshard.export.ExportError, match=r"is for arguments_0.shape\[0\] <= 1"):
        exported.flatten((ids(2),), {})


class Keyed(nn.Module):
    """Branches on the batch of a KeyedJaggedTensor, which only its lengths show."""

    def __init__(self):
        from export_torchrec_models import bag
        from torchrec import EmbeddingBagCollection
        super().__init__()
        self.tables = EmbeddingBagCollection(tables=[bag("a", ROWS, ["x"]), bag("b", ROWS, ["y"])])

    def forward(self, features):
        return self.tables(features).values() * (2 if features.stride() > 1 else 1)


def test_batches_of_keys(generator):
    from export_torchrec_models import keyed
    model = Keyed().eval()

    def batch(samples):
        return (keyed(samples, {"x": ROWS, "y": ROWS}, generator),)

    exported = neuroshard.export(model, batch(4))
    assert exported.conditions == ["batch > 1"]
    compare(model, exported, [batch(2), batch(7)], devices=2)
    with pytest.raises(neuroshard.export.ExportError, match="is for batch > 1"):
        exported.flatten(batch(1), {})


@pytest.mark.parametrize("lengths", [[], [0, 0], [1, 0], [0, 0, 0, 0], [0, 1, 0, 0]])
def test_keys_of_few(lengths):
    from torchrec import KeyedJaggedTensor

    class Beside(Keyed):
        """Joins the results with numbers of as many samples."""

        def forward(self, features, numbers):
            return torch.cat([self.tables(features).values(), numbers], 1)

    def batch(lengths):
        keyed = KeyedJaggedTensor(keys=["x", "y"], values=ids(sum(lengths)),
                                  lengths=torch.tensor(lengths, dtype=torch.int64))
        return keyed, dense(len(lengths) // 2)

    model = Beside().eval()
    exported = neuroshard.export(model, batch(lengths), batch=8)
    compare(model, exported, [batch(one) for one in ([1, 2, 0, 3], [0, 0], [2, 1, 1, 1, 0, 4])])
    with pytest.raises(neuroshard.export.ExportError, match="found"):
        exported.flatten((batch([1, 2])[0], dense(3)), {})
