"""The random shard sets of `neuroshard-collect sets`, as programs and as ids.

A set is what device 0 of a plan of two devices holds; what is missing of its tables lies on
device 1, so that cut tables are compiled as cut. Ids repeat as the table's reuse histogram
says (lib/Collect/IdGenerator.cpp, in terms of torch)."""

from dataclasses import dataclass

import numpy as np
import torch
from safetensors import safe_open

import paths  # noqa: F401, for support
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table

ELEMENT_TYPES = ("f32", "f16", "bf16")
OPTIMIZERS = ("sgd", "adagrad", "rowwise_adagrad", "adam")
COLD_BINS = 2
PRIME = 2654435761


class SetList:
    """The columns of the file; one index per sample."""

    def __init__(self, path):
        with safe_open(path, framework="numpy") as file:
            self.columns = {name: file.get_tensor(name) for name in file.keys()}
            self.metadata = dict(file.metadata())

    def __len__(self):
        return len(self.columns["sample.batch"])

    def batch(self, index):
        return int(self.columns["sample.batch"][index])

    def shards(self, index):
        first = self.columns["sample.first_shard"]
        names = [name for name in self.columns if name.startswith("shard.")]
        return [{name.removeprefix("shard."): self.columns[name][row].item() for name in names}
                for row in range(int(first[index]), int(first[index + 1]))]


@dataclass
class TableShards:
    """The shards of one table in a set: one, or both halves of its columns."""

    table: dict
    shards: list

    @property
    def name(self):
        return f"t{self.table['table']}"

    def unpooled_features(self, batch):
        """How many features have a result per id, as the number of result rows tells."""
        features, ids = self.table["features"], self.table["lookups"] / self.table["features"]
        return round((self.table["output_rows"] - batch * features) / (ids - batch or 1))

    def lookups(self, batch):
        """The first features are those without pooling, and then without weights."""
        unpooled = self.unpooled_features(batch)
        for number in range(self.table["features"]):
            pooling = "unpooled" if number < unpooled else "sum"
            weighted = bool(self.table["weighted"]) and pooling == "sum"
            yield Lookup(f"{self.name}_{number}", self.name, pooling, weighted)

    def places(self):
        """Shards of a plan; device 1 has the rest of the table."""
        rows, dim = self.table["table_rows"], self.table["table_dim"]
        end, column, made = self.table["rows"], 0, []
        for shard in self.shards:
            made.append(Shard(self.name, (0, end), (column, column + shard["width"]), (0,)))
            column += shard["width"]
        if column < dim:
            made.append(Shard(self.name, (0, end), (column, dim), (1,)))
        if end < rows:
            made.append(Shard(self.name, (end, rows), (0, dim), (1,)))
        return made


def tables_of(shards):
    grouped = {}
    for shard in shards:
        grouped.setdefault(shard["table"], []).append(shard)
    return [TableShards(same[0], same) for same in grouped.values()]


def model_of(shards, batch):
    """(model, plan) of a set; inputs are the plain features, then the weighted ones."""
    tables, places, lookups = [], [], {False: [], True: []}
    for group in tables_of(shards):
        facts = group.table
        tables.append(Table(group.name, facts["table_rows"], facts["table_dim"],
                            ELEMENT_TYPES[facts["element_type"]],
                            Optimizer(OPTIMIZERS[facts["optimizer"]])))
        places += group.places()
        for lookup in group.lookups(batch):
            lookups[lookup.weighted].append(lookup)
    id_type = "i32" if shards[0]["id_bytes"] == 4 else "i64"
    inputs = [Input(f"in{int(weighted)}", tuple(one.feature for one in found), tuple(found),
                    id_type, weighted) for weighted, found in lookups.items() if found]
    semantics = "exact" if any(shard["exact_norms"] for shard in shards) else "per_shard"
    devices = 1 + max(place.devices[0] for place in places)
    return Model(tables, inputs, batch), Plan(devices, places, semantics)


# Ids


class ReuseIds:
    """Ids of the rows [0, rows) with the repetitions of a histogram; batch follows batch."""

    def __init__(self, reuse, lookups_measured, rows, place, seed):
        self.rows, self.place, self.epoch = int(rows), place, 0
        self.generator = torch.Generator(place).manual_seed(seed)
        upper = 2.0 ** np.arange(len(reuse))
        lower = np.concatenate([[1], upper[:-2] + 1, [upper[-2] + 1]])
        upper[-1] = 2 * lower[-1]
        repeats = (lower + upper) / 2
        distinct = lookups_measured / max(1e-12, float((reuse * repeats).sum()))
        self.counts = np.maximum(0, np.round(distinct * reuse)).astype(np.int64)
        self.repeats = np.round(repeats).astype(np.int64)
        self.total = int((self.counts * self.repeats).sum())

    def draw(self, count):
        if not self.total:
            return torch.randint(0, self.rows, (count,), device=self.place,
                                 generator=self.generator)
        drawn = []
        while count > 0:
            part = self.draw_batch(min(count, self.total))
            drawn.append(part)
            count -= len(part)
        return torch.cat(drawn) if drawn else torch.empty(0, dtype=torch.int64, device=self.place)

    def draw_batch(self, count):
        """A random part of a batch as large as the measured one."""
        lookups = torch.randperm(self.total, device=self.place, generator=self.generator)[:count]
        ends = torch.tensor(np.cumsum(self.counts * self.repeats), device=self.place)
        bins = torch.searchsorted(ends, lookups, right=True)
        repeats = torch.tensor(self.repeats, device=self.place)[bins]
        first_rank = torch.tensor(np.cumsum(self.counts) - self.counts, device=self.place)[bins]
        begin = ends[bins] - torch.tensor(self.counts, device=self.place)[bins] * repeats
        ranks = first_rank + (lookups - begin) // repeats
        cold = int(self.counts[:COLD_BINS].sum())
        # Rows seen once or twice are others in the next batch.
        ranks = torch.where(ranks < cold, ranks + self.epoch * cold + int(self.counts.sum()), ranks)
        self.epoch += 1
        return ranks * PRIME % self.rows


def bag_lengths(facts, batch, generator, place):
    """Ids per bag of one feature: around the mean, and none beyond the rows that are here."""
    mean = facts["lookups"] / max(1, batch * facts["features"])
    noise = torch.rand(batch, device=place, generator=generator)
    if facts["rows"] < facts["table_rows"]:
        return torch.poisson(torch.full((batch,), mean, device=place), generator=generator).long()
    spread = mean if mean < 2 else mean * (0.5 + torch.rand(batch, device=place,
                                                            generator=generator))
    return (spread + noise).long()
