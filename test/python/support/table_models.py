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
OPTIMIZERS = ("sgd", "adagrad", "rowwise_adagrad", "adam", "momentum", "adamw",
              "partial_rowwise_adam", "rowwise_rmsprop", "ftrl", "lars_sgd", "lamb", "partial_rowwise_lamb",
              "rowwise_adagrad_with_counter")
ROWS = {"first": 60, "second": 40, "third": 30}
DIMS = {"first": 8, "second": 12, "third": 20}
EPS = 1e-8
DECAYS = {"momentum": 0.05, "adamw": 0.25, "partial_rowwise_adam": 0.25, "lars_sgd": 0.25, "lamb": 0.25,
          "partial_rowwise_lamb": 0.25, "rowwise_adagrad_with_counter": 0.25}
HALFLIFE = 2
FTRL = {"eps": 0.5, "l1_penalty": 0.125, "l2_penalty": 0.5}
ETA = 0.25
BATCH = 16  # of most tests


def usable():
    """A mark that skips tests where the emulator cannot be loaded."""
    sanitized = re.search(r"^NEUROSHARD_SANITIZE:\w+=.", (BUILD / "CMakeCache.txt").read_text(),
                          re.M)
    return pytest.mark.skipif(bool(sanitized) or not EMULATOR.exists(),
                              reason="the emulator is not built, or has sanitizers")


def optimizer_of(kind):
    if kind == "ftrl":
        return Optimizer(kind, **FTRL)
    if kind == "lars_sgd":
        return Optimizer(kind, eta=ETA, weight_decay=DECAYS[kind])
    if kind == "rowwise_adagrad_with_counter":
        return Optimizer(kind, EPS, weight_decay=DECAYS[kind], counter_halflife=HALFLIFE)
    return Optimizer(kind, EPS, weight_decay=DECAYS.get(kind, 0.0)) if kind else None


