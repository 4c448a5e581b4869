"""Gradients whose rows are apart, such as columns of a wider tensor, update tables as dense ones."""

import pytest
import torch

from support import artifact
from support.host import World
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.session import Session

BATCH = 20


def small_model():
    tables = [Table("users", 12, 8, optimizer=Optimizer("adagrad")),
              Table("items", 12, 6, optimizer=Optimizer("sgd"))]
    lookups = (Lookup("user_id", "users"), Lookup("item_id", "items", "mean"),
               Lookup("item_id", "items", "unpooled"))
    return Model(tables, [Input("ids", ("user_id", "item_id"), lookups),
                          Input("more", ("seen_id",), (Lookup("seen_id", "users", weighted=True),),
                        weighted=True)])


PLANS = {
    "one device": Plan(1, [Shard("users", (0, 12), (0, 8), (0,)),
                           Shard("items", (0, 12), (0, 6), (0,))]),
    "columns on one device": Plan(1, [Shard("users", (0, 12), (0, 4), (0,)),
                                      Shard("users", (0, 12), (4, 8), (0,)),
                                      Shard("items", (0, 5), (0, 6), (0,)),
                                      Shard("items", (5, 12), (0, 6), (0,))]),
    "two devices": Plan(2, [Shard("users", (0, 12), (0, 4), (0,)),
                            Shard("users", (0, 12), (4, 8), (1,)),
                            Shard("items", (0, 5), (0, 6), (1,)),
                            Shard("items", (5, 12), (0, 6), (0,))]),
}


class WideWorld(World):
    """Gives gradients as columns of a wider tensor."""

    def invoke(self, name, values, keep=False):
        if name == "embeddings_gradients":
            values = [[widen(value) for value in ofrank] for ofrank in values]
        return super().invoke(name, values, keep)


def widen(value):
    if not isinstance(value, torch.Tensor) or value.dim() != 2:
        return value
    wide = torch.full((value.shape[0], value.shape[1] + 5), 7, dtype=value.dtype)
    wide[:, 3:3 + value.shape[1]] = value
    return wide[:, 3:3 + value.shape[1]]


@pytest.mark.parametrize("name", PLANS)
def test_rows_of_gradients_may_be_apart(name, tmp_path, generator, monkeypatch):
    model, plan = small_model(), PLANS[name]
    folder = artifact.compile_text(model.text(plan), tmp_path / "model", "--training",
                                   "--reference")
    monkeypatch.setattr("support.session.World", WideWorld)
    with Session(folder, model, plan) as session:
        session.fill(generator, True)
        session.sync_reference()
        jagged = session.random_batch(BATCH, generator, True)
        before = session.tables()
        results, contexts = session.wait_results(jagged)
        gradients = [torch.randint(-3, 4, result.shape, generator=generator).to(result.dtype)
                     for result in results]
        session.update(jagged, contexts, gradients, 0.125, 1)
        session.check_update(before, jagged, gradients, 0.125, 1)
