"""Cases: maps of dynamic ids in checkpoints and under other plans, on as many ranks and on others. What has
moved has the bits of a checkpoint that was loaded under the other plan."""

import random
import shutil

import torch
import torch.distributed as dist

import neuroshard as ns
from distributed_context import raises, whole
from distributed_dynamic import assert_equal_results
from distributed_models import KINDS, make_plan
from neuroshard._group.watched_group import group_count, set_group_count
from support.dynamic_batches import (DIM, ROWS, SEED, Batches, entries_of, ids_of, loss_of, policy_of, problem_of,
                                     tensors)
from support.id_simulation import Maps, initial_weights, owner_of

OPTIMIZER = ns.Optimizer("rowwise_adagrad", initial_accumulator=0.25)


class Group:
    """The first ranks of a job, with tables of dynamic ids."""

    def __init__(self, context, size, policy, seed=SEED):
        self.context, self.size, self.policy = context, size, policy_of(policy)
        set_group_count(max(context.gather(group_count())))  # those outside a group have made fewer
        self.group = dist.new_group(list(range(size)))
        self.is_in = context.rank < size
        self.seed = seed

    def make(self, dynamic=True):
        self.problem = problem_of(self.context, OPTIMIZER).replace(topology=f"{self.size}xCPU@4GiB")
        plan = make_plan(self.problem, ["columns", "rows_and_columns"], self.size, self.size)
        return self.context.make(plan, self.problem, process_group=self.group, seed=self.seed,
                                 **({"dynamic_ids": {"a": self.policy}} if dynamic else {}))

    def train(self, tables, batches, steps):
        for _ in range(steps):
            loss_of(tables(tensors(batches.take()[self.context.rank]))).backward()


def assert_same_tables(first, second, group=None):
    found, wanted = whole(first, group), whole(second, group)
    for name, (weights, states) in wanted.items():
        assert torch.equal(found[name][0], weights), name
        assert all(map(torch.equal, found[name][1], states)), name


def assert_same_maps(first, second):
    one, other = first.dynamic_ids["a"].owner, second.dynamic_ids["a"].owner
    assert torch.equal(one.entries(), other.entries())
    assert torch.equal(one.candidates(), other.candidates())
    assert one.batches() == other.batches()


def folder_of(context):
    path = context.folder / context.name.replace(":", "-")
    if context.rank == 0:
        shutil.rmtree(path, ignore_errors=True)
    dist.barrier()
    return path


def case_resume(context, policy="lru", by="save"):
    """Tables that resume from a checkpoint have the bits of those that have gone on, in maps, too."""
    ranks = Group(context, context.size, policy)
    tables, path = ranks.make(), folder_of(context)
    ranks.train(tables, Batches(context, "before"), 9)
    if by == "save":
        ns.distributed.save(path, {"tables": tables})
    else:
        state = {key: value.clone() for key, value in tables.state_dict().items()}
    ranks.train(tables, Batches(context, "after"), 7)
    ranks.seed = 77  # the checkpoint's counts, for initial weights of ids
    resumed = ranks.make()
    ranks.train(resumed, Batches(context, "forgotten"), 3)
    if by == "save":
        ns.distributed.load(path, {"tables": resumed})
    else:
        resumed.load_state_dict(state)
    ranks.train(resumed, Batches(context, "after"), 7)
    assert_same_maps(resumed, tables)
    assert_same_tables(resumed, tables)
    assert resumed.step == tables.step == 16


class Restored(Maps):
    """The simulation of maps that were loaded on other ranks: rows are those that its ranks have."""

    def __init__(self, tables, group, policy, before):
        super().__init__(ROWS, group.size, policy)
        rows = group.context.gather(tables.dynamic_ids["a"].owner.entries()[:, 1].tolist(), group.group)
        waiting = group.context.gather(tables.dynamic_ids["a"].owner.candidates().tolist(), group.group)
        for rank, part in enumerate(self.parts):
            part.entries = {id: list(entry) for id, entry in before.items() if owner_of(id, self.ranks) == rank}
            part.free = set(rows[rank]) - {entry[0] for entry in part.entries.values()}
            part.last_use = dict.fromkeys(part.entries, 0)
            part.batch = tables.dynamic_ids["a"].owner.batches()
            for id, place, count, last, _ in waiting[rank]:
                if count:
                    assert owner_of(id, self.ranks) == rank
                    part.candidates[id] = [count, last, place]
                    part.free_places.remove(place)


