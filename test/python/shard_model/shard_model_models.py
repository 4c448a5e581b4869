"""A model with three collections, sharded by shard_model, or with modules of their own."""

import dataclasses
import functools
import warnings

import torch

import neuroshard as ns

warnings.filterwarnings("ignore")

from torchrec import (EmbeddingBagCollection, EmbeddingBagConfig, EmbeddingCollection,  # noqa: E402
                      EmbeddingConfig, PoolingType)

from support.torchrec_models import SAMPLES, draw  # noqa: E402

RATE = 0.5
PATHS = ["bags", "inner.weighted", "rows"]


class Collections(torch.nn.Module):
    """Three collections whose tables and features have the same names."""

    def __init__(self, device):
        super().__init__()
        self.bags = EmbeddingBagCollection(device=device, tables=[
            EmbeddingBagConfig(name="t0", num_embeddings=50, embedding_dim=8, feature_names=["f0", "f1"]),
            EmbeddingBagConfig(name="t1", num_embeddings=30, embedding_dim=12, feature_names=["f1"],
                               pooling=PoolingType.MEAN)])
        self.inner = torch.nn.ModuleDict({"weighted": EmbeddingBagCollection(
            device=device, is_weighted=True, tables=[EmbeddingBagConfig(
                name="t0", num_embeddings=40, embedding_dim=4, feature_names=["f0"],
                init_fn=functools.partial(torch.nn.init.constant_, val=0.5))])})
        self.rows = EmbeddingCollection(device=device, tables=[
            EmbeddingConfig(name="t0", num_embeddings=20, embedding_dim=8, feature_names=["f0"])])
        self.changes = set()  # what a forward does otherwise, of change()

    def forward(self, bags, batch, unread=()):
        """batch: the others' ids, nested."""
        weighted, rows = batch.more["weighted"], batch.rows[0]
        if "made" in self.changes:
            rows = rows.permute([0])
        found = {}
        if "skip" not in self.changes:
            found |= {f"bags {key}": value for key, value in self.bags(bags).to_dict().items()}
        found |= {f"weighted {key}": value for key, value in self.inner["weighted"](weighted).to_dict().items()}
        if "missing" not in self.changes:
            found |= {f"rows {key}": value.values() for key, value in self.rows(rows).items()}
        if "twice" in self.changes:
            found |= {f"again {key}": value
                      for key, value in self.bags(bags.permute([1, 0])).to_dict().items()}
        return {key: value for key, value in found.items() if key.split()[0] not in unread}

    def draw(self, generator):
        return (draw(self.bags.embedding_bag_configs(), generator, 4),
                Batch({"weighted": draw(self.inner["weighted"].embedding_bag_configs(), generator, 3, weighted=True)},
                      (draw(self.rows.embedding_configs(), generator, 3),)))


@dataclasses.dataclass
class Batch:
    more: dict
    rows: tuple


def problem_of(model, ranks, **rest):
    return ns.distributed.problem_of(
        model, batch=SAMPLES * ranks, topology=f"{ranks}xCPU@4GiB",
        mean_pooling={"bags/f0": 2, "f1": 3, "rows/f0": 1.5}, **rest)


def plan_of(context, kind, **rest):
    """(plan, problem): cuts by rows and columns, whole tables, or what the planner finds."""
    last = context.size - 1
    rules = {"cut": {"fixed_shards": [
        ns.Shard(table="bags.t0", rows=(0, 17), cols=(0, 8), devices=last),
        ns.Shard(table="bags.t0", rows=(17, 50), cols=(0, 8), devices=0),
        ns.Shard(table="rows.t0", rows=(0, 20), cols=(0, 4), devices=last),
        ns.Shard(table="rows.t0", rows=(0, 20), cols=(4, 8), devices=0)]},
        "table_wise": {"tables": [ns.TableRule(name, allowed_kinds=["table_wise"]) for name in (
            "bags.t0", "bags.t1", "inner.weighted.t0", "rows.t0")]}, "planned": {},
        "drift": {"fixed_shards": [ns.Shard(table="bags.t0", rows=(0, 50), cols=(0, 8), devices=range(context.size),
                                            sync_every=5)]}}[kind]
    problem = problem_of(Collections(torch.device("meta")), context.size, constraints=ns.Constraints(**rules), **rest)
    return ns.distributed.plan(problem), problem


def sharded_of(context, kind="cut", optimizer="sgd", model=None, rate=RATE, **options):
    """(model, its views, plan, problem)."""
    plan, problem = plan_of(context, kind, optimizer=optimizer)
    model = model or Collections(torch.device("meta"))
    views = ns.distributed.shard_model(model, plan, problem, learning_rate=rate, threads=1, **options)
    context.modules.append(views["bags"])
    return model, views, plan, problem


def separate_of(context, views, kind="cut", **options):
    """A model whose collections are modules of their own, with plans and weights of views."""
    model = Collections(torch.device("meta"))
    modules = {path: context.make(view.plan, view.problem, rate_of(view), **options) for path, view in views.items()}
    model.bags, model.inner["weighted"], model.rows = (modules[path] for path in PATHS)
    copy(views, modules)
    return model, modules


def rate_of(view):
    return view.learning_rate


def copy(views, modules):
    for path, view in views.items():
        for one, other in zip(view.local_shards(), modules[path].local_shards(), strict=True):
            assert (one.table, one.rows, one.cols) == (other.table, other.rows, other.cols)
            other.weights.copy_(one.weights)


def assert_same_tables(views, modules):
    for path, view in views.items():
        for one, other in zip(view.local_shards(), modules[path].local_shards(), strict=True):
            assert torch.equal(one.weights, other.weights), (path, one.table)
            for name in one.states:
                assert torch.equal(one.states[name], other.states[name]), (path, one.table, name)


def fill(context, plain):
    with torch.no_grad():
        for name, value in plain.named_parameters():
            value.copy_(torch.rand(value.shape, generator=context.generator(name)))


def filled(context, model):
    """An unsharded model with weights that the sharded one has loaded."""
    plain = Collections(torch.device("cpu"))
    fill(context, plain)
    missing, unexpected = model.load_state_dict(plain.state_dict(), strict=False)
    assert not unexpected and not [one for one in missing if one.endswith("weight")]
    return plain


def starts_of(tables):
    """The steps that tables have begun since, as a list that grows."""
    found, start = [], tables._engine.start
    tables._engine.start = lambda *ids: found.append(1) or start(*ids)
    return found
