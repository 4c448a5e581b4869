"""Tables whose rows catch up (catch_up) train as the dense optimizers of torch.optim on whole tables, whatever
rows a step touches: under random plans on CPUs and GPUs in the emulator, with a learning rate that changes."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from support import artifact, matrix, plans
from support.model import DTYPES, Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.session import Session

BATCH = 5
DECAY = 0.125
OPTIMIZERS = {
    "sgd": (Optimizer("sgd", weight_decay=DECAY), partial(torch.optim.SGD, weight_decay=DECAY)),
    "decoupled": (Optimizer("sgd", weight_decay=DECAY, weight_decay_mode="decoupled"), None),
    "momentum": (Optimizer("momentum", beta1=0.8), partial(torch.optim.SGD, momentum=0.8)),
    "momentum and decay": (Optimizer("momentum", beta1=0.8, weight_decay=DECAY),
                           partial(torch.optim.SGD, momentum=0.8, weight_decay=DECAY)),
    "adam": (Optimizer("adam", eps=1e-10), partial(torch.optim.Adam, eps=1e-10)),
    "adam and decay": (Optimizer("adam", eps=1e-10, weight_decay=DECAY),
                       partial(torch.optim.Adam, eps=1e-10, weight_decay=DECAY)),
    "adamw": (Optimizer("adamw", eps=1e-10, weight_decay=DECAY),
              partial(torch.optim.AdamW, eps=1e-10, weight_decay=DECAY)),
    "adagrad": (Optimizer("adagrad", eps=1e-6, initial_accumulator=0.5, weight_decay=DECAY),
                partial(torch.optim.Adagrad, eps=1e-6, initial_accumulator_value=0.5, weight_decay=DECAY)),
}
# By whether GPUs are emulated, which takes its time.
STEPS, TABLES = {False: 50, True: 7}, {False: len(OPTIMIZERS), True: 3}
STATES = {"momentum": ("momentum_buffer",), "adam": ("exp_avg", "exp_avg_sq"),
          "adamw": ("exp_avg", "exp_avg_sq"), "adagrad": ("sum",)}
DIMS = (4, 12, 20, 64, 3, 36, 100, 8)
ROWS = (64, 300, 40, 90, 64, 200, 33, 120)
READERS = (("sum", False, None), ("mean", False, None), ("sum", True, 2), ("unpooled", False, None))
# (number of the model, devices, whether they are emulated GPUs)
CASES = [case for devices, count, emulated in ((1, 1, False), (2, 1, False), (3, 1, False), (4, 1, False),
                                               (1, 1, True), (3, 1, True))
         for case in matrix.sample([(number, devices, emulated) for number in range(24)], count,
                                   f"catch up {devices} {emulated}")]


def drawn(number, emulated):
    """Optimizers of the tables of model `number`."""
    return [OPTIMIZERS[name] for name in (2 * list(OPTIMIZERS))[number % 8:][:TABLES[emulated]]]


def make(number, emulated):
    """A table for each optimizer, each with other columns, rows, type and readers as `number` grows."""
    tables, plain, weighted = [], [], []
    for place, (optimizer, _) in enumerate(drawn(number, emulated)):
        dtype = ("f32", "f32", "bf16", "f32", "f16")[(place + number) % 5]
        optimizer = replace(optimizer, catch_up=True, stochastic_rounding=dtype != "f32" and number % 2 == 1)
        table = Table(f"t{place}", ROWS[(place + 3 * number) % 8], DIMS[(place + number) % 8], dtype, optimizer)
        tables.append(table)
        pooling, has_weights, padding = READERS[(place + number) % len(READERS)]
        (weighted if has_weights else plain).append(Lookup(f"f{place}", table.name, pooling, has_weights, padding))
    plain.append(Lookup("again", "t0", "sum"))
    inputs = [Input("plain", tuple(one.feature for one in plain), tuple(plain), "i32" if number % 3 else "i64"),
              Input("weighted", tuple(one.feature for one in weighted), tuple(weighted), weighted=True)]
    return Model(tables, [one for one in inputs if one.lookups])


class Decoupled:
    """SGD with decoupled decay, which torch.optim has not."""

    def __init__(self, parameters, lr):
        self.parameters, self.param_groups = parameters, [{"lr": lr}]
        self.state = {}

    @torch.no_grad()
    def step(self):
        for one in self.parameters:
            rate = self.param_groups[0]["lr"]
            one.mul_(1 - rate * DECAY).sub_(rate * one.grad)


class Dense:
    """A table as torch trains it: rounded to its type after each step."""

    def __init__(self, table, weights, make_optimizer):
        self.table = table
        self.weights = weights.float().clone().requires_grad_()
        self.optimizer = (make_optimizer or Decoupled)([self.weights], lr=1.0)

    def look_up(self, jagged, feature, lookup):
        ids, offsets, weights = jagged.feature(feature)
        if lookup.pooling == "unpooled":
            return torch.nn.functional.embedding(ids.long(), self.weights)
        return torch.nn.functional.embedding_bag(
            ids.long(), self.weights, offsets[:-1], mode=lookup.pooling, padding_idx=lookup.padding_idx,
            per_sample_weights=weights if lookup.weighted else None)

    def step(self, rate):
        self.optimizer.param_groups[0]["lr"] = rate
        if self.weights.grad is None:
            self.weights.grad = torch.zeros_like(self.weights)
        self.optimizer.step()
        self.weights.grad = None
        with torch.no_grad():
            self.weights.copy_(self.weights.to(DTYPES[self.table.dtype]))

    def check(self, weights, states, what):
        self.close(weights.float(), self.weights.detach(), what)
        names = STATES.get(self.table.optimizer.kind, ())
        assert len(states) == len(names)
        for name, state in zip(names, states):
            self.close(state, self.optimizer.state[self.weights][name], f"{what}: {name}")

    def close(self, found, expected, what):
        """f16 and bf16 may round another way in each step, at random by up to a whole last bit. Adam divides
        what is left of gradients near 0 by their size."""
        last = {"f32": 0, "f16": 2.0 ** -11, "bf16": 2.0 ** -8}[self.table.dtype]
        bound = 40 * last if self.table.optimizer.stochastic_rounding else 8 * last
        if self.table.optimizer.kind in ("adam", "adamw"):
            bound += 5e-4
        torch.testing.assert_close(found, expected, rtol=2e-5 + bound, atol=2e-5 + bound,
                                   msg=lambda text: f"{what}: {text}")


def describe(number, devices, emulated):
    model = make(number, emulated)
    plan = plans.random_plan(model, devices, f"{matrix.seed()} catch up {number}")
    return model, plan, *(artifact.EMULATED if emulated else ())


COMPILATIONS = artifact.Compilations({case: partial(describe, *case) for case in CASES})


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("catch_up")


def rate_of(number):
    return 0.0625 * (1 + number % 4)


def train(session, dense, generator, steps):
    """Steps of few rows each. The reference program takes them, too."""
    for number in steps:
        jagged = session.random_batch(BATCH, generator, False)
        results, contexts = session.wait_results(jagged)
        expected = [dense[lookup.table].look_up(batch, feature, lookup)
                    for batch, feature, lookup in session.readers(jagged)]
        for result, theirs, (_, _, lookup) in zip(results, expected, session.readers(jagged)):
            dense[lookup.table].close(result / 8, theirs.detach() / 8, f"step {number}, {lookup}")
        gradients = [torch.randn(result.shape, generator=generator) for result in results]
        sum((one * gradient).sum() for one, gradient in zip(expected, gradients)).backward()
        session.update(jagged, contexts, gradients, rate_of(number), number)
        for one in dense.values():
            one.step(rate_of(number))
        session.reference.update(jagged, gradients, rate_of(number), number)


def check_tables(session, dense, what):
    for name, (weights, states) in session.tables().items():
        dense[name].check(weights, states, f"{what}, {name}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"model{case[0]}-{case[1]}{'GPUs' if case[2] else 'CPUs'}")
def test_trains_as_dense_optimizers(case, folder, generator):
    compiled = COMPILATIONS.get(case, folder)
    with Session(*compiled, emulated=case[2]) as session:
        session.fill(generator, False)
        session.sync_reference()
        before = session.tables()
        dense = {table.name: Dense(table, before[table.name][0], make_optimizer)
                 for table, (_, make_optimizer) in zip(session.model.tables, drawn(case[0], case[2]))}
        # The tables are read in the middle and at the end alone, so that rows are behind till then.
        steps = STEPS[session.emulated]
        train(session, dense, generator, range(1, steps - 2))
        check_tables(session, dense, "after some steps")
        train(session, dense, generator, range(steps - 2, steps + 1))
        check_tables(session, dense, "at the end")
        if session.emulated:  # sums the gradients of a row in chunks
            return
        after = session.tables()
        session.check_reference_update(after, lambda table: not session.plan.has_copies(table.name))
        decayed = after["t0"][0].float()
        assert not torch.isclose(decayed, before["t0"][0].float()).all(1).any(), "a row has taken no step"


def small(dtype="f32", optimizer=None):
    table = Table("t", 50, 8, dtype, optimizer or Optimizer("adamw", weight_decay=DECAY, catch_up=True))
    return Model([table], [Input("x", ("a",), (Lookup("a", "t"),))])


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_bits_do_not_depend_on_when_rows_catch_up(dtype, tmp_path, generator):
    """Two equal tables, of which one is read after each step and so never behind."""
    model, plan = small(dtype), Plan(1, [Shard("t", (0, 50), (0, 8), (0,))])
    folder = artifact.compile_model(model, plan, tmp_path / "model")
    with Session(folder, model, plan) as late, Session(folder, model, plan) as early:
        late.fill(torch.Generator().manual_seed(1), False)
        early.fill(torch.Generator().manual_seed(1), False)
        for number in range(1, 21):
            jagged = late.random_batch(2, generator, False)
            pairs = [(one, *one.wait_results(jagged)) for one in (late, early)]
            assert torch.equal(pairs[0][1][0], pairs[1][1][0]), number
            gradients = [torch.randn(pairs[0][1][0].shape, generator=generator)]
            for one, _, contexts in pairs:
                one.update(jagged, contexts, gradients, rate_of(number), number)
            early.tables()
        for ours, theirs in zip(*(([one.tables()["t"][0], *one.tables()["t"][1]]) for one in (late, early))):
            assert torch.equal(ours, theirs)


def test_written_rows_have_missed_no_step(tmp_path, generator):
    """Values that a caller writes are those after the steps so far."""
    model, plan = small(), Plan(1, [Shard("t", (0, 50), (0, 8), (0,))])
    folder = artifact.compile_model(model, plan, tmp_path / "model")
    with Session(folder, model, plan) as session:
        session.fill(generator, False)
        for number in range(1, 6):
            jagged = session.random_batch(1, generator, False)
            results, contexts = session.wait_results(jagged)
            session.update(jagged, contexts, [torch.ones_like(results[0])], 0.5, number)
        values = torch.randn(50, 8, generator=generator)
        session.world.write_table("t", values)
        assert torch.equal(session.world.read_table("t"), values)


def test_copies_that_drift_are_refused(tmp_path):
    model = small()
    plan = Plan(2, [Shard("t", (0, 50), (0, 8), (0, 1), sync_every=3)])
    with pytest.raises(AssertionError, match="catch up cannot drift"):
        artifact.compile_model(model, plan, tmp_path / "model")
