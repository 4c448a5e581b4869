"""Models to export, in plain torch, and batches for them.

A case is (model, batch): batch(samples, generator) gives the arguments of a call, with empty
bags."""

import torch
import torch.nn.functional as functional
from torch import nn

DENSE = 13
DIM = 8


def mlp(*widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def bags(samples, rows, generator, longest=4, id_type=torch.int64):
    """(ids, offsets [samples + 1]); about a third of the bags are empty."""
    lengths = torch.randint(0, longest + 1, (samples,), generator=generator)
    lengths[torch.rand(samples, generator=generator) < 0.2] = 0
    lengths[0] = 2  # an example needs ids
    ids = torch.randint(0, rows, (int(lengths.sum()),), generator=generator, dtype=id_type)
    return ids, functional.pad(lengths.cumsum(0), (1, 0)).to(id_type)


def dot_interaction(vectors):
    """All pairs of different vectors, as in DLRM."""
    products = torch.bmm(vectors, vectors.transpose(1, 2))
    rows, columns = torch.tril_indices(vectors.shape[1], vectors.shape[1], -1).unbind()
    return products[:, rows, columns]


class DLRM(nn.Module):
    """Bottom MLP, a bag of ids for each of three features, pairwise dot products, top MLP."""

    ROWS = (40, 7, 300)

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(rows, DIM, mode="sum", include_last_offset=True) for rows in self.ROWS)
        self.bottom = mlp(DENSE, 16, DIM)
        self.top = mlp(DIM + 6, 12, 1)

    def forward(self, dense, ids, offsets):
        bottom = self.bottom(dense)
        vectors = [table(*one) for table, one in zip(self.tables, zip(ids, offsets))]
        stacked = torch.stack([bottom, *vectors], 1)
        return torch.sigmoid(self.top(torch.cat([bottom, dot_interaction(stacked)], 1)))

    @classmethod
    def batch(cls, samples, generator):
        pairs = [bags(samples, rows, generator) for rows in cls.ROWS]
        return (torch.randn(samples, DENSE, generator=generator),
                [ids for ids, _ in pairs], [offsets for _, offsets in pairs])


class CrossNet(nn.Module):
    """DCN-v2: x[l + 1] = x[0] * (W[l] x[l] + b[l]) + x[l]."""

    def __init__(self, width, layers=2):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, first):
        x = first
        for layer in self.layers:
            x = first * layer(x) + x
        return x


class DCN(nn.Module):
    """One id for each feature, as columns of one tensor, i32; two features share a table."""

    def __init__(self):
        super().__init__()
        self.city = nn.EmbeddingBag(50, DIM, mode="mean")
        self.device = nn.Embedding(6, 4)
        self.cross = CrossNet(DENSE + 2 * DIM + 4)
        self.head = nn.Linear(DENSE + 2 * DIM + 4, 1)

    def forward(self, dense, categories):
        vectors = [self.city(categories[:, :1]), self.city(categories[:, 1:2]),
                   self.device(categories[:, 2])]
        return self.head(self.cross(torch.cat([dense, *vectors], 1)))

    @staticmethod
    def batch(samples, generator):
        columns = [torch.randint(0, rows, (samples, 1), generator=generator, dtype=torch.int32)
                   for rows in (50, 50, 6)]
        return torch.randn(samples, DENSE, generator=generator), torch.cat(columns, 1)


class DeepFM(nn.Module):
    """Every feature has a weight and a vector; bags by first offsets, weighted by the sample."""

    ROWS = (30, 90)

    def __init__(self):
        super().__init__()
        self.linear = nn.ModuleList(nn.EmbeddingBag(rows, 1, mode="sum") for rows in self.ROWS)
        self.vectors = nn.ParameterList(torch.randn(rows, DIM) for rows in self.ROWS)
        self.deep = mlp(len(self.ROWS) * DIM, 8, 1)

    def forward(self, features):
        linear, vectors = [], []
        for number, (ids, offsets, weights) in enumerate(features.values()):
            linear.append(self.linear[number](ids, offsets, weights))
            vectors.append(functional.embedding_bag(
                ids, self.vectors[number], offsets, mode="sum", per_sample_weights=weights))
        stacked = torch.stack(vectors, 1)
        second = 0.5 * (stacked.sum(1) ** 2 - (stacked ** 2).sum(1)).sum(1, keepdim=True)
        first = torch.cat(linear, 1).sum(1, keepdim=True)
        return {"logit": first + second + self.deep(torch.cat(vectors, 1))}

    @classmethod
    def batch(cls, samples, generator):
        features = {}
        for name, rows in zip(("shop", "word"), cls.ROWS):
            ids, offsets = bags(samples, rows, generator)
            features[name] = (ids, offsets[:-1], torch.rand(len(ids), generator=generator))
        return (features,)


class TwoTower(nn.Module):
    """Two towers whose item tables are one parameter."""

    def __init__(self):
        super().__init__()
        self.user = nn.EmbeddingBag(60, DIM, mode="sum", include_last_offset=True)
        self.history = nn.EmbeddingBag(80, DIM, mode="mean", include_last_offset=True,
                                       padding_idx=0)
        self.item = nn.EmbeddingBag(80, DIM, mode="sum", include_last_offset=False)
        self.item.weight = self.history.weight
        self.query, self.candidate = mlp(2 * DIM, 8), mlp(DIM, 8)

    def forward(self, user, user_offsets, history, history_offsets, item):
        query = self.query(torch.cat([self.user(user, user_offsets),
                                      self.history(history, history_offsets)], 1))
        candidate = self.candidate(self.item(item))
        return (query * candidate).sum(1), query

    @staticmethod
    def batch(samples, generator):
        return (*bags(samples, 60, generator), *bags(samples, 80, generator, 6),
                torch.randint(0, 80, (samples, 1), generator=generator))


class Sequence(nn.Module):
    """Self-attention over the last items, padded with 0, and positions."""

    LENGTH = 6

    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(70, DIM, padding_idx=0)
        self.positions = nn.Embedding(self.LENGTH, DIM)
        self.query, self.key, self.value = (nn.Linear(DIM, DIM) for _ in range(3))
        self.head = nn.Linear(DIM, 1)

    def forward(self, items):
        places = torch.arange(self.LENGTH).expand(items.shape[0], self.LENGTH)
        x = self.items(items) + self.positions(places)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / DIM ** 0.5
        scores = scores.masked_fill((items == 0)[:, None, :], -1e9)
        pooled = (torch.softmax(scores, 2) @ self.value(x)).mean(1)
        return self.head(pooled)

    @classmethod
    def batch(cls, samples, generator):
        items = torch.randint(0, 70, (samples, cls.LENGTH), generator=generator)
        return (items * (torch.rand(items.shape, generator=generator) < 0.7),)


PLAIN = {"dlrm": DLRM, "dcn": DCN, "deepfm": DeepFM, "two_tower": TwoTower, "sequence": Sequence}