def case_other_ranks(context, policy="lru", first="4", second="3"):
    """On another number of ranks ids keep their rows; each rank owns its ids and a share of the rows, and
    trains on as the simulation and static tables do."""
    saved, loaded = Group(context, int(first), policy), Group(context, int(second), policy)
    path, known = folder_of(context), [None]
    if saved.is_in:
        tables = saved.make()
        saved.train(tables, Batches(context, "before"), 9)
        ns.distributed.save(path, {"tables": tables}, saved.group)
        waiting = context.gather(tables.dynamic_ids["a"].owner.candidates().tolist(), saved.group)
        known = [(entries_of(tables, context, saved.group), waiting)]
    dist.broadcast_object_list(known)
    before, waiting = known[0]
    assert len(before) > 8
    if not loaded.is_in:
        return
    tables, static = loaded.make(), loaded.make(dynamic=False)
    for one in (tables, static):
        ns.distributed.load(path, {"tables": one}, loaded.group)
    assert entries_of(tables, context, loaded.group) == before
    shares = context.gather(tables.dynamic_ids["a"].owner.entries()[:, 1].tolist(), loaded.group)
    assert sorted(row for share in shares for row in share) == list(range(ROWS - 1))
    used = [sum(owner_of(id, loaded.size) == rank for id in before) for rank in range(loaded.size)]
    for share, count in zip(shares, used):  # none is more than one row from the others, but for used ones
        assert len(share) >= count and (len(share) == count or len(share) <= min(map(len, shares)) + 1)
    maps = Restored(tables, loaded, loaded.policy, before)
    counts = {id: count for part in waiting for id, _, count, _, _ in part if count}
    assert {id: one[0] for part in maps.parts for id, one in part.candidates.items()}.items() <= counts.items()
    batches = Batches(context, "after")
    for _ in range(9):
        batch = batches.take()[:loaded.size]
        new = maps.train([ids_of(one) for one in batch])
        for shard in static.local_shards():
            for row, id in new:
                if shard.table == "a" and shard.rows[0] <= row < shard.rows[1]:
                    shard.weights[row - shard.rows[0]] = torch.tensor(
                        initial_weights("a", SEED, id, DIM, ROWS))[slice(*shard.cols)]
                    shard.states["sum"][row - shard.rows[0]] = 0.25
        found = tables(tensors(batch[context.rank]))
        wanted = static(tensors(batch[context.rank], maps.row))
        assert_equal_results(found, wanted)
        loss_of(found).backward()
        loss_of(wanted).backward()
    assert entries_of(tables, context, loaded.group) == {
        id: entry for part in maps.parts for id, entry in part.entries.items()}
    assert_same_tables(tables, static, loaded.group)
    # What was dealt anew is saved and loaded as it is.
    ns.distributed.save(path, {"tables": tables}, loaded.group)
    again = loaded.make()
    ns.distributed.load(path, {"tables": again}, loaded.group)
    assert_same_maps(again, tables)
    for one in (tables, again):
        loaded.train(one, Batches(context, "again"), 4)
    assert_same_maps(again, tables)
    assert_same_tables(again, tables, loaded.group)


def case_whole(context):
    """Only weights: with the maps, without the rest. Maps of a whole state_dict load as well."""
    ranks = Group(context, context.size, "lfu_after")
    tables, path = ranks.make(), folder_of(context)
    ranks.train(tables, Batches(context, "before"), 9)
    ns.distributed.save(path, {"tables": tables})
    other = ranks.make()
    ns.distributed.load(path, {"tables": other}, only="weights")
    assert_same_maps(other, tables)
    assert other.step == 0
    fresh = ranks.make()
    ns.distributed.load(path, {"tables": fresh}, only="optimizer")
    assert fresh.dynamic_ids["a"].figures().ids == 0 and fresh.step == 9
    chunks = {key: [(chunk.offsets[0], chunk.tensor.clone()) for chunk in value.chunks]
              for key, value in tables.state_dict().items() if key.endswith((".ids", ".candidates"))}
    state = {"embedding_bags.a.ids.numbers": tables.state_dict()["embedding_bags.a.ids.numbers"]}
    for key in chunks:
        pieces = sorted((piece for one in context.gather(chunks[key]) for piece in one), key=lambda one: one[0])
        state[key] = torch.cat([tensor for _, tensor in pieces])
    assert not fresh.load_state_dict(state, strict=False).unexpected_keys
    assert_same_maps(fresh, tables)


def case_errors(context):
    """A map is loaded whole; static tables have none; what is wrong on one rank is an error on all."""
    ranks = Group(context, context.size, "lru")
    tables, path = ranks.make(), folder_of(context)
    ranks.train(tables, Batches(context, "before"), 3)
    static = ranks.make(dynamic=False)
    ns.distributed.save(path, {"tables": static})
    raises(ns.distributed.CheckpointError, "tables.embedding_bags.a.ids is not in the checkpoint",
           lambda: ns.distributed.load(path, {"tables": tables}))
    entries = tables.dynamic_ids["a"].owner.entries()
    state = dict(tables.state_dict())
    numbers = state.pop("embedding_bags.a.ids.numbers")
    raises(RuntimeError, "expected with the other keys of embedding_bags.a.ids",
           lambda: tables.load_state_dict(state, strict=False))
    odd = context.rank == context.size - 1
    wrong = numbers[:2] if odd else numbers
    raises(RuntimeError, "expected 3 numbers of torch.int64",
           lambda: tables.load_state_dict({**state, "embedding_bags.a.ids.numbers": wrong}))
    # All rows are row 0 of rank 0, so that this rank has the error, and others its text.
    whole_map = torch.zeros(ROWS - 1, 6, dtype=torch.int64)
    raises(ValueError if context.rank == 0 else ns.distributed.GroupError, "expected each row from 0 to 39 once",
           lambda: tables.load_state_dict({"embedding_bags.a.ids": whole_map,
                                           "embedding_bags.a.ids.numbers": numbers}, strict=False))
    whole_map[:, 5] = context.size
    raises((ValueError, ns.distributed.GroupError), f"expected owners from 0 to {context.size - 1}",
           lambda: tables.load_state_dict({"embedding_bags.a.ids": whole_map,
                                           "embedding_bags.a.ids.numbers": numbers}, strict=False))
    assert torch.equal(tables.dynamic_ids["a"].owner.entries(), entries)


