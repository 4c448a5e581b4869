"""Collections of TorchRec in all their forms: keys that are shared, split, unread or weighted."""

import neuroshard
import pytest
import torch
from export_runs import compare, embeddings_left
from export_torchrec_models import bag, keyed
from support import matrix
from torch import nn
from torchrec import (DataType, EmbeddingBagCollection, EmbeddingBagConfig, EmbeddingCollection,
                      EmbeddingConfig, KeyedJaggedTensor)

KEYS = {"x": 20, "y": 20}


class Built(nn.Module):
    """Makes its KeyedJaggedTensor itself; two tables read one key."""

    def __init__(self):
        super().__init__()
        self.tables = EmbeddingBagCollection(tables=[bag("a", 20, ["x"]), bag("b", 30, ["y", "x"])])

    def forward(self, values, lengths):
        made = self.tables(KeyedJaggedTensor.from_lengths_sync(
            keys=list(KEYS), values=values, lengths=lengths))
        return torch.cat([made["x@b"], made["y"], made["x@a"]], 1)


class Rows(nn.Module):
    """Every part of the JaggedTensors of an EmbeddingCollection."""

    def __init__(self, need_indices=False):
        super().__init__()
        self.tables = EmbeddingCollection(need_indices=need_indices, tables=[
            EmbeddingConfig(name=name, embedding_dim=8, num_embeddings=20, feature_names=keys)
            for name, keys in (("a", ["x"]), ("b", ["y", "x"]))])

    def forward(self, features):
        return {name: (rows.values(), rows.lengths(), rows.weights_or_none())
                for name, rows in self.tables(features).items()}


class RowsAndIds(Rows):
    def __init__(self):
        super().__init__(need_indices=True)


class Split(nn.Module):
    """A model that gives each collection its own keys."""

    def __init__(self):
        super().__init__()
        self.first = EmbeddingBagCollection(tables=[bag("a", 20, ["x"])])
        self.second = EmbeddingBagCollection(tables=[bag("b", 30, ["y"])])

    def forward(self, features):
        first, second = features.split([1, 1])
        return self.first(first).values() + self.second(second).values()


class Weighted(nn.Module):
    """Weights that one collection reads and the other does not."""

    def __init__(self):
        super().__init__()
        self.plain = EmbeddingBagCollection(tables=[bag("a", 20, ["x", "y"])])
        self.weighted = EmbeddingBagCollection(is_weighted=True, tables=[bag("b", 30, ["y"])])

    def forward(self, features):
        return torch.cat([self.plain(features).values(), self.weighted(features).values()], 1)


class Several(nn.Module):
    """One collection for two KeyedJaggedTensors, and an nn.EmbeddingBag."""

    def __init__(self):
        super().__init__()
        self.keyed = EmbeddingBagCollection(tables=[bag("a", 20, ["x"])])
        self.plain = nn.EmbeddingBag(20, 8, mode="sum", include_last_offset=True)

    def forward(self, features, ids):
        values = ids["y"]
        return (self.keyed(features[0]).values() + self.keyed(features[1]).values()
                + self.plain(values.values(), values.offsets()))


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = EmbeddingBagCollection(tables=[EmbeddingBagConfig(
            name="a", embedding_dim=8, num_embeddings=20, feature_names=["x"],
            data_type=DataType.FP16)])

    def forward(self, features):
        return self.tables(features).values()


def one(samples, generator):
    return (keyed(samples, KEYS, generator),)


def tensors(samples, generator):
    features = keyed(samples, KEYS, generator)
    return features.values(), features.lengths()


def with_weights(samples, generator):
    return (keyed(samples, KEYS, generator, weighted=True),)


def several(samples, generator):
    return ([keyed(samples, {"x": 20}, generator) for _ in range(2)],
            keyed(samples, KEYS, generator))


# module: (arguments, tables, lookups, keys of each jagged input)
CASES = {Built: (tensors, 2, 3, [("x", "y")]), Rows: (one, 2, 3, [("x", "y")]),
         RowsAndIds: (one, 2, 3, [("x", "y")]), Split: (one, 2, 2, [("x",), ("y",)]),
         Weighted: (with_weights, 2, 3, [("x", "y")] * 2),
         Several: (several, 2, 3, [("x",), ("x",), ("ids__values",)]),
         Half: (one, 1, 1, [("x", "y")])}


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_collection(kind, generator):
    arguments, tables, lookups, keys = CASES[kind]
    model = kind().eval()
    exported = neuroshard.export(model, arguments(4, generator))
    assert exported.counts == {"neuroshard.table": tables, "neuroshard.lookup": lookups,
                               "embeddings left to torch": 0}
    assert not embeddings_left(exported)
    assert [one.features for one in exported.inputs] == keys
    problem = exported.problem("2xCPU")
    assert len({feature.name for feature in problem.features}) == lookups
    plan = neuroshard.plan(problem, evaluation_budget=50).plan
    compare(model, exported, [arguments(size, generator) for size in (5, 2)], plan=plan)


def tables():
    return EmbeddingBagCollection(tables=[bag("a", 20, ["x"]), bag("b", 30, ["y"])])


def library_models():
    """The models that TorchRec ships."""
    from torchrec.models.deepfm import SimpleDeepFMNN
    from torchrec.models.dlrm import DLRM, DLRM_DCN, DLRM_Projection

    return {"DLRM": DLRM(tables(), 13, [16, 8], [8, 1]),
            "DLRM_DCN": DLRM_DCN(tables(), 13, [16, 8], [8, 1], 2, 4),
            "DLRM_Projection": DLRM_Projection(tables(), 13, [16, 8], [8, 1], [8, 24], [8, 24]),
            "SimpleDeepFMNN": SimpleDeepFMNN(13, tables(), 8, 4)}


@pytest.mark.parametrize("name", matrix.sample(
    ["DLRM", "DLRM_DCN", "DLRM_Projection", "SimpleDeepFMNN"], 2, "export library"))
def test_library_model(name, generator):
    model = library_models()[name].eval()

    def batch(samples):
        return (torch.randn(samples, 13, generator=generator), *one(samples, generator))

    exported = neuroshard.export(model, batch(4))
    assert exported.counts["neuroshard.lookup"] == 2 and not embeddings_left(exported)
    compare(model, exported, [batch(size) for size in (5, 1, 8)], devices=2)


def test_collection_on_the_meta_device(generator):
    model = nn.Sequential(EmbeddingBagCollection(device=torch.device("meta"), tables=[
        bag("a", 4_000_000_000, ["x"]), bag("b", 30, ["y"])]))
    exported = neuroshard.export(model, one(3, generator))
    problem = exported.problem("8xH200")
    assert [table.rows for table in problem.tables] == [4_000_000_000, 30]
    assert all(values.is_meta for values in model.parameters())


def test_a_used_batch_fits_a_program_made_from_a_fresh_one(generator):
    model = Half().eval()
    exported = neuroshard.export(model, one(3, generator))
    (features,) = one(6, generator)
    features.offsets(), features.to_dict()  # which it keeps
    compare(model, exported, [(features,)])


def test_other_collections_are_named():
    from torchrec.modules.fused_embedding_modules import FusedEmbeddingBagCollection

    model = nn.Sequential(FusedEmbeddingBagCollection(
        [bag("a", 20, ["x"])], torch.optim.SGD, {"lr": 0.1}))
    with pytest.raises(neuroshard.export.ExportError,
                       match="0: a FusedEmbeddingBagCollection cannot be exported; expected an "
                             "EmbeddingBagCollection"):
        neuroshard.export(model, one(3, torch.Generator()))
