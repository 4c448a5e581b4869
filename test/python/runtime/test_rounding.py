"""Stochastic rounding of f16 and bf16 tables: the same bits for every plan, number of threads and
backend, those of the formula, and no bias."""

import numpy
import pytest
import torch

from support import artifact
from support.batch import from_features
from support.model import DTYPES, Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.rounding import round_at_random, seed_of
from support.session import Session

ROWS, DIM, RATE = 48, 40, 2**-6
OPTIMIZERS = {"sgd": Optimizer("sgd", stochastic_rounding=True),
              "adagrad": Optimizer("adagrad", eps=0.5, max_gradient=0.25, stochastic_rounding=True),
              "ftrl": Optimizer("ftrl", eps=1.0, l2_penalty=0.5, stochastic_rounding=True)}
TABLES = [Table(f"{kind}_{dtype}", ROWS, DIM, dtype, optimizer)
          for kind, optimizer in OPTIMIZERS.items() for dtype in ("f16", "bf16")]
MODEL = Model(TABLES, [Input("x", tuple(table.name for table in TABLES),
                             tuple(Lookup(table.name, table.name) for table in TABLES))])
CUTS = {"whole": [((0, ROWS), (0, DIM), (0,))],
        "rows": [((0, 20), (0, DIM), (1,)), ((20, ROWS), (0, DIM), (0,))],
        "columns": [((0, ROWS), (0, 12), (0,)), ((0, ROWS), (12, DIM), (1,))],
        "both": [((0, 20), (0, DIM), (1,)), ((20, ROWS), (0, 12), (0,)),
                 ((20, ROWS), (12, DIM), (1,))],
        "replicated": [((0, ROWS), (0, DIM), (0, 1))]}


def plan_of(cut):
    return Plan(2, [Shard(table.name, *where) for table in TABLES for where in CUTS[cut]])


def gradients_of(generator):
    """Multiples of 2^-12, whose sums are exact; some are below the last bit of a weight."""
    return [torch.randint(-2**12, 2**12, (ROWS, DIM), generator=generator) / 2**12 *
            2.0 ** torch.randint(-12, 1, (ROWS, 1), generator=generator) for _ in TABLES]


def train(folder, cut, threads=1, emulated=False, steps=3):
    """The tables after some steps in which each row has one gradient."""
    generator = torch.Generator().manual_seed(1)
    with Session(folder, MODEL, plan_of(cut), threads, emulated) as session:
        session.fill(generator, integers=False)
        jagged = [from_features([(torch.randperm(ROWS, generator=generator),
                                  torch.ones(ROWS, dtype=torch.int64), None) for _ in TABLES],
                                "i64", False)]
        for number in range(1, steps + 1):
            _, contexts = session.wait_results(jagged)
            session.update(jagged, contexts, gradients_of(generator), RATE, number)
        return {name: weights for name, (weights, _) in session.tables().items()}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The artifact of a way to cut the tables, with code for CPUs or the emulator."""
    made = {}

    def compile_once(cut, emulated=False):
        if (cut, emulated) not in made:
            made[cut, emulated] = artifact.compile_model(
                MODEL, plan_of(cut), tmp_path_factory.mktemp("rounding") / "model",
                *(artifact.EMULATED if emulated else ()))
        return made[cut, emulated]

    return compile_once


@pytest.fixture(scope="module")
def expected(compiled):
    return train(compiled("whole"), "whole")


@pytest.mark.parametrize("cut", [cut for cut in CUTS if cut != "whole"])
def test_plans_round_alike(compiled, expected, cut):
    check_same(train(compiled(cut), cut), expected)


def test_threads_round_alike(compiled, expected):
    check_same(train(compiled("whole"), "whole", threads=3), expected)


@pytest.mark.parametrize("cut", ["whole", "both"])
def test_gpus_round_as_cpus(compiled, expected, cut):
    check_same(train(compiled(cut, emulated=True), cut, emulated=True), expected)


def check_same(found, expected):
    for name, weights in expected.items():
        assert torch.equal(found[name], weights), name


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_updates_are_those_of_the_formula_and_have_no_bias(compiled, dtype):
    """Weights of 1, small ones for f16's subnormal numbers, and steps far below the last bit: rounding
    to nearest would lose them all."""
    name, (size, small) = f"sgd_{dtype}", (2**-10, 2**-11) if dtype == "f16" else (2**-4, 2**-14)
    generator = torch.Generator().manual_seed(2)
    with Session(compiled("whole"), MODEL, plan_of("whole")) as session:
        session.fill(generator, integers=False)
        before = torch.ones((ROWS, DIM), dtype=DTYPES[dtype])
        before[:, DIM // 2:] = 2**-15
        session.world.write_table(name, before)
        ids = torch.arange(ROWS)
        jagged = [from_features([(ids, torch.ones(ROWS, dtype=torch.int64), None) for _ in TABLES],
                                "i64", False)]
        moves, expected = [], []
        for number in range(1, 21):
            _, contexts = session.wait_results(jagged)
            gradient = torch.rand((ROWS, DIM), generator=generator) * size
            gradient[:, DIM // 2:] *= small
            session.update(jagged, contexts, [gradient] * len(TABLES), RATE, number)
            after = session.world.read_table(name)
            exact = before.float().numpy() - numpy.float32(RATE) * gradient.numpy()
            rounded = round_at_random(exact, gradient.numpy(), seed_of(number), DTYPES[dtype])
            assert numpy.array_equal(after.float().numpy(), rounded)
            moves.append((after.double() - before.double()).numpy())
            expected.append(exact - before.double().numpy())
            before = after
    for part in (slice(0, DIM // 2), slice(DIM // 2, DIM)):
        moved = numpy.stack(moves)[:, :, part]
        wanted = numpy.stack(expected)[:, :, part]
        deviation = (moved - wanted).std() / moved.size ** 0.5
        assert abs((moved - wanted).mean()) < 4 * deviation
        assert moved.std() > 0
