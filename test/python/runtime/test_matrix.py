"""Level 5 on 1, 2, 4 and 8 devices, or 1, 2, 3 and 5 GPUs in the emulator, equals level 1 and
torch, forward and update."""

from functools import partial

import pytest
import torch

from support import artifact, matrix, plans
from support.batch import random_values
from support.optimizers import has_norms
from support.session import Session

# By number of devices, how many models are drawn; emulated ones take their time.
SAMPLES = {"devices": {1: 3, 2: 3, 4: 3, 8: 3}, "GPUs": {1: 2, 2: 2, 3: 1, 5: 1}}
CHOSEN = [case for kind, counts in SAMPLES.items() for count, drawn in counts.items()
          for case in matrix.sample(
              [(number, count, kind) for number in range(matrix.COUNT)], drawn,
              f"matrix {count}" if kind == "devices" else f"matrix {count} {kind}")]
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


