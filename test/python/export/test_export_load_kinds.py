"""What else loaded exports have in common with saved ones: arguments and results of all kinds,
tensors in no state_dict, weights that come later, and what devices may share."""

import collections
import dataclasses
import typing

import neuroshard
import pytest
import sympy
import torch
from export_runs import assert_same_bits, assert_same_parts
from export_torchrec_models import keyed
from neuroshard.export._files.expressions import expression_of_plain, expression_to_plain
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._sympy import functions
from torchrec import EmbeddingCollection, EmbeddingConfig, JaggedTensor, KeyedJaggedTensor
from torchrec import KeyedTensor

ROWS, DIM = 20, 4


class Of(nn.Module):
    """A module whose forward is the given function of module and arguments."""

    def __init__(self, function, **buffers):
        super().__init__()
        self.table, self.head, self.function = nn.Embedding(ROWS, DIM), nn.Linear(DIM, 1), function
        for name, values in buffers.items():
            self.register_buffer(name, values, persistent=False)

    def forward(self, *arguments):
        return self.function(self, *arguments)


class Pair(typing.NamedTuple):
    ids: torch.Tensor
    scale: torch.Tensor


@dataclasses.dataclass
class Scaled:
    ids: torch.Tensor
    scale: torch.Tensor | None = None


torch.export.register_dataclass(Scaled, serialized_type_name="test_export_load_kinds.Scaled")
pytree._register_namedtuple(Pair, serialized_type_name="test_export_load_kinds.Pair")


def ids(count):
    return torch.arange(count) % ROWS


def jagged(count):
    return JaggedTensor(values=torch.arange(2.0 * count), lengths=torch.full((count,), 2))


def of_keys(count):
    return keyed(count, {"x": ROWS, "y": ROWS}, torch.Generator().manual_seed(count))


def ordered(count):
    return collections.OrderedDict(later=ids(count), first=[ids(count), ()])


# function, arguments of so many samples, other arguments that are refused
KINDS = {
    "dataclass": (lambda m, a: Scaled(m.table(a.ids) * a.scale[:, None]),
                  lambda n: (Scaled(ids(n), torch.ones(n)),), [(Scaled(ids(5)),)]),
    "namedtuple": (lambda m, a: Pair(m.table(a.ids), a.scale),
                   lambda n: (Pair(ids(n), torch.ones(n)),), [((ids(5), torch.ones(5)),)]),
    "ordered dict": (lambda m, a: a | {"rows": m.table(a["later"])}, lambda n: (ordered(n),), []),
    "default dict": (lambda m, a: m.table(a["x"]),
                     lambda n: (collections.defaultdict(list, x=ids(n)),), [({"x": ids(4)},)]),
    "jagged": (lambda m, a, j: (m.table(a), j), lambda n: (ids(n), jagged(n)), []),
    "keyed": (lambda m, a, k: (m.table(a), k, k["x"].values()), lambda n: (ids(n), of_keys(n)),
              [(ids(4), keyed(4, {"y": ROWS, "x": ROWS}, torch.Generator()))]),
    "keyed result": (lambda m, a: KeyedTensor(["p", "q"], [1, 3], m.table(a)),
                     lambda n: (ids(n),), []),
    "numbers": (lambda m, a, *given: {1: m.table(a) * given[0], "x": given, 2: None},
                lambda n: (ids(n), 2, "text", None, True, -2.5),
                [(ids(4), 3, "text", None, True, -2.5)]),
    "not a number": (lambda m, a, *given: m.table(a) * given[1],
                     lambda n: (ids(n), float("nan"), float("-inf"), 2**70),
                     [(ids(4), 1.0, float("-inf"), 2**70)]),
    "unread": (lambda m, a, *given: m.table(a), lambda n: (
        ids(n), torch.ones(n, dtype=torch.complex64), torch.tensor(3), torch.zeros(0, 2),
        torch.ones(n, dtype=torch.bool), torch.ones(n).to(torch.float8_e4m3fn)), []),
}


@pytest.mark.parametrize("name", KINDS)
def test_arguments_and_results(name, tmp_path):
    function, arguments, refused = KINDS[name]
    exported = neuroshard.export(Of(function).eval(), arguments(4))
    exported.save(tmp_path / "model", weights=True)
    loaded = neuroshard.load_export(tmp_path / "model")
    assert_same_parts(exported, loaded, [arguments(7), arguments(1), *refused])
    for one in refused:
        with pytest.raises(neuroshard.export.ExportError, match="as the example|exported for"):
            loaded.flatten(one, {})
    loaded.save(tmp_path / "again")
    assert_same_parts(loaded, neuroshard.load_export(tmp_path / "again"), [])


def test_few_ids_in_the_example(tmp_path):
    """So few that torch would take their number for a constant."""
    model = nn.Sequential(EmbeddingCollection(tables=[EmbeddingConfig(
        name="a", embedding_dim=DIM, num_embeddings=ROWS, feature_names=["x", "y"])]))
    lengths = torch.tensor([0, 1, 0, 0])
    example = KeyedJaggedTensor(["x", "y"], values=torch.tensor([3]), lengths=lengths)
    exported = neuroshard.export(model, (example,))
    exported.save(tmp_path / "model", weights=True)
    assert_same_parts(exported, neuroshard.load_export(tmp_path / "model"),
                      [(example,), (of_keys(5),), (of_keys(1),)])


