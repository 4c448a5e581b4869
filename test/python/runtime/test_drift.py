"""Copies that drift (sync_every) train as a simulation with torch alone: an embedding and an optimizer
for each copy on the samples of its readers, whose weights and states are averaged every k steps."""

from dataclasses import replace

import pytest
import torch

from support import artifact
from support.batch import from_features, random_values
from support.host import RuntimeFailure
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.session import Session

EVERY = 3
RATE = 0.25
ROWS = 37
OPTIMIZERS = {
    "sgd": (Optimizer("sgd"), lambda p: torch.optim.SGD(p, RATE), ()),
    "adagrad": (Optimizer("adagrad", eps=1e-10), lambda p: torch.optim.Adagrad(p, RATE), ("sum",)),
    "adam": (Optimizer("adam"), lambda p: torch.optim.SparseAdam(p, RATE), ("exp_avg", "exp_avg_sq")),
}


def whole(table, *devices):
    return [Shard(table.name, (0, table.rows), (0, table.dim), devices, sync_every=EVERY)]


def per_pair(table):
    """In each of two groups of two devices, rows on one and rows on the other."""
    half = table.rows // 2
    return [Shard(table.name, (0, half), (0, table.dim), (0, 3), sync_every=EVERY),
            Shard(table.name, (half, table.rows), (0, table.dim), (1, 2), sync_every=EVERY)]


def columns_per_pair(table):
    return [Shard(table.name, (0, table.rows), (0, 4), (0, 2), sync_every=EVERY),
            Shard(table.name, (0, table.rows), (4, table.dim), (1, 3), sync_every=EVERY)]


def columns_of_other_ranks(table):
    """Device 0 has copies of both, which other ranks read."""
    return [Shard(table.name, (0, table.rows), (0, 4), (0, 1), sync_every=EVERY),
            Shard(table.name, (0, table.rows), (4, table.dim), (0, 2), sync_every=EVERY)]


# What cuts a table, devices, groups, and, by columns, the ranks that read each copy.
PLANS = {
    "on_all": (lambda table: whole(table, 0, 1, 2), 3, 1, {(0, 12): [(0,), (1,), (2,)]}),
    "on_two": (lambda table: whole(table, 0, 1), 4, 1, {(0, 12): [(0,), (1, 2, 3)]}),
    "rows_per_pair": (per_pair, 4, 2, {(0, 12): [(0, 1), (2, 3)]}),
    "columns_per_pair": (columns_per_pair, 4, 2, {(0, 12): [(0, 1), (2, 3)]}),
    "columns_of_other_ranks": (columns_of_other_ranks, 3, 1,
                               {(0, 4): [(0,), (1, 2)], (4, 12): [(0, 1), (2,)]}),
}
# The last: on GPUs in the emulator, which take their time.
CASES = [("on_all", "adagrad", False), ("on_two", "sgd", False), ("rows_per_pair", "adam", False),
         ("columns_per_pair", "adagrad", False), ("columns_of_other_ranks", "adam", False),
         ("columns_of_other_ranks", "adagrad", True)]


def make(optimizer):
    tables = [Table("drifting", ROWS, 12, "f32", optimizer), Table("other", 20, 8, "f32", optimizer)]
    lookups = (Lookup("a", "drifting"), Lookup("b", "other"))
    return Model(tables, [Input("ids", ("a", "b"), lookups)])


class Simulation:
    """Copies of one table. readers: of each copy."""

    def __init__(self, weights, make_optimizer, states, readers):
        self.readers, self.states = readers, states
        self.copies = [torch.nn.EmbeddingBag(*weights.shape, mode="sum", sparse=True,
                                             _weight=weights.clone()) for _ in readers]
        self.optimizers = [make_optimizer([copy.weight]) for copy in self.copies]

    def of_rank(self, rank):
        """The weights that a rank reads."""
        number = next(n for n, ranks in enumerate(self.readers) if rank in ranks)
        return self.copies[number].weight.detach()

    def state(self, name):
        return self.optimizers[0].state[self.copies[0].weight][name]

    def step(self, batches, gradients, number):
        """batches: of each rank, (ids, offsets, weights); gradients: of its bags."""
        for copy, optimizer, ranks in zip(self.copies, self.optimizers, self.readers):
            optimizer.zero_grad()
            for rank in ranks:
                ids, offsets, weights = batches[rank]
                out = copy(ids, offsets[:-1], weights)
                out.backward(gradients[rank] * len(self.copies))
            if copy.weight.grad is not None:
                optimizer.step()
        if number % EVERY == 0:
            self.average()

    def average(self):
        self.mean(*(copy.weight for copy in self.copies))
        for name in self.states:
            self.mean(*(optimizer.state[copy.weight][name]
                        for copy, optimizer in zip(self.copies, self.optimizers)))

    @staticmethod
    @torch.no_grad()
    def mean(*tensors):
        mean = sum(tensors) / len(tensors)
        for tensor in tensors:
            tensor.copy_(mean)


