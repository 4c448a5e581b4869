"""Problems, plans and modules for tests of checkpoints.

Tables has shards as the real collection has them, but trains on gradients that every rank works
out by itself, so that it needs neither a compiler nor an exchange. Collection is the real one."""

import random

import torch
import torch.distributed as dist

import neuroshard as ns
from neuroshard._artifact.optimizer_states import ROW_STATES, STATE_NAMES
from neuroshard.distributed._checkpoint import state
from neuroshard.distributed._shards import LocalShard
from support import plans

KINDS = plans.KINDS
OPTIMIZERS = {
    "sgd": ns.Optimizer("sgd"),
    "adagrad": ns.Optimizer("adagrad", initial_accumulator=0.1),
    "rowwise_adagrad": ns.Optimizer("rowwise_adagrad", initial_accumulator=0.1),
    "adam": ns.Optimizer("adam"),
    "momentum": ns.Optimizer("momentum"),
    "partial_rowwise_adam": ns.Optimizer("partial_rowwise_adam"),
    "ftrl": ns.Optimizer("ftrl", initial_accumulator=0.1),
}
# Of which only the states are of interest here.
STATES_ALONE = {kind: ns.Optimizer(kind) for kind in (
    "lars_sgd", "lamb", "partial_rowwise_lamb", "rowwise_adagrad_with_counter")}
ROWS, DIM = 40, 20


def problem(tables, ranks, semantics="exact"):
    """Tables: ns.Table; each is read by one feature of its name."""
    return ns.ShardingProblem(
        tables=tables, features=[ns.Feature(table.name, table.name) for table in tables],
        batch=12, topology=f"{ranks}xCPU@4GiB", optimizer_semantics=semantics)


def matrix_tables(optimizers=OPTIMIZERS, kinds=KINDS, types=("f32",)):
    """A table per optimizer, kind of sharding and type."""
    return [ns.Table(f"{optimizer}_{kind}_{type}", ROWS, DIM, type, OPTIMIZERS[optimizer])
            for optimizer in optimizers for kind in kinds for type in types]


def plan(problem, kinds, ranks, seed, idle=()):
    """Random cuts: kinds[i] is how table i is sharded. Ranks in `idle` own nothing but replicas."""
    chooser = random.Random(seed)
    owners = [rank for rank in range(ranks) if rank not in idle]
    shards = []
    for table, kind in zip(problem.tables, kinds, strict=True):
        if kind == "replicated" and ranks == 1:
            kind = "table_wise"
        shards += [ns.Shard(table=shard.table, rows=shard.rows, cols=shard.cols,
                            devices=shard.devices)
                   for shard in plans.cut_table(table, kind, owners, ranks, chooser)]
    result = ns.Plan(shards=shards, device_count=ranks,
                     optimizer_semantics=problem.optimizer_semantics)
    result.verify(problem)
    return result


class Tables(torch.nn.Module):
    """The shards of one rank, with padded rows."""

    def __init__(self, plan, problem, rank=0, seed=0):
        super().__init__()
        self.plan, self.problem = plan, problem
        self.step, self.learning_rate = 0, 0.1
        self.shards = tuple(self._shard(shard, seed) for shard in plan.shards_on(rank))

    def _shard(self, shard, seed):
        table = self.problem.table(shard.table)
        rows, cols = slice(*shard.rows), slice(*shard.cols)
        memory = torch.full((shard.row_count, shard.width + 3), float("nan"),
                            dtype=state.DTYPES[table.type])
        weights = memory[:, :shard.width]
        weights.copy_(initial(table, seed)[rows, cols])
        states = {}
        for name in STATE_NAMES[table.optimizer.kind]:
            row_wise = name in ROW_STATES.get(table.optimizer.kind, ())
            shape = weights.shape[:1] if row_wise else weights.shape
            first = table.optimizer.initial_accumulator if name == "sum" else 0
            states[name] = torch.full(shape, float(first))
        return LocalShard(shard.name, shard.table, shard.rows, shard.cols, shard.devices, weights,
                          states)

    def local_shards(self):
        return self.shards

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for key, value in state.state_of(self).items():
            destination[prefix + key] = value

    def _load_from_state_dict(self, state_dict, prefix, _, *lists):
        state.load_from_state_dict(self, state_dict, prefix, *lists)

    @property
    def learning_rates(self):
        return [self.learning_rate]

    def set_learning_rate(self, value):
        self.learning_rate = value[0] if isinstance(value, list) else value

    def train(self, steps):
        for _ in range(steps):
            self.step += 1
            for shard in self.shards:
                self._update(shard, self.problem.table(shard.table))

    def _update(self, shard, table):
        whole = gradient(table, self.step)
        own = whole[slice(*shard.rows), slice(*shard.cols)]
        kind, eps = table.optimizer.kind, table.optimizer.eps
        one, two = table.optimizer.beta1, table.optimizer.beta2
        exact = self.plan.optimizer_semantics == "exact"
        norms = (whole[slice(*shard.rows)] if exact else own).double().pow(2).mean(1).float()
        if kind == "rowwise_adagrad":
            shard.states["sum"].add_(norms)
            change = own / (shard.states["sum"].sqrt() + eps)[:, None]
        elif kind == "partial_rowwise_adam":
            first, second = shard.states["exp_avg"], shard.states["exp_avg_sq"]
            first.mul_(one).add_(own, alpha=1 - one)
            second.mul_(two).add_(norms, alpha=1 - two)
            change = first / (second.sqrt() + eps)[:, None]
        elif kind == "momentum":
            change = shard.states["momentum_buffer"].mul_(one).add_(own)
        elif kind == "adagrad":
            shard.states["sum"].add_(own ** 2)
            change = own / (shard.states["sum"].sqrt() + eps)
        elif kind == "ftrl":
            total, linear = shard.states["sum"], shard.states["linear"]
            before = total.sqrt()
            total.add_(own ** 2)
            linear.add_(own - (total.sqrt() - before) / self.learning_rate * shard.weights.float())
            change = linear / (total.sqrt() + eps) + shard.weights.float() / self.learning_rate
        elif kind == "adam":
            first, second = shard.states["exp_avg"], shard.states["exp_avg_sq"]
            first.mul_(one).add_(own, alpha=1 - one)
            second.mul_(two).add_(own ** 2, alpha=1 - two)
            scale = second.div(1 - two ** self.step).sqrt_().add_(eps)
            change = first / scale / (1 - one ** self.step)
        else:
            change = own
        shard.weights.sub_((self.learning_rate * change).to(shard.weights.dtype))