def bags_model(kind):
    """Table `first` is read by two features, feature `b` from two tables; `c` has weights."""
    tables = [Table(name, ROWS[name], DIMS[name], "f32", optimizer_of(kind))
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


class Lazy(torch.optim.Optimizer):
    """A formula on the rows of a parameter that have gradients. states: the shape of each for a
    parameter; rule: changes rows of weights and states."""

    def __init__(self, parameters, lr, states, rule):
        super().__init__(parameters, {"lr": lr})
        self.shapes, self.rule, self.number = states, rule, 0

    @torch.no_grad()
    def step(self):
        self.number += 1
        for group in self.param_groups:
            for weights in group["params"]:
                state = self.state[weights]
                for name, per_row in self.shapes.items():
                    shape = weights.shape[:1] if per_row else weights.shape
                    state.setdefault(name, torch.zeros(shape))
                found = weights.grad.coalesce()
                rows, gradient = found.indices()[0], found.values()
                arrays = [array[rows] for array in (weights, *state.values())]
                self.rule(*arrays, gradient, group["lr"], self.number)
                for array, new in zip((weights, *state.values()), arrays):
                    array[rows] = new


def momentum(weights, buffer, gradient, rate, _number):
    """torch.optim.SGD(momentum=0.9) with weight decay."""
    buffer.mul_(0.9).add_(gradient + DECAYS["momentum"] * weights)
    weights -= rate * buffer


def adamw(weights, first, second, gradient, rate, number):
    """The decay of torch.optim.AdamW, then the step of torch.optim.SparseAdam."""
    weights *= 1 - rate * DECAYS["adamw"]
    first.mul_(0.9).add_(0.1 * gradient)
    second.mul_(0.999).add_(0.001 * gradient.square())
    weights -= corrected(rate, number) * first / (second.sqrt() + EPS)


def partial_rowwise_adam(weights, first, second, gradient, rate, number):
    """As FBGEMM's, with the eps of torch.optim.SparseAdam."""
    weights *= 1 - rate * DECAYS["partial_rowwise_adam"]
    first.mul_(0.9).add_(0.1 * gradient)
    second.mul_(0.999).add_(0.001 * gradient.square().mean(1))
    weights -= corrected(rate, number) * first / (second.sqrt() + EPS).unsqueeze(1)


def rowwise_rmsprop(weights, square_avg, gradient, rate, _number):
    """torch.optim.RMSprop(alpha=0.999) on the mean of the squares of a row."""
    square_avg.mul_(0.999).add_(0.001 * gradient.square().mean(1))
    weights -= rate * gradient / (square_avg.sqrt() + EPS).unsqueeze(1)


def ftrl(weights, total, linear, gradient, rate, _number):
    """Algorithm 1 of McMahan et al., Ad Click Prediction (2013)."""
    before = total.sqrt()
    total += gradient.square()
    linear += gradient - (total.sqrt() - before) / rate * weights
    curvature = (FTRL["eps"] + total.sqrt()) / rate + FTRL["l2_penalty"]
    weights[:] = -torch.nn.functional.softshrink(linear, FTRL["l1_penalty"]) / curvature


def lengths(rows):
    return rows.norm(dim=1, keepdim=True)


def lars_sgd(weights, buffer, gradient, rate, _number):
    """FBGEMM's LARS_SGD."""
    decay, size = DECAYS["lars_sgd"], lengths(weights)
    trust = (ETA * size / (lengths(gradient) + decay * size)).nan_to_num(0)
    buffer.mul_(0.9).add_(rate * trust * (gradient + decay * weights))
    weights -= buffer


def lamb(weights, first, second, gradient, rate, number):
    """FBGEMM's LAMB."""
    first.mul_(0.9).add_(0.1 * gradient)
    second.mul_(0.999).add_(0.001 * gradient.square())
    step_by_trust(weights, first, second, rate, number, DECAYS["lamb"])


def partial_rowwise_lamb(weights, first, second, gradient, rate, number):
    """FBGEMM's PARTIAL_ROWWISE_LAMB."""
    first.mul_(0.9).add_(0.1 * gradient)
    second.mul_(0.999).add_(0.001 * gradient.square().mean(1))
    step_by_trust(weights, first, second.unsqueeze(1), rate, number, DECAYS["partial_rowwise_lamb"])


def step_by_trust(weights, first, second, rate, number, decay):
    root = (second / (1 - 0.999 ** number)).sqrt()
    direction = first / (1 - 0.9 ** number) / (root + EPS) + decay * weights
    weights -= rate * (lengths(weights) / lengths(direction)).nan_to_num(0) * direction


def rowwise_adagrad_with_counter(weights, total, last, count, gradient, rate, number):
    """FBGEMM's EXACT_ROWWISE_ADAGRAD with counter-based regularization, L2."""
    since = torch.where(last == 0, 1, number - last)
    count.mul_(0.5 ** (since / HALFLIFE)).add_(1)
    last.fill_(number)
    decay = DECAYS["rowwise_adagrad_with_counter"]
    total += (gradient + decay * weights).square().mean(1)
    size = rate / (total.sqrt() + EPS)
    weights *= (1 - HALFLIFE / count * decay * size).unsqueeze(1)
    weights -= size.unsqueeze(1) * gradient


def corrected(rate, number):
    return rate * (1 - 0.999 ** number) ** 0.5 / (1 - 0.9 ** number)


LAZY = {"momentum": ({"momentum_buffer": False}, momentum),
        "adamw": ({"exp_avg": False, "exp_avg_sq": False}, adamw),
        "partial_rowwise_adam": ({"exp_avg": False, "exp_avg_sq": True}, partial_rowwise_adam),
        "rowwise_rmsprop": ({"square_avg": True}, rowwise_rmsprop),
        "ftrl": ({"sum": False, "linear": False}, ftrl),
        "lars_sgd": ({"momentum_buffer": False}, lars_sgd),
        "lamb": ({"exp_avg": False, "exp_avg_sq": False}, lamb),
        "partial_rowwise_lamb": ({"exp_avg": False, "exp_avg_sq": True}, partial_rowwise_lamb),
        "rowwise_adagrad_with_counter": (
            {"sum": True, "prev_iter": True, "row_counter": True}, rowwise_adagrad_with_counter)}


def torch_optimizer(kind, parameters, rate):
    if kind in LAZY:
        return Lazy(parameters, rate, *LAZY[kind])
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
