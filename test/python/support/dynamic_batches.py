"""Batches, policies and checks of the tests of dynamic ids."""

import random

import torch

import neuroshard as ns

ROWS, DIM, SEED = 41, 12, 5
POLICIES = {"lru": {}, "lfu": {"evict_by": "lfu"}, "age": {"evict_by": "age"},
            "lfu_after": {"evict_by": "lfu", "admit_after": 2, "candidates": 30},
            "share": {"when_full": "share"}, "share_after": {"when_full": "share", "admit_after": 3}}


def policy_of(name):
    return ns.DynamicIds(**POLICIES[name])


def problem_of(context, optimizer="sgd", pooling="sum", type="f32"):
    """Table a has dynamic ids and two features that are not side by side, b has static ones."""
    tables = [ns.Table("b", 9, 4, optimizer=optimizer),
              ns.Table("a", ROWS, DIM, type=type, optimizer=optimizer)]
    features = [ns.Feature("a0", "a", pooling, 3), ns.Feature("b0", "b", pooling, 1),
                ns.Feature("a1", "a", "none" if pooling == "none" else "mean", 2)]
    return ns.ShardingProblem(tables=tables, features=features, batch=16 * context.size,
                              topology=f"{context.size}x{context.devices}")


def draw(chooser, ids):
    """An id of 64 bits: few often, many seldom, consecutive ones and others."""
    number = int(ids * chooser.random()**3) - 20
    return number if number % 3 else (number * 0x9e3779b97f4a7c15 + 2**63) % 2**64 - 2**63


class Batches:
    """Batches of all ranks, the same numbers on each."""

    def __init__(self, context, salt="", most=7, ids=300):
        self.context, self.most, self.ids = context, most, ids
        self.chooser = random.Random(f"{context.name} {salt}")

    def take(self):
        """Of each rank {feature: bags of ids}; some ranks and bags are empty."""
        batches = []
        for _ in range(self.context.size):
            samples = self.chooser.randint(0, self.most)
            batches.append({
                name: [[draw(self.chooser, self.ids) if name[0] == "a" else self.chooser.randrange(9)
                        for _ in range(self.chooser.randint(0, most))] for _ in range(samples)]
                for name, most in (("a0", 5), ("b0", 2), ("a1", 3))})
        return batches


def ids_of(batch):
    """The dynamic ids of a rank's batch, in the order of its features."""
    return [id for name in ("a0", "a1") for bag in batch[name] for id in bag]


def tensors(batch, row=None):
    """{feature: (ids, offsets)}. row: in place of dynamic ids, of these."""
    given = {}
    for name, bags in batch.items():
        ids = [row(id) if row and name[0] == "a" else id for bag in bags for id in bag]
        offsets = torch.tensor([0, *(len(bag) for bag in bags)]).cumsum(0)
        given[name] = torch.tensor(ids, dtype=torch.int64), offsets
    return given


def loss_of(results, factor=1.0):
    values = [one[0] if isinstance(one, tuple) else one for one in results.values()]
    return sum(((one.float() + 0.5)**2 * (number + factor)).sum() for number, one in enumerate(values))


def entries_of(tables, context, group=None, name="a"):
    """{id: [row, count, last, since]} of all ranks."""
    own = tables.dynamic_ids[name].owner.entries()
    everyone = context.gather(own[own[:, 2] > 0].tolist(), group)
    return {id: rest for entries in everyone for id, *rest in entries}


def check_map(context, tables, maps, name="a"):
    table = tables.dynamic_ids[name]
    wanted = {id: entry for part in maps.parts for id, entry in part.entries.items()}
    assert entries_of(tables, context, name=name) == wanted
    own = maps.parts[context.rank]
    ids, rows = table.pairs()
    assert dict(zip(ids.tolist(), rows.tolist())) == {id: one[0] for id, one in own.entries.items()}
    waiting = table.owner.candidates()
    assert {id: [count, last, place] for id, place, count, last, _ in waiting.tolist() if count} \
        == own.candidates
    found = table.figures()
    assert (found.ids, found.candidates, found.admitted, found.evicted, found.refused, found.forgotten) \
        == (len(own.entries), len(own.candidates), own.admitted, own.evicted, own.refused, own.forgotten)
    assert found.load == found.ids / found.rows
    assert table.total().ids == len(wanted) and table.total().rows == table.shared_row
