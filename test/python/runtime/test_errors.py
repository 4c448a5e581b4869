"""An id out of range ends the step on all devices with an error that names it."""

import pytest
import torch

from support import artifact
from support.batch import Jagged
from support.host import RuntimeFailure
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.session import Session

DEVICES = 3


def small_model():
    tables = [Table("users", 10, 8, optimizer=Optimizer("sgd")),
              Table("items", 20, 4, optimizer=Optimizer("sgd"))]
    lookups = (Lookup("user_id", "users"), Lookup("item_id", "items", "unpooled"))
    return Model(tables, [Input("ids", ("user_id", "item_id"), lookups)])


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    model = small_model()
    plan = Plan(DEVICES, [Shard("users", (0, 4), (0, 8), (0,)), Shard("users", (4, 10), (0, 8), (2,)),
                          Shard("items", (0, 20), (0, 4), (1,))])
    folder = tmp_path_factory.mktemp("errors") / "model"
    with Session(artifact.compile_model(model, plan, folder), model, plan) as opened:
        yield opened


def message_of_step(session, jagged):
    with pytest.raises(RuntimeFailure) as failure:
        results, contexts = session.wait_results(jagged)
        gradients = [result.new_zeros(result.shape) for result in results]
        session.update(jagged, contexts, gradients, 0.0, 1)
    return str(failure.value)


def two_users_per_sample(batch, generator):
    """`batch` samples with two user ids and one item id each."""
    users = torch.randint(0, 10, (2 * batch,), generator=generator)
    items = torch.randint(0, 20, (batch,), generator=generator)
    lengths = torch.tensor([2] * batch + [1] * batch)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    return Jagged(torch.cat([users, items]), offsets, None, 2)


@pytest.mark.parametrize("bad", [-1, 10, 2**40])
@pytest.mark.parametrize("sample", [0, 4, 8])
def test_bad_id_is_named(session, bad, sample, generator):
    session.fill(generator, False)
    jagged = two_users_per_sample(9, generator)
    jagged.ids[2 * sample + 1] = bad
    message = message_of_step(session, [jagged])
    # Three samples to a device: the position is that on the device.
    for part in ("users", "user_id", f"{bad}", "10 rows", f"bag {sample % 3}"):
        assert part in message, message


def test_bad_id_of_an_unpooled_lookup_is_named(session, generator):
    session.fill(generator, False)
    jagged = two_users_per_sample(9, generator)
    jagged.ids[18 + 5] = 20
    message = message_of_step(session, [jagged])
    for part in ("items", "item_id", "20"):
        assert part in message, message


def test_world_works_after_an_error(session, generator):
    session.fill(generator, False)
    session.sync_reference()
    jagged = two_users_per_sample(9, generator)
    broken = Jagged(jagged.ids + 1000, jagged.offsets, None, 2)
    message_of_step(session, [broken])
    results, contexts = session.wait_results([jagged])
    session.check_forward([jagged], results, False)
    session.update([jagged], contexts, [r.new_zeros(r.shape) for r in results], 0.0, 1)
