"""Level 5 on 1, 2, 4 and 8 devices equals level 1 and torch, forward and update."""

from functools import partial

import pytest
import torch

from support import artifact, matrix, plans
from support.batch import random_values
from support.session import Session

CASES = [(number, devices) for devices in (1, 2, 4, 8) for number in range(matrix.COUNT)]
CHOSEN = [case for devices in (1, 2, 4, 8) for case in matrix.sample(
    [case for case in CASES if case[1] == devices], 3, f"matrix {devices}")]
LEARNING_RATE = 0.125


def describe(number, devices):
    model = matrix.model(number)
    semantics = "per_shard" if number % 2 else "exact"
    return model, plans.random_plan(model, devices, f"{matrix.seed()} {number}", semantics)


COMPILATIONS = artifact.Compilations({case: partial(describe, *case) for case in CHOSEN})


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("matrix")


@pytest.fixture(scope="module", params=CHOSEN, ids=lambda case: f"model{case[0]}-{case[1]}devices")
def session(request, folder):
    with Session(*COMPILATIONS.get(request.param, folder)) as opened:
        yield opened


@pytest.mark.parametrize("integers", [False, True], ids=["reals", "integers"])
@pytest.mark.parametrize("size", [1, 13, 40])
def test_forward(session, size, integers, generator):
    session.fill(generator, integers)
    session.sync_reference()
    jagged = session.random_batch(size, generator, integers)
    results, contexts = session.wait_results(jagged)
    session.check_forward(jagged, results, integers)
    # Every context is used up, or the ids of the step would stay in memory.
    session.update(jagged, contexts, zero_gradients(results), 0.0, 1)


def test_entry_function(session, generator):
    session.fill(generator, False)
    session.sync_reference()
    jagged = session.random_batch(21, generator, False)
    out = session.world.invoke("forward", session.scatter(jagged))
    results = [torch.cat(parts) for parts in zip(*out)]
    session.check_forward(jagged, results, False)


@pytest.mark.parametrize("integers", [False, True], ids=["reals", "integers"])
def test_training(session, integers, generator):
    session.fill(generator, integers)
    for step, size in enumerate((23, 1, 16), start=1):
        before = session.tables()
        session.sync_reference()
        jagged = session.random_batch(size, generator, integers)
        results, contexts = session.wait_results(jagged)
        gradients = [random_values(result.shape, generator, integers, result.dtype)
                     for result in results]
        got = session.update(jagged, contexts, gradients, LEARNING_RATE, step)
        after = session.check_update(before, jagged, gradients, LEARNING_RATE, step)
        session.check_weight_gradients(before, jagged, gradients, got)
        session.reference.update(jagged, gradients, LEARNING_RATE, step)
        session.check_reference_update(after, keeps_bits)


def keeps_bits(table):
    """A row-wise norm is summed over columns in an order that shards and vectors change."""
    return table.optimizer is None or table.optimizer.kind != "rowwise_adagrad"


def zero_gradients(results):
    return [result.new_zeros(result.shape) for result in results]