def test_weights_that_come_later(tmp_path):
    model = Of(lambda m, a: m.head(m.table(a) + m.mask) * torch.tensor([2.0]),
               mask=torch.randn(DIM)).eval()
    exported = neuroshard.export(model, (ids(4),))
    exported.save(tmp_path / "model")
    loaded = neuroshard.load_export(tmp_path / "model")
    state = model.state_dict()
    assert "mask" not in state and all(loaded.state[name].is_meta for name in state)
    with pytest.raises(neuroshard.export.ExportError, match='"table" is on the meta device'):
        loaded.save(tmp_path / "other", weights=True)
    with loaded.open(devices=2) as program, exported.open(devices=2) as expected:
        with pytest.raises(neuroshard.export.ExportError,
                           match='"head.weight" has no values: .* saved without weights; expected '
                                 r"program.load\(state_dict\)"):
            program(ids(5))
        for wrong, text in (({"table.weight": state["table.weight"]}, '"head.weight", .*NoneType'),
                            ({**state, "head.bias": torch.ones(2)}, r'"head.bias", \(1,\) .*\(2'),
                            ({**state, "head.bias": torch.ones(1).double()}, "torch.float64")):
            with pytest.raises(neuroshard.export.ExportError, match=text):
                program.load(wrong)
        program.load({"head.weight": torch.zeros(1, DIM), "head.bias": torch.zeros(1),
                      "table.weight": torch.ones(ROWS, DIM)})
        assert not program(ids(3)).any()
        program.load(state)
        assert_same_bits(program(ids(5)), expected(ids(5)))
        program.load({"table.weight": torch.zeros(ROWS, DIM)})  # the others stay
        with torch.no_grad():
            torch.testing.assert_close(program(ids(3)), (model.head(model.mask) * 2).expand(3, 1))


def test_tables_are_zero_until_they_are_loaded(tmp_path):
    model = Of(lambda m, a: m.table(a)).eval()
    neuroshard.export(model, (ids(4),)).save(tmp_path / "model")
    with neuroshard.load_export(tmp_path / "model").open() as program:
        assert torch.equal(program(ids(6)), torch.zeros(6, DIM))
        program.load(model.state_dict())
        assert torch.equal(program(ids(6)), model(ids(6)).detach())


@pytest.mark.parametrize("kind", ["all", "dense"])
def test_a_model_on_the_meta_device(kind, tmp_path):
    with torch.device("meta"):
        model = Of(lambda m, a: m.head(m.table(a))).eval()
    if kind == "dense":  # alone
        model.table = nn.Embedding(ROWS, DIM)
    exported = neuroshard.export(model, (ids(4),))
    exported.save(tmp_path / "model")
    loaded = neuroshard.load_export(tmp_path / "model")
    assert loaded.mlir == exported.mlir
    state = {name: torch.randn(one.shape) for name, one in model.state_dict().items()}
    made = []
    for one in (exported, loaded):
        with one.open() as program:
            with pytest.raises(neuroshard.export.ExportError, match='"head.weight" has no values'):
                program(ids(5))
            program.load(state)
            made.append(program(ids(5)))
    assert_same_bits(*made)


LINALG = """module {
  func.func @dense(%rows: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<?x4xf32> {
    return %b : tensor<?x4xf32>
  }
}
"""


def test_what_devices_may_not_share(tmp_path):
    """Tried at the export with weights, it is known after loading without them."""
    model = Of(lambda m, a, b: m.table(a) * (b - b.mean(0))).eval()
    example = ids(4), torch.randn(4, DIM)
    exported = neuroshard.export(model, example)
    exported.dense.linalg = LINALG  # as if
    exported.save(tmp_path / "model")
    loaded = neuroshard.load_export(tmp_path / "model")
    assert_same_parts(exported, loaded, [example])
    for one in (exported, loaded):
        with pytest.raises(neuroshard.export.ExportError, match="result_0 of a sample depends on"):
            one.open(devices=2)


s, t = (sympy.Symbol(name, integer=True, positive=True) for name in "st")


@pytest.mark.parametrize("expression", [
    3, s, s + 1, 2 * s * t - 7, s**2, sympy.Eq(s, t), sympy.Ne(functions.Mod(3 * s, 4), 1),
    sympy.And(s > 1, sympy.Or(t <= 4, s >= t)), functions.FloorDiv(s + 1, t), functions.Max(s, t),
    functions.FloatTrueDiv(functions.ToFloat(s), 3.5) < 1.25, sympy.Rational(2, 3) * s,
    functions.ModularIndexing(s, 4, t), functions.PythonMod(s - t, 3), sympy.true,
    functions.CeilToInt(functions.IntTrueDiv(s, t))], ids=str)
def test_expressions(expression):
    made = expression_of_plain(expression_to_plain(expression))
    assert str(made) == str(expression)
    assert expression_to_plain(made) == expression_to_plain(expression)
    for first, second in ((1, 1), (5, 2), (8, 3)):
        values = {"s": first, "t": second}
        assert _at(made, values) == _at(expression, values)


def _at(expression, values):
    return sympy.sympify(expression).subs({one: values[one.name]
                                           for one in sympy.sympify(expression).free_symbols})


@pytest.mark.parametrize("value", [None, 1.5, [], ["Add", None], ["__import__", "os"], {"s": 1},
                                   ["Rational", 1, 0], ["Float", "x"], ["Float"], [["Add"], 1]],
                         ids=str)
def test_no_expressions(value):
    with pytest.raises(ValueError):
        expression_of_plain(value)


def test_conditions_that_no_file_can_hold(tmp_path):
    model = Of(lambda m, a: m.table(a) * (2 if torch.sym_sqrt(a.shape[0]) > 1.5 else 1)).eval()
    exported = neuroshard.export(model, (ids(8),))
    with pytest.raises(neuroshard.export.ExportError, match="sqrt.*, on which the model branches"):
        exported.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