def plan_of(group, chooser):
    return make_plan(group.problem, [chooser.choice(KINDS) for _ in group.problem.tables], group.size, group.size)


def case_moved_same_ranks(context, policy="lru"):
    """Moves twice; is like tables that have stayed, and as those of a checkpoint."""
    ranks, chooser = Group(context, context.size, policy), random.Random(context.name)
    moved, stayed = ranks.make(), ranks.make()
    path = folder_of(context)
    for number in range(3):
        for one in (moved, stayed):
            ranks.train(one, Batches(context, f"part {number}"), 6)
        assert_same_maps(moved, stayed)
        assert_same_tables(moved, stayed)
        if number < 2:
            ns.distributed.save(path, {"tables": stayed})
            plan = plan_of(ranks, chooser)
            moved.reshard(plan)
            stayed.close()
            stayed = context.make(plan, ranks.problem, process_group=ranks.group, seed=99,
                                  dynamic_ids={"a": ranks.policy})
            ns.distributed.load(path, {"tables": stayed})
    figures = moved.dynamic_ids["a"].total()
    assert moved.step == 18 and figures.admitted == sum(context.gather(moved.dynamic_ids["a"].figures().admitted))


def case_never_moved(context, policy="lru"):
    """From one plan of whole rows to another the bits are those of tables that have stayed."""
    ranks = Group(context, context.size, policy)
    moved, stayed = ranks.make(), ranks.make()
    for kind in ("columns", "rows", "table_wise"):
        for one in (moved, stayed):
            ranks.train(one, Batches(context, kind), 6)
        assert_same_maps(moved, stayed)
        assert entries_of(moved, context) == entries_of(stayed, context)
        moved.reshard(make_plan(ranks.problem, ["table_wise", kind], context.size, 3))
    ranks.train(moved, Batches(context, "last"), 3)
    ranks.train(stayed, Batches(context, "last"), 3)
    assert_same_maps(moved, stayed)


def case_moved_other_ranks(context, policy="lru", first="4", second="3"):
    """Ids go to their owners among other ranks, as they do by way of a checkpoint."""
    before, after = Group(context, int(first), policy), Group(context, int(second), policy)
    path, tables = folder_of(context), None
    if before.is_in:
        tables = before.make()
        before.train(tables, Batches(context, "before"), 9)
        ns.distributed.save(path, {"tables": tables}, before.group)
    dist.barrier()
    moved = None
    if after.is_in:
        loaded = after.make()
        ns.distributed.load(path, {"tables": loaded}, after.group)
        plan, problem = loaded.plan, after.problem
    if before.is_in:
        plan, problem = context.gather((plan, problem) if after.is_in else None, before.group)[0]
        tables.reshard(plan, problem, after.group)
        moved = tables if after.is_in else None
    elif after.is_in:
        moved = ns.distributed.join_resharded(plan, problem, process_group=after.group, threads=1)
    if not after.is_in:
        raises(ValueError, "closed", lambda: tables(tensors(Batches(context).take()[0])))
        return
    for number in range(2):
        assert_same_maps(moved, loaded)
        assert_same_tables(moved, loaded, after.group)
        assert moved.dynamic_ids["a"].seed == SEED
        for one in (moved, loaded):
            after.train(one, Batches(context, f"after {number}"), 6)
    assert moved.step == loaded.step == 21


def case_moved_too_many(context):
    """More ranks than rows for them are an error on all, and everything stays."""
    small, large = Group(context, 1, "lru"), Group(context, context.size, "lru")
    table = ns.Table("a", 2, 4)
    problems = [ns.ShardingProblem(tables=[table], features=[ns.Feature("a0", "a")], batch=16 * one.size,
                                   topology=f"{one.size}xCPU@4GiB") for one in (small, large)]
    plans = [make_plan(one, ["table_wise"], size, size) for one, size in zip(problems, (1, context.size))]
    if not small.is_in:
        raises(ns.distributed.GroupError, "expected at least", lambda: ns.distributed.join_resharded(
            plans[1], problems[1], process_group=large.group, threads=1))
        return
    tables = context.make(plans[0], problems[0], process_group=small.group, dynamic_ids={"a": ns.DynamicIds()})
    raises(ValueError, f"expected at least {context.size + 1} rows",
           lambda: tables.reshard(plans[1], problems[1], large.group))
    loss_of(tables({"a0": torch.tensor([[2**40]])})).backward()
    assert tables.dynamic_ids["a"].figures().ids == 1
