"""Small models for neuroshard.EmbeddingTables and neuroshard.cuda, their artifacts on the emulator, and
the same tables as torch.nn.EmbeddingBag with the optimizers of torch. Importing this chooses the
emulator as the driver of neuroshard.cuda."""

import os
import re
from pathlib import Path

import pytest
import torch

import neuroshard as ns
from support import artifact
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
EMULATOR = BUILD / "lib" / "libneuroshard_emulator.so"
os.environ["NEUROSHARD_CUDA_DRIVER"] = str(EMULATOR)
os.environ.setdefault("NEUROSHARD_CUDA_LIBRARY", str(BUILD / "lib" / "libneuroshard_cuda.so"))

DEVICES = ("cpu", "emulator")
OPTIMIZERS = ("sgd", "adagrad", "rowwise_adagrad", "adam")
ROWS = {"first": 60, "second": 40, "third": 30}
DIMS = {"first": 8, "second": 12, "third": 20}
EPS = 1e-8
BATCH = 16  # of most tests


def usable():
    """A mark that skips tests where the emulator cannot be loaded."""
    sanitized = re.search(r"^NEUROSHARD_SANITIZE:\w+=.", (BUILD / "CMakeCache.txt").read_text(),
                          re.M)
    return pytest.mark.skipif(bool(sanitized) or not EMULATOR.exists(),
                              reason="the emulator is not built, or has sanitizers")


def bags_model(kind):
    """Table `first` is read by two features, feature `b` from two tables; `c` has weights."""
    tables = [Table(name, ROWS[name], DIMS[name], "f32", Optimizer(kind, EPS) if kind else None)
              for name in ROWS]
    return Model(tables, [
        Input("x", ("a", "b"), (Lookup("a", "first"), Lookup("b", "second", "mean"),
                                Lookup("b", "first"))),
        Input("w", ("c",), (Lookup("c", "third", weighted=True),), weighted=True)])


def types_model():
    """Other types of ids, tables and results; rows of odd sizes; one that is not pooled."""
    sgd = Optimizer("sgd")
    return Model([Table("half", 20, 6, "f16", sgd), Table("brain", 25, 8, "bf16", sgd)],
                 [Input("x", ("p", "q"), (Lookup("p", "half", result="f16"),
                                          Lookup("q", "brain", "unpooled")), "i32")])


def whole(model, devices=1):
    """A plan with every table whole on the last device."""
    return Plan(devices, [Shard(table.name, (0, table.rows), (0, table.dim), (devices - 1,))
                          for table in model.tables])


def compiled(model, folder, plan=None, training=True):
    options = ["--training"] if training else []
    return artifact.compile_text(model.text(plan or whole(model)), folder, *artifact.EMULATED,
                                 *options)


def random_jagged(rows, batch, generator, longest=5, weighted=False):
    """(ids, offsets, weights) of one feature for each of `rows`; some bags are empty."""
    lengths = torch.randint(0, longest + 1, (len(rows) * batch,), generator=generator)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    ids = torch.cat([torch.randint(0, count, (int(part.sum()),), generator=generator)
                     for count, part in zip(rows, lengths.view(len(rows), batch))])
    weights = torch.randn(len(ids), generator=generator) if weighted else None
    return ids, offsets, weights


def random_batch(batch, generator):
    """The inputs of bags_model as tuples."""
    x = random_jagged([min(ROWS["first"], ROWS["second"])] * 2, batch, generator)
    w = random_jagged([ROWS["third"]], batch, generator, weighted=True)
    return x[:2], w


class RowwiseAdagrad(torch.optim.Optimizer):
    """By its definition: one sum of the mean squares of each row."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weights in group["params"]:
                state = self.state[weights]
                total = state.setdefault("sum", torch.zeros(len(weights)))
                gradient = weights.grad.to_dense()
                total += gradient.square().mean(1)
                weights -= group["lr"] * gradient / (total.sqrt() + EPS).unsqueeze(1)


def torch_optimizer(kind, parameters, rate):
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=rate)
    if kind == "adagrad":
        return torch.optim.Adagrad(parameters, lr=rate, eps=EPS)
    if kind == "adam":  # as here, rows without a gradient stay as they are
        return torch.optim.SparseAdam(parameters, lr=rate, eps=EPS)
    return RowwiseAdagrad(parameters, rate)


class TorchTables:
    """bags_model in torch."""

    def __init__(self, tables, kind, rate):
        self.bags = {
            (name, mode): torch.nn.EmbeddingBag.from_pretrained(
                tables.weights[name].clone(), freeze=False, mode=mode, sparse=True,
                include_last_offset=True)
            for name, mode in (("first", "sum"), ("second", "mean"), ("third", "sum"))}
        self.weights = {name: bag.weight for (name, _), bag in self.bags.items()}
        self.optimizer = torch_optimizer(kind, list(self.weights.values()), rate)

    def forward(self, x, w):
        ids, offsets = x
        batch = (len(offsets) - 1) // 2
        middle = int(offsets[batch])
        a = ids[:middle], offsets[:batch + 1]
        b = ids[middle:], offsets[batch:] - middle
        return {"a": self.bags["first", "sum"](*a), "b@second": self.bags["second", "mean"](*b),
                "b@first": self.bags["first", "sum"](*b),
                "c": self.bags["third", "sum"](w[0], w[1], per_sample_weights=w[2])}

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

    def states(self, name):
        return {key: value for key, value in self.optimizer.state[self.weights[name]].items()
                if key != "step"}


def loss_of(results, factors):
    """A loss whose gradient differs from value to value."""
    return sum((result * factors[name]).sum() + 0.3 * result.square().sum()
               for name, result in results.items())


def random_factors(results, generator):
    return {name: torch.randn(result.shape, generator=generator)
            for name, result in results.items()}


def all_arrays(tables):
    """Copies of weights and states, by name."""
    arrays = {name: weights.clone() for name, weights in tables.weights.items()}
    for table, states in tables.states.items():
        arrays.update({f"{table}.{key}": value.clone() for key, value in states.items()})
    return arrays


def assert_same(actual, expected):
    """Equal dicts of tensors, bit by bit."""
    assert actual.keys() == expected.keys()
    for key, value in expected.items():
        assert torch.equal(actual[key], value), key


# For tests


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """kind of optimizer -> artifact of bags_model, or "types"."""
    folder, made = tmp_path_factory.mktemp("tables"), {}

    def get(kind):
        if kind not in made:
            model = types_model() if kind == "types" else bags_model(kind)
            made[kind] = compiled(model, folder / str(kind), training=kind is not None)
        return made[kind]
    return get


@pytest.fixture(params=DEVICES)
def open_tables(artifacts, request):
    """(kind of optimizer, options) -> tables on a device, which are closed in the end."""
    opened = []

    def get(kind="sgd", **options):
        opened.append(ns.EmbeddingTables(artifacts(kind), **{"device": request.param, **options}))
        return opened[-1]
    yield get
    for tables in opened:
        tables.close()


def train(tables, batch, factors):
    """One step; returns the results."""
    results = tables(*batch)
    loss_of(results, factors).backward()
    return {name: result.detach() for name, result in results.items()}
