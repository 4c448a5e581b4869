"""Models of TorchRec of every kind that it runs: batches for them, and torch's own results."""

import warnings
from collections import Counter

import torch

warnings.filterwarnings("ignore")

from torchrec import (EmbeddingBagCollection, EmbeddingBagConfig,  # noqa: E402
                      EmbeddingCollection, EmbeddingConfig, KeyedJaggedTensor, PoolingType)

SAMPLES = 6


class Model(torch.nn.Module):
    """Poolings in one module, rows in another if there are any."""

    def __init__(self, bags, rows, weighted=False):
        super().__init__()
        self.bags = EmbeddingBagCollection(tables=bags, device=torch.device("meta"),
                                           is_weighted=weighted)
        if rows:
            self.rows = EmbeddingCollection(tables=rows, device=torch.device("meta"))

    def forward(self, bags, rows):
        outputs = dict(self.bags(bags).to_dict())
        if rows is not None:
            outputs |= {key: one.values() for key, one in self.rows(rows).items()}
        return outputs


def make_tables(number, dice):
    """DLRM-v2 with few rows and columns; or tables of both kinds, some of which read a feature
    that others read, too: (bags, rows, has sample weights)."""
    if number % 2 == 0:
        sizes = [(f"cat_{one}", dice.randint(1, 200), 16) for one in range(26)]
        return [EmbeddingBagConfig(name=name, num_embeddings=rows, embedding_dim=dim,
                                   feature_names=[f"f_{name}"]) for name, rows, dim in sizes
                ], [], False
    weighted = dice.random() < 0.25
    poolings = [PoolingType.SUM] if weighted else [PoolingType.SUM, PoolingType.MEAN]
    bags = [EmbeddingBagConfig(name=f"bag{one}", num_embeddings=dice.randint(1, 90),
                               embedding_dim=4 * dice.randint(1, 12),
                               pooling=dice.choice(poolings),
                               feature_names=features_of("b", one, dice)) for one in range(5)]
    dim = 4 * dice.randint(1, 12)
    rows = [EmbeddingConfig(name=f"row{one}", num_embeddings=dice.randint(1, 90),
                            embedding_dim=dim, feature_names=features_of("r", one, dice))
            for one in range(3)]
    return bags, rows, weighted


def features_of(prefix, table, dice):
    """One or two of its own, and now and then one that other tables read."""
    own = [f"{prefix}{table}{part}" for part in "xy"[:dice.randint(1, 2)]]
    return own + [f"{prefix}_shared"] * (dice.random() < 0.3)


def draw(configs, generator, most, weighted=False):
    """A KeyedJaggedTensor of SAMPLES bags of each feature, with ids that all its tables have."""
    rows = {}
    for config in configs:
        for key in config.feature_names:
            rows[key] = min(rows.get(key, config.num_embeddings), config.num_embeddings)
    counts = {key: torch.randint(0, most + 1, (SAMPLES,), generator=generator) for key in rows}
    ids = torch.cat([torch.randint(0, rows[key], (int(counts[key].sum()),), generator=generator)
                     for key in rows])
    return KeyedJaggedTensor(
        list(rows), ids, lengths=torch.cat(list(counts.values())).int(),
        weights=torch.rand(len(ids), generator=generator) if weighted else None)


def whole_weights(configs, generator):
    return {one.name: torch.rand(one.num_embeddings, one.embedding_dim, generator=generator)
            for one in configs}


def lookup(config, part, weights):
    """torch's own result of one feature of one batch."""
    table, ids = weights[config.name], part.values().long()
    if isinstance(config, EmbeddingConfig):
        return torch.nn.functional.embedding(ids, table)
    return torch.nn.functional.embedding_bag(
        ids, table, part.offsets()[:-1].long(), mode=config.pooling.name.lower(),
        per_sample_weights=part.weights_or_none())


def reference(bags, rows, ids, weights):
    """As Model gives it. A feature that several tables read gives feature@table."""
    outputs = {}
    for configs, keyed in zip((bags, rows), ids):
        readers = Counter(key for config in configs for key in config.feature_names)
        for config in configs:
            for key in config.feature_names:
                name = f"{key}@{config.name}" if readers[key] > 1 else key
                outputs[name] = lookup(config, keyed[key], weights)
    return outputs


def loss_of(outputs):
    return sum((one * torch.linspace(-1, 1, one.numel()).view_as(one)).sum()
               for _, one in sorted(outputs.items()))
