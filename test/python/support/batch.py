"""Batches of jagged ids: making them, cutting them into local batches."""

from dataclasses import dataclass

import torch

from support.model import ID_TYPES


@dataclass
class Jagged:
    """Feature-major ids with features x batch + 1 offsets (a KeyedJaggedTensor's layout)."""

    ids: torch.Tensor
    offsets: torch.Tensor
    weights: torch.Tensor | None
    features: int

    @property
    def batch(self):
        return (len(self.offsets) - 1) // self.features

    def tensors(self):
        """The two or three tensors that it consists of."""
        weights = [] if self.weights is None else [self.weights]
        return [self.ids, self.offsets, *weights]

    def feature(self, number):
        """(ids, offsets from 0, weights) of one feature."""
        bounds = self.offsets[number * self.batch:(number + 1) * self.batch + 1]
        part = slice(int(bounds[0]), int(bounds[-1]))
        weights = None if self.weights is None else self.weights[part]
        return self.ids[part], bounds - bounds[0], weights

    def span(self, number):
        """Where one feature's ids lie in `ids`."""
        return (int(self.offsets[number * self.batch]),
                int(self.offsets[(number + 1) * self.batch]))


def from_features(features, id_type, weighted):
    """Builds a Jagged from (ids, lengths, weights) per feature."""
    ids = torch.cat([ids for ids, _, _ in features]).to(ID_TYPES[id_type])
    lengths = torch.cat([lengths for _, lengths, _ in features])
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    weights = torch.cat([weights for _, _, weights in features]) if weighted else None
    return Jagged(ids, offsets, weights, len(features))


def local_sizes(batch, devices):
    """The first batch mod devices devices get one sample more."""
    return [batch // devices + (rank < batch % devices) for rank in range(devices)]


def split(jagged, devices):
    """The local batch of each device."""
    parts, begin = [], 0
    for size in local_sizes(jagged.batch, devices):
        features = []
        for number in range(jagged.features):
            ids, offsets, weights = jagged.feature(number)
            bounds = offsets[begin:begin + size + 1]
            part = slice(int(bounds[0]), int(bounds[-1]))
            features.append((ids[part], bounds.diff(),
                             weights[part] if weights is not None else None))
        id_type = "i32" if jagged.ids.dtype == torch.int32 else "i64"
        parts.append(from_features(features, id_type, jagged.weights is not None))
        begin += size
    return parts


def random_batch(model, input_, batch, generator, integers=False, longest=6):
    """Ids of few distinct rows, bags of 0 to `longest` of them; one feature may be empty.

    Ids that some lookup of the feature pads with are more frequent than others. Weights
    are integers on request."""
    features = []
    for name in input_.features:
        tables = [lookup for lookup in input_.lookups if lookup.feature == name]
        rows = min([model.table(lookup.table).rows for lookup in tables], default=1)
        lengths = torch.randint(0, longest + 1, (batch,), generator=generator)
        lengths[torch.rand(batch, generator=generator) < 0.2] = 0
        count = int(lengths.sum())
        ids = torch.randint(0, rows, (count,), generator=generator)
        for lookup in tables:
            if lookup.padding_idx is not None and lookup.padding_idx < rows:
                ids[torch.rand(count, generator=generator) < 0.25] = lookup.padding_idx
        weights = random_values((count,), generator, integers)
        features.append((ids, lengths, weights))
    return from_features(features, input_.id_type, input_.weighted)


def random_values(shape, generator, integers, dtype=torch.float32):
    """Values of order 1; or integers that every element type holds exactly."""
    if integers:
        return torch.randint(-3, 4, shape, generator=generator).to(dtype)
    return torch.randn(shape, generator=generator).to(dtype)