def make(cuts, optimizer="rowwise_adagrad", semantics="exact", type="f32", rows=6, dim=16,
         name="t"):
    """One table on one rank; cuts: [(rows, cols)] of its shards."""
    made = problem([ns.Table(name, rows, dim, type, (OPTIMIZERS | STATES_ALONE)[optimizer])], 1, semantics)
    shards = [ns.Shard(table=name, rows=one, cols=two, devices=0) for one, two in cuts]
    cut = ns.Plan(shards=shards, device_count=1, optimizer_semantics=semantics)
    cut.verify(made)
    return Tables(cut, made)


def columns(*cuts, rows=6):
    return [((0, rows), pair) for pair in zip(cuts, cuts[1:])]


WHOLE = columns(0, 16)
GRID = [(rows, cols) for rows in ((0, 2), (2, 6)) for cols in ((0, 4), (4, 16))]
# Rows 0-2 are cut at column 4, rows 2-6 at column 12.
BRICKS = [((0, 2), (0, 4)), ((0, 2), (4, 16)), ((2, 6), (0, 12)), ((2, 6), (12, 16))]


class Collection(ns.ShardedEmbeddingBagCollection):
    """Trains on the same samples for any number of ranks."""

    def __init__(self, plan, problem, seed=0):
        super().__init__(plan, problem, learning_rate=0.1, seed=seed)

    def train(self, steps):
        for _ in range(steps):
            results = self(self._samples())
            loss = sum((values * torch.linspace(-1, 1, values.shape[1])
                        + 0.1 * values.square()).mean(0).sum() for values in results.values())
            loss.backward()

    def _samples(self):
        """This rank's part of a batch of bags with 0 to 3 ids."""
        generator = torch.Generator().manual_seed(self.step)
        size = self.problem.batch.global_size // dist.get_world_size()
        mine = slice(dist.get_rank() * size, (dist.get_rank() + 1) * size)
        bags = {}
        for table in self.problem.tables:
            lengths = torch.randint(4, (self.problem.batch.global_size,), generator=generator)
            ids = torch.randint(table.rows, (int(lengths.sum()),), generator=generator)
            ids = torch.cat([torch.empty(0, dtype=torch.int64),
                             *ids.split(lengths.tolist())[mine]])
            offsets = torch.zeros(size + 1, dtype=torch.int64)
            offsets[1:] = lengths[mine].cumsum(0)
            bags[table.name] = (ids, offsets)
        return bags


def initial(table, seed):
    generator = torch.Generator().manual_seed(seed * 1000 + sum(map(ord, table.name)))
    return torch.randn(table.rows, table.dim, generator=generator)


def gradient(table, step):
    generator = torch.Generator().manual_seed(step * 7919 + sum(map(ord, table.name)))
    return torch.randn(table.rows, table.dim, generator=generator)


def whole(module, gather=None):
    """Whole tables and states by key, put together from the shards of all ranks. gather: gives
    the values of all ranks; None on one."""
    parts = whole_parts(module)
    return put_together(module.problem, gather(parts) if gather else [parts])


def whole_parts(module):
    """What a rank contributes to the whole tables."""
    return [(shard.table, shard.rows, shard.cols, shard.weights.clone(),
             {name: values.clone() for name, values in shard.states.items()})
            for shard in module.local_shards()]


def put_together(problem, ranks):
    """Whole tables and states; values that several shards hold must be equal."""
    result = {}
    for name, rows, cols, weights, states in (part for parts in ranks for part in parts):
        table = problem.table(name)
        place(result, f"{name}.weight", table, rows, cols, weights)
        for kind, values in states.items():
            if values.dim() == 1:
                values = values[:, None].expand(-1, cols[1] - cols[0])
            place(result, f"{name}.{kind}", table, rows, cols, values)
    for key, values in result.items():
        assert not values.isnan().any(), key
    return result


def place(result, key, table, rows, cols, values):
    target = result.setdefault(key, torch.full((table.rows, table.dim), float("nan"),
                                               dtype=torch.float64))
    view = target[slice(*rows), slice(*cols)]
    assert view.isnan().all() or torch.equal(view, values.double()), key
    view.copy_(values)
