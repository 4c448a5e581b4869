"""The models of export_models in TorchRec."""

import torch
from export_models import DENSE, DIM, CrossNet, dot_interaction, mlp
from torch import nn
from torchrec import (EmbeddingBagCollection, EmbeddingBagConfig, EmbeddingCollection,
                      EmbeddingConfig, KeyedJaggedTensor, PoolingType)


def keyed(samples, rows, generator, weighted=False, longest=4, id_type=torch.int64):
    """A KeyedJaggedTensor of the features {key: rows}, about a third of its bags empty."""
    lengths = torch.randint(0, longest + 1, (len(rows), samples), generator=generator)
    lengths[torch.rand(lengths.shape, generator=generator) < 0.2] = 0
    lengths[:, 0] = 2
    values = torch.cat([torch.randint(0, count, (int(part.sum()),), generator=generator)
                        for count, part in zip(rows.values(), lengths)]).to(id_type)
    weights = torch.rand(len(values), generator=generator) if weighted else None
    return KeyedJaggedTensor(keys=list(rows), values=values, weights=weights,
                             lengths=lengths.reshape(-1).to(id_type))


def bag(name, rows, features, dim=DIM, pooling=PoolingType.SUM):
    return EmbeddingBagConfig(name=name, embedding_dim=dim, num_embeddings=rows,
                              feature_names=features, pooling=pooling)


class DLRM(nn.Module):
    """Three tables, one of them read by two features; a key that nothing reads."""

    ROWS = {"user": 40, "unread": 3, "item": 300, "seen": 300, "country": 7}

    def __init__(self):
        super().__init__()
        self.sparse = EmbeddingBagCollection(tables=[
            bag("users", 40, ["user"]), bag("products", 300, ["item", "seen"]),
            bag("countries", 7, ["country"], pooling=PoolingType.MEAN)])
        self.bottom = mlp(DENSE, 16, DIM)
        self.top = mlp(DIM + 10, 12, 1)

    def forward(self, dense, features):
        bottom = self.bottom(dense)
        vectors = self.sparse(features).values().reshape(-1, 4, DIM)
        stacked = torch.cat([bottom.unsqueeze(1), vectors], 1)
        return torch.sigmoid(self.top(torch.cat([bottom, dot_interaction(stacked)], 1)))

    @classmethod
    def batch(cls, samples, generator):
        return (torch.randn(samples, DENSE, generator=generator),
                keyed(samples, cls.ROWS, generator))


class DCN(nn.Module):
    ROWS = {"city": 50, "device": 6}

    def __init__(self):
        super().__init__()
        self.sparse = EmbeddingBagCollection(tables=[bag("city", 50, ["city"]),
                                                     bag("device", 6, ["device"], 4)])
        self.cross = CrossNet(DENSE + DIM + 4)
        self.head = nn.Linear(DENSE + DIM + 4, 1)

    def forward(self, dense, features):
        vectors = self.sparse(features)
        return self.head(self.cross(torch.cat([dense, vectors["device"], vectors["city"]], 1)))

    @classmethod
    def batch(cls, samples, generator):
        return (torch.randn(samples, DENSE, generator=generator),
                keyed(samples, cls.ROWS, generator, id_type=torch.int32))


class DeepFM(nn.Module):
    """Weighted bags; a feature is read by two tables."""

    ROWS = {"shop": 30, "word": 90}

    def __init__(self):
        super().__init__()
        self.linear = EmbeddingBagCollection(is_weighted=True, tables=[
            bag(f"{name}_linear", rows, [name], 1) for name, rows in self.ROWS.items()])
        self.vectors = EmbeddingBagCollection(is_weighted=True, tables=[
            bag(f"{name}_vectors", rows, [name]) for name, rows in self.ROWS.items()])
        self.deep = mlp(len(self.ROWS) * DIM, 8, 1)

    def forward(self, features):
        vectors = self.vectors(features).values()
        stacked = vectors.reshape(-1, len(self.ROWS), DIM)
        second = 0.5 * (stacked.sum(1) ** 2 - (stacked ** 2).sum(1)).sum(1, keepdim=True)
        first = self.linear(features).values().sum(1, keepdim=True)
        return {"logit": first + second + self.deep(vectors)}

    @classmethod
    def batch(cls, samples, generator):
        return (keyed(samples, cls.ROWS, generator, weighted=True),)


class TwoTower(nn.Module):
    """A collection for each tower, both reading one KeyedJaggedTensor."""

    ROWS = {"user": 60, "history": 80, "item": 80}

    def __init__(self):
        super().__init__()
        self.query_tables = EmbeddingBagCollection(tables=[
            bag("users", 60, ["user"]), bag("seen", 80, ["history"], pooling=PoolingType.MEAN)])
        self.item_tables = EmbeddingBagCollection(tables=[bag("products", 80, ["item"])])
        self.query, self.candidate = mlp(2 * DIM, 8), mlp(DIM, 8)

    def forward(self, features):
        query = self.query(self.query_tables(features).values())
        candidate = self.candidate(self.item_tables(features).values())
        return (query * candidate).sum(1), query

    @classmethod
    def batch(cls, samples, generator):
        return (keyed(samples, cls.ROWS, generator),)


class Sequence(nn.Module):
    """A row for each item, padded, attended to by the user's vector."""

    ROWS = {"history": 70, "user": 20}

    def __init__(self):
        super().__init__()
        self.tables = EmbeddingCollection(tables=[
            EmbeddingConfig(name="products", embedding_dim=DIM, num_embeddings=70,
                            feature_names=["history"]),
            EmbeddingConfig(name="users", embedding_dim=DIM, num_embeddings=20,
                            feature_names=["user"])])
        self.head = nn.Linear(2 * DIM, 1)

    def forward(self, features):
        rows = self.tables(features)
        history = rows["history"].to_padded_dense(5)
        user = rows["user"].to_padded_dense(2).sum(1)
        scores = torch.softmax((history * user[:, None, :]).sum(2), 1)
        pooled = (history * scores[:, :, None]).sum(1)
        return self.head(torch.cat([pooled, user], 1))

    @classmethod
    def batch(cls, samples, generator):
        return (keyed(samples, cls.ROWS, generator, longest=5),)


TORCHREC = {"dlrm": DLRM, "dcn": DCN, "deepfm": DeepFM, "two_tower": TwoTower,
            "sequence": Sequence}