def random_ids(size, generator):
    features = []
    for rows in (ROWS, 20):
        lengths = torch.randint(0, 5, (size,), generator=generator)
        features.append((torch.randint(0, rows, (int(lengths.sum()),), generator=generator), lengths, None))
    return [from_features(features, "i64", False)]


@pytest.mark.parametrize(("plan", "optimizer", "emulated"), CASES)
def test_trains_as_a_simulation(plan, optimizer, emulated, tmp_path, generator):
    cut, devices, groups, readers = PLANS[plan]
    described, make_optimizer, states = OPTIMIZERS[optimizer]
    model = make(described)
    drifting, _ = model.tables
    plan = Plan(devices, [*cut(drifting), Shard("other", (0, 20), (0, 8), (1,))], groups=groups)
    folder = artifact.compile_model(model, plan, tmp_path / "model",
                                    *(artifact.EMULATED if emulated else ()))
    with Session(folder, model, plan, emulated=emulated) as session:
        session.fill(generator, False)
        weights = session.world.read_table("drifting")
        parts = {cols: Simulation(weights[:, slice(*cols)], make_optimizer, states, ranks)
                 for cols, ranks in readers.items()}
        for number in range(1, 2 * EVERY + 2):
            jagged = random_ids(23, generator)
            results, contexts = session.wait_results(jagged)
            local = [part[0] for part in session.scatter(jagged)]
            sizes = [part.batch for part in local]
            for rank, found in enumerate(results[0].split(sizes)):
                ids, offsets, _ = local[rank].feature(0)
                assert_close(found, torch.nn.functional.embedding_bag(ids, of_rank(parts, rank), offsets[:-1],
                                                                      mode="sum"))
            gradients = [torch.randn(result.shape, generator=generator) for result in results]
            session.update(jagged, contexts, gradients, RATE, number)
            for cols, part in parts.items():
                part.step([one.feature(0) for one in local], gradients[0][:, slice(*cols)].split(sizes), number)
            if number % EVERY:
                with pytest.raises(RuntimeFailure, match="drift.*average"):
                    session.world.read_table("drifting")
            else:  # a read compares the copies
                assert_close(session.world.read_table("drifting"), of_rank(parts, 0))
        session.world.average_copies()
        for part in parts.values():
            part.average()
        assert_close(session.world.read_table("drifting"), of_rank(parts, 0))
        for name, state in zip(states, session.world.read_states("drifting")):
            assert_close(state, torch.cat([part.state(name) for part in parts.values()], dim=1))


def of_rank(parts, rank):
    return torch.cat([part.of_rank(rank) for part in parts.values()], dim=1)


def assert_close(found, expected):
    torch.testing.assert_close(found, expected, rtol=2e-6, atol=2e-6)


def test_averages_of_each_step_are_exact_for_sgd(tmp_path, generator):
    """SGD whose copies are averaged after each step trains as without sharding, bit for bit where nothing
    rounds: gradients have the factor that this takes, and those of sample weights have none."""
    sgd = Optimizer("sgd")
    tables = [Table("all", 30, 12, "f32", sgd), Table("rows", 40, 8, "f16", sgd), Table("columns", 20, 8, "f32", sgd)]
    lookups = (Lookup("a", "all", "sum", True), Lookup("a", "rows", "sum", True), Lookup("b", "columns", "mean"),
               Lookup("b", "all", "unpooled"))
    model = Model(tables, [Input("ids", ("a", "b"), lookups, weighted=True)])
    shards = [Shard("all", (0, 30), (0, 12), (0, 1, 2, 3)),
              Shard("rows", (0, 9), (0, 8), (0, 3)), Shard("rows", (9, 40), (0, 8), (1, 2)),
              Shard("columns", (0, 20), (0, 4), (0, 2)), Shard("columns", (0, 20), (4, 8), (1, 3))]
    plan = Plan(4, [replace(shard, sync_every=1) for shard in shards], groups=2)
    folder = artifact.compile_model(model, plan, tmp_path / "model")
    with Session(folder, model, plan) as session:
        session.fill(generator, True)
        for number, size in enumerate((16, 3), start=1):
            before = session.tables()
            session.sync_reference()
            jagged = session.random_batch(size, generator, True)
            results, contexts = session.wait_results(jagged)
            session.check_forward(jagged, results, True)
            gradients = [random_values(result.shape, generator, True, result.dtype) for result in results]
            got = session.update(jagged, contexts, gradients, RATE, number)
            session.check_update(before, jagged, gradients, RATE, number)
            session.check_weight_gradients(before, jagged, gradients, got)
