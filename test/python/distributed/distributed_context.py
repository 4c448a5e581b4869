"""Helpers of the cases of neuroshard.distributed: modules, whole tables, expected errors."""

import traceback

import torch
import torch.distributed as dist

import neuroshard as ns
from support import matrix


class Context:
    """One case on one rank; what it made is closed when it ends."""

    tiers = ("ssd",)  # below device memory
    devices = "CPU@4GiB"

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.modules = []

    def generator(self, salt=""):
        """The same numbers on all ranks."""
        text = f"{matrix.seed()} {self.name} {salt}"
        return torch.Generator().manual_seed(sum(map(ord, text)) * 7919 % 2**31)

    def make(self, plan, problem, learning_rate=0.125, **options):
        unpooled = problem.features[0].pooling == "none"
        kind = ns.ShardedEmbeddingCollection if unpooled else ns.ShardedEmbeddingBagCollection
        module = kind(plan, problem, learning_rate=learning_rate, **{"threads": 1, **options})
        self.modules.append(module)
        return module

    def lone_group(self):
        """A group of this rank alone."""
        return dist.new_group([self.rank], use_local_synchronization=True)

    def gather(self, value, group=None):
        values = [None] * dist.get_world_size(group)
        dist.all_gather_object(values, value, group=group)
        return values

    def close(self):
        """"" if closing works, else the error."""
        try:
            for module in self.modules:
                module.close()
            self.modules = []
        except Exception:  # noqa: BLE001, it is the result
            return traceback.format_exc()
        return ""


def raises(kind, part, work):
    """The text of the error that work() must raise, which must contain `part`."""
    try:
        result = work()
    except kind as error:
        assert part in str(error), f"expected {part!r} in: {error}"
        return str(error)
    raise AssertionError(f"expected a {kind} with {part!r}, got the result {result!r}")


def whole(module, group=None):
    """{table: (weights, states)} of all ranks' shards, states as support.oracle has them. What
    several shards hold must be equal."""
    own = [(shard.table, shard.rows, shard.cols, shard.weights.clone(),
            [state.clone() for state in shard.states.values()])
           for shard in module.local_shards()]
    everyone = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyone, own, group=group)
    return {table.name: join(module, table, [piece for pieces in everyone for piece in pieces
                                             if piece[0] == table.name])
            for table in module.problem.tables}


def column_groups(plan, table):
    """Ranges of columns that have a row-wise state of their own."""
    if plan.optimizer_semantics == "exact":
        return [(0, table.dim)]
    return sorted({shard.cols for shard in plan.shards_of(table.name)})


def join(module, table, pieces):
    weights = torch.full((table.rows, table.dim), float("nan"), dtype=pieces[0][3].dtype)
    groups = column_groups(module.plan, table)
    states = [torch.full((table.rows, len(groups) if one.dim() == 1 else table.dim), float("nan"))
              for one in pieces[0][4]]
    for _, rows, cols, values, own in pieces:
        put(weights[slice(*rows), slice(*cols)], values, table.name)
        number = groups.index(cols) if cols in groups else 0
        for state, values in zip(states, own, strict=True):
            part = state[slice(*rows)]
            if values.dim() == 1:
                put(part[:, number], values, f"state of {table.name}")
            else:
                put(part[:, slice(*cols)], values, f"state of {table.name}")
    assert not weights.isnan().any(), f"{table.name} is not whole"
    return weights, states


def put(place, values, what):
    filled = ~place.isnan()
    assert (place == values)[filled].all(), f"copies of {what} differ"
    place.copy_(values)
