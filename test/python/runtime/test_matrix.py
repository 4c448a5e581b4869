"""Level 5 on 1, 2, 4 and 8 devices, or 1, 2, 3 and 5 GPUs in the emulator, equals level 1 and
torch, forward and update."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from support import artifact, matrix, plans
from support.batch import random_values
from support.optimizers import has_norms
from support.session import Session

# By number of devices, how many models are drawn. Those of a kind of device have all optimizers.
SAMPLES = {"devices": {1: 2, 2: 2, 4: 2, 8: 2}, "GPUs": {1: 1, 2: 1, 3: 1, 5: 1}}


def drawn(kind):
    """(number of the model, number of devices, kind) of each case."""
    counts = [count for count, models in SAMPLES[kind].items() for _ in range(models)]
    if matrix.ALL:
        return [(number, count, kind) for count in SAMPLES[kind] for number in range(matrix.COUNT)]
    return [(number, count, kind)
            for count, number in zip(counts, matrix.spread(len(counts), f"matrix {kind}"))]


CHOSEN = [case for kind in SAMPLES for case in drawn(kind)]
LEARNING_RATE = 0.125


def describe(number, devices, kind):
    model = matrix.model(number)
    semantics = "per_shard" if number % 2 else "exact"
    plan = plans.random_plan(model, devices, f"{matrix.seed()} {number}", semantics)
    return model, plan, *(artifact.EMULATED if kind == "GPUs" else ())


COMPILATIONS = artifact.Compilations({case: partial(describe, *case) for case in CHOSEN})


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("matrix")


@pytest.fixture(scope="module", params=CHOSEN, ids=lambda case: f"model{case[0]}-{case[1]}{case[2]}")
def session(request, folder):
    with Session(*COMPILATIONS.get(request.param, folder),
                 emulated=request.param[2] == "GPUs") as opened:
        yield opened


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_sample_has_every_optimizer(kind):
    found = {replace(table.optimizer, stochastic_rounding=False) if table.optimizer else None
             for number, _, of in CHOSEN if of == kind for table in matrix.model(number).tables}
    assert found == set(matrix.OPTIMIZERS)


@pytest.mark.parametrize("integers", [False, True], ids=["reals", "integers"])
@pytest.mark.parametrize("size", [1, 13, 40])
def test_forward(session, size, integers, generator):
    session.fill(generator, integers)
    session.sync_reference()
    jagged = session.random_batch(size, generator, integers)
    results, contexts = session.wait_results(jagged)
    session.check_forward(jagged, results, integers)
    # Every context is used up, or the ids of the step would stay in memory.
    session.update(jagged, contexts, zero_gradients(results), LEARNING_RATE, 1)


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
        session.check_reference_update(after, partial(keeps_bits, session))


def keeps_bits(session, table):
    """A norm of a row is summed over columns in an order that shards and vectors change, GPUs sum the
    gradients of a row in chunks, and ranks with copies of a table add up those of each by themselves."""
    return table.optimizer is None or (
        not has_norms(table.optimizer) and not session.emulated
        and not session.plan.has_copies(table.name))


def zero_gradients(results):
    return [result.new_zeros(result.shape) for result in results]
