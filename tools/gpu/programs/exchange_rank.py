#!/usr/bin/env python3
"""One rank of the check of sharded modules: forward and training steps of all models against
torch in float64. usage: torchrun --nproc-per-node N exchange_rank.py ARTIFACTS [--dry-run|--shared]
--shared: all ranks are on the first GPU, and messages go over the host by Gloo."""

import datetime
import os
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import processes  # noqa: E402

processes.die_with_parent()
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import exchange_cases  # noqa: E402
from neuroshard._artifact.manifest import Manifest  # noqa: E402
from neuroshard._jagged import Jagged  # noqa: E402
from neuroshard.distributed import _operators as operators  # noqa: E402
from neuroshard.distributed._device import pick_device  # noqa: E402
from neuroshard.distributed._engine import Engine  # noqa: E402
from neuroshard.distributed._session import make_groups  # noqa: E402
from neuroshard.distributed._shards import local_shards  # noqa: E402
from support import batch as batches, optimizers, oracle  # noqa: E402
from support.model import DTYPES  # noqa: E402

# Samples of each rank; a dry run does without the many.
STEPS = ((5, 3, 0, 7), (0, 9, 30, 2), (64, 64, 64, 64))
# A dry run may share a busy core.
LIMIT_S, DRY_LIMIT_S = 30, 600


class Mean:
    """Each backward updates, by gradients that are divided by the number of ranks."""

    def __init__(self, ranks):
        self.settings = [1 / ranks, 0.0, 0.0, 0.125]

    def gradient_settings(self):
        return self.settings


class Check:
    """One model on this rank."""

    def __init__(self, name, folder, device, backend):
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.model = exchange_cases.models()[name]
        self.lookups = [lookup for _, lookup in self.model.lookups()]
        picked = pick_device(device)
        self.engine, self.place = Engine(picked), picked.place
        self.engine.load()
        self.manifest = Manifest.read(folder / exchange_cases.place(name, self.ranks))
        groups = (make_groups(None, backend, self.place, self.manifest.relays)
                  if self.ranks > 1 else [])
        self.engine.join(name, folder / exchange_cases.place(name, self.ranks),
                         [group.group_name for group in groups], 1)
        operators.add_model(name, operators.Shapes(()), Mean(self.ranks))
        self.engine.initialize(exchange_cases.SEED)
        self.anchor = torch.zeros((), requires_grad=True)

    def whole(self):
        """{table: (weights, states)} of all ranks' shards, on the host."""
        self.engine.settle()
        own = [(shard.table, shard.rows, shard.cols, shard.weights.cpu(),
                [state.cpu() for state in shard.states.values()])
               for shard in local_shards(self.engine.shard_tensors, self.manifest, self.rank)]
        everyone = [None] * self.ranks
        dist.all_gather_object(everyone, own)
        return {table.name: self.joined(table, [one for pieces in everyone for one in pieces
                                                if one[0] == table.name])
                for table in self.model.tables}

    @staticmethod
    def joined(table, pieces):
        def put(target, rows, cols, values):
            part = target[slice(*rows)] if target.shape[1] == 1 else \
                target[slice(*rows), slice(*cols)]
            values = values.view(part.shape)
            known = ~part.isnan()
            assert torch.equal(part[known], values[known]), f"copies of {table.name} differ"
            part.copy_(values)

        weights = torch.full((table.rows, table.dim), float("nan"), dtype=pieces[0][3].dtype)
        states = [torch.full((table.rows, 1 if one.dim() == 1 else table.dim), float("nan"))
                  for one in pieces[0][4]]
        for _, rows, cols, values, own in pieces:
            for target, part in zip((weights, *states), (values, *own), strict=True):
                put(target, rows, cols, part)
        return weights, states

    def step(self, number, sizes):
        generator = torch.Generator().manual_seed(exchange_cases.SEED + number)
        parts = [batches.random_batch(self.model, self.model.inputs[0], size, generator)
                 for size in sizes[:self.ranks]]
        own, before = parts[self.rank], self.whole()
        ids, offsets, *weights = [one.to(self.place, copy=True) for one in own.tensors()]
        weights = [one.requires_grad_() for one in weights]
        given = Jagged(ids, offsets, *weights)
        ticket = self.engine.start(given)
        results = self.engine.wait(ticket, given, anchor=self.anchor)
        for index, (lookup, result) in enumerate(zip(self.lookups, results, strict=True)):
            expected = oracle.forward(before[lookup.table][0], own, index, lookup)
            oracle.assert_within(result.detach().cpu(), expected, f"step {number}: {lookup}")
        gradients = [[self.random_gradient(part, index, generator)
                      for index in range(len(self.lookups))] for part in parts]
        sum((result * gradient.to(self.place)).sum() for result, gradient
            in zip(results, gradients[self.rank])).backward()
        after = self.whole()
        for table in self.model.tables:
            self.check_table(table, before[table.name], after[table.name], parts, gradients,
                             number + 1)
        for weight in weights:
            self.check_weights(before, own, gradients[self.rank], weight.grad.cpu())

    def random_gradient(self, part, index, generator):
        lookup = self.lookups[index]
        begin, end = part.span(index)
        rows = end - begin if lookup.pooling == "unpooled" else part.batch
        return batches.random_values((rows, self.model.table(lookup.table).dim), generator, False,
                                     DTYPES[lookup.result])

    def check_table(self, table, before, after, parts, gradients, updates):
        readers = [(part, index, lookup, gradient[index].double() / self.ranks)
                   for part, gradient in zip(parts, gradients)
                   for index, lookup in enumerate(self.lookups) if lookup.table == table.name]
        expected = optimizers.step(table.optimizer, *before,
                                   oracle.table_gradient(before[0], readers), 0.125, updates)
        for what, value, bounded in zip(("weights", "state 0", "state 1"),
                                        (after[0], *after[1]), expected):
            oracle.assert_within(value, bounded, f"{table}: {what} after step {updates}")

    def check_weights(self, tables, part, gradients, got):
        for index, (lookup, gradient) in enumerate(zip(self.lookups, gradients)):
            weights, where = tables[lookup.table][0], slice(*part.span(index))
            one = oracle.sample_weight_gradient(weights, part, index, lookup, gradient)
            size = oracle.sample_weight_gradient(weights.abs(), part, index, lookup,
                                                 gradient.abs()).value
            oracle.assert_within(got[where], oracle.Bounded(
                one.value, one.error + 2 * oracle.ulp(size)), f"gradients of weights: {lookup}")


def main():
    folder, dry, shared = Path(sys.argv[1]), "--dry-run" in sys.argv, "--shared" in sys.argv
    torch.set_num_threads(1)
    device = "emulator" if dry else f"cuda:{0 if shared else os.environ['LOCAL_RANK']}"
    backend = "cpu:gloo" if dry or shared else "cpu:gloo,cuda:nccl"
    if not dry:
        torch.cuda.set_device(device)
    dist.init_process_group(backend,
                            timeout=datetime.timedelta(seconds=DRY_LIMIT_S if dry else LIMIT_S))
    for name in exchange_cases.models():
        check = Check(name, folder, device, backend)
        for number, sizes in enumerate(STEPS[:2] if dry else STEPS):
            check.step(number, sizes)
        check.engine.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
