"""Cases: tables of dynamic ids beside a simulation of their maps, and beside static tables whose rows
are named as the simulation says."""

import contextlib
import random

import torch

import neuroshard as ns
from distributed_context import raises, whole
from distributed_models import make_plan
from neuroshard._optimizer_states import STATE_NAMES
from support.id_simulation import Maps, initial_weights

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


def kind_plan(context, problem, kind, tier):
    plan = make_plan(problem, ["table_wise", kind], context.size, 3)
    if not tier:
        return plan
    return plan.replace(shards=[one.replace(tier=tier, cache_rows=32, cache_policy="lru")
                                if len(one.devices) == 1 else one for one in plan.shards])


class Twins:
    """Tables of dynamic ids, static ones of the same plan, and the simulation."""

    def __init__(self, context, kind="rows", optimizer="adagrad", policy="lru", pooling="sum", type="f32",
                 tier="", seed=SEED, **options):
        self.context = context
        if tier == "dram":
            context.devices = "H200"  # the planner knows no host memory below CPUs
        sums = {} if optimizer in ("sgd", "adam") else {"initial_accumulator": 0.25}
        optimizer = ns.Optimizer(optimizer, **sums)
        self.problem = problem_of(context, optimizer, pooling, type)
        self.plan = kind_plan(context, self.problem, kind, tier)
        self.tables = context.make(self.plan, self.problem, dynamic_ids={"a": policy_of(policy)}, seed=seed,
                                   **options)
        self.static = context.make(self.plan, self.problem, seed=seed, **options)
        self.maps = Maps(ROWS, context.size, policy_of(policy))

    def rename(self, batches, first_held=None):
        """Lets the simulation see a batch; rows that get another id begin anew in the static tables.
        Gives what the static tables are asked for."""
        new = self.maps.train([ids_of(batch) for batch in batches], first_held)
        for shard in self.static.local_shards():
            here = [(row, id) for row, id in new if shard.table == "a" and shard.rows[0] <= row < shard.rows[1]]
            for row, id in here:
                weights = initial_weights("a", SEED, id, DIM, ROWS)
                shard.weights[row - shard.rows[0]] = torch.tensor(weights)[slice(*shard.cols)].to(
                    shard.weights.dtype)
                for name in shard.states:
                    shard.states[name][row - shard.rows[0]] = 0.25 if name == "sum" else 0.0
        return tensors(batches[self.context.rank], self.maps.row)

    def start(self, batches, first_held=None):
        """Results of both, which are equal."""
        given = self.rename(batches, first_held)
        found, wanted = self.tables(tensors(batches[self.context.rank])), self.static(given)
        assert_equal_results(found, wanted)
        return found, wanted

    def check(self):
        check_map(self.context, self.tables, self.maps)
        found, wanted = whole(self.tables), whole(self.static)
        for name, (weights, states) in wanted.items():
            assert torch.equal(found[name][0], weights), name
            assert len(states) == len(STATE_NAMES[self.problem.table(name).optimizer.kind])
            assert all(map(torch.equal, found[name][1], states)), name


def assert_equal_results(found, wanted):
    for name, one in wanted.items():
        pairs = zip(found[name], one) if isinstance(one, tuple) else [(found[name], one)]
        assert all(torch.equal(*pair) for pair in pairs), name


def case_same_bits(context, steps="14", **options):
    """Maps are those of the simulation, results and training those of static tables."""
    twins = Twins(context, **options)
    counts = "after" in options.get("policy", "")
    batches = Batches(context, ids=110) if counts else Batches(context)
    for _ in range(30 if counts else int(steps)):
        for results in twins.start(batches.take()):
            loss_of(results).backward()
        twins.check()
    figures = twins.tables.dynamic_ids["a"].total()
    policy = twins.tables.dynamic_ids["a"].policy
    assert figures.admitted > 25, figures
    if policy.when_full == "evict":
        assert figures.evicted > 10, figures
    else:
        assert figures.refused > 10, figures


def case_held(context, way="accumulate", policy="lru"):
    """Ids of steps that are not updated keep their rows, however a step's update comes later."""
    twins = Twins(context, kind="rows_and_columns", policy=policy,
                  **({"update_at": "step"} if way == "step" else {}))
    batches = Batches(context, most=2)
    for _ in range(8):
        first = twins.maps.lookup + 1
        if way == "two_forwards":
            both = [twins.start(batches.take(), first) for _ in range(3)]
            for results in both:
                for one in results:
                    loss_of(one).backward()
        else:
            with contextlib.ExitStack() as stack:
                if way == "accumulate":
                    for tables in (twins.tables, twins.static):
                        stack.enter_context(tables.accumulate())
                for _ in range(3):
                    for one in twins.start(batches.take(), first):
                        loss_of(one).backward()
            if way == "step":
                for tables in (twins.tables, twins.static):
                    tables.optimizer.step()
        twins.check()
    assert twins.tables.dynamic_ids["a"].total().evicted > 10


def case_started(context):
    """Rows of lookups that were started and not waited for stay, also those without training; dropped
    ones let them go."""
    twins = Twins(context, kind="columns")
    batches = Batches(context, most=3)
    for number in range(6):
        one, other = batches.take(), batches.take()
        first = twins.maps.lookup + 1
        if number % 2:
            twins.tables.eval()
            pending = twins.tables.start(tensors(one[context.rank]))
            twins.tables.train()
            twins.maps.find([ids_of(batch) for batch in one])
            rows = tensors(one[context.rank], twins.maps.row)
            with torch.no_grad():
                before = twins.static(rows)
            found, wanted = twins.start(other, first)
            assert_equal_results(pending.wait(), before)
        else:
            found, wanted = twins.start(other, first)
        loss_of(found).backward()
        loss_of(wanted).backward()
        twins.check()
    dropped = batches.take()
    del found, wanted
    twins.start(dropped)  # its results are dropped at once
    for results in twins.start(batches.take()):
        loss_of(results).backward()
    twins.check()


def case_modes(context, mode="eval", device="cpu"):
    """Lookups without training change no map; ids without a row read the shared row."""
    twins = Twins(context, policy="lfu_after", device=device)
    tables, batches = twins.tables, Batches(context)
    for _ in range(4):
        for results in twins.start(batches.take()):
            loss_of(results).backward()
    state, before = tables.dynamic_ids["a"].owner.entries(), whole(tables)
    figures = tables.dynamic_ids["a"].figures()
    if mode == "frozen":
        tables.requires_grad_(False)
    tables.train(mode != "eval")
    for _ in range(3):
        batch = batches.take()
        with torch.no_grad() if mode == "no_grad" else contextlib.nullcontext():
            found = tables(tensors(batch[context.rank]))
        with torch.no_grad():
            wanted = twins.static(tensors(batch[context.rank], twins.maps.row))
        assert_equal_results(found, wanted)
    unknown = {name: torch.full((1, 1), 0 if name == "b0" else 10**15) for name in ("a0", "b0", "a1")}
    with torch.no_grad() if mode == "no_grad" else contextlib.nullcontext():
        assert torch.equal(tables(unknown)["a0"][0], before["a"][0][ROWS - 1].float())
    assert torch.equal(tables.dynamic_ids["a"].owner.entries(), state)
    assert tables.dynamic_ids["a"].figures() == figures
    for name, (weights, _) in whole(tables).items():
        assert torch.equal(weights, before[name][0])


def case_threads(context):
    """The same bits on several threads."""
    made = [Twins(context, kind="rows_and_columns", optimizer="adam", threads=threads) for threads in (1, 3)]
    batches = Batches(context)
    for _ in range(6):
        batch = batches.take()
        for twins in made:
            for results in twins.start(batch):
                loss_of(results).backward()
    for twins in made:
        twins.check()
    first, second = (whole(twins.tables)["a"][0] for twins in made)
    assert torch.equal(first, second)


def case_compiled(context):
    """Around a lookup torch.compile leaves the map outside; both train alike."""
    twins = Twins(context)

    @torch.compile(backend="eager")
    def step(given):
        return sum(((one + 0.5)**2).sum() for one in twins.tables(given).values())

    batches = Batches(context)
    for _ in range(4):
        batch = batches.take()
        given = twins.rename(batch)
        step(tensors(batch[context.rank])).backward()
        sum(((one + 0.5)**2).sum() for one in twins.static(given).values()).backward()
        twins.check()


def case_refuse(context):
    """A full table that refuses ids is one error on all ranks, with an id and the rank; training goes on."""
    problem = problem_of(context, "adagrad")
    plan = make_plan(problem, ["table_wise", "rows"], context.size, 3)
    tables = context.make(plan, problem, dynamic_ids={"a": ns.DynamicIds(when_full="refuse")})
    maps = Maps(ROWS, context.size, ns.DynamicIds(when_full="refuse"))
    batches, errors = Batches(context), 0
    for _ in range(10):
        batch = batches.take()
        maps.train([ids_of(one) for one in batch])
        given = tensors(batch[context.rank])
        if maps.refusal:
            rank, id = maps.refusal
            text = raises(ns.TensorError, f"table \"a\" has no row for id {id}: all rows that rank {rank} gives",
                          lambda given=given: tables(given))
            assert len(set(context.gather(text))) == 1
            errors += 1
        else:
            loss_of(tables(given)).backward()
        check_map(context, tables, maps)
    assert errors > 2 and tables.step == 10 - errors
    tables.eval()
    tables(given)


def case_errors(context):
    problem = problem_of(context)
    plan = make_plan(problem, ["table_wise", "rows"], context.size, 3)
    for given, kind, text in (
            ({"c": ns.DynamicIds()}, ValueError, "expected tables of b, a, found 'c'"),
            ({"a": {"admit_after": 2}}, TypeError, "a dict with a DynamicIds for each table"),
            (["a"], TypeError, "a dict with a DynamicIds for each table")):
        raises(kind, text, lambda given=given: context.make(plan, problem, dynamic_ids=given))
    for given, text in (({"admit_after": 0}, "admit_after: expected a number from 1 to 1099511627776, found 0"),
                        ({"evict_by": "fifo"}, "evict_by: expected one of lru, lfu, age, found 'fifo'"),
                        ({"when_full": "grow"}, "when_full: expected one of evict, share, refuse"),
                        ({"candidates": 0}, "candidates: expected a number from 1 to 1099511627776, found 0")):
        raises(ValueError, text, lambda given=given: ns.DynamicIds(**given))
    narrow = problem.replace(batch=problem.batch.replace(id_type="i32"))
    raises(ValueError, "whose batch has ids of type i64, found i32",
           lambda: context.make(plan, narrow, dynamic_ids={"a": ns.DynamicIds()}))
    few = problem.replace(tables=[problem.tables[0], ns.Table("a", context.size, DIM)])
    raises(ValueError, f"expected at least {context.size + 1} rows",
           lambda: context.make(make_plan(few, ["table_wise", "table_wise"], context.size, 3), few,
                                dynamic_ids={"a": ns.DynamicIds()}))
    if context.size > 1:
        odd = ns.DynamicIds(admit_after=1 + (context.rank == 1))
        raises(ns.distributed.GroupError, "has another dynamic_ids than rank 0",
               lambda: context.make(plan, problem, dynamic_ids={"a": odd}))


def case_wrong_steps(context):
    """What is wrong with a rank's ids, or differs between ranks, is an error on all, and changes no
    map; the next step is right."""
    twins = Twins(context)
    tables, batches = twins.tables, Batches(context)
    for results in twins.start(batches.take()):
        loss_of(results).backward()
    right = tensors(batches.take()[context.rank])
    odd = context.rank == context.size - 1
    ids, offsets = right["a0"]
    for given, text in (({**right, "a0": (ids.double(), offsets)}, "torch.float64"),
                        ({**right, "a0": (torch.cat([ids, ids.new_zeros(1)]), offsets)}, "offsets")):
        error = raises(ValueError, text, lambda given=given: tables(given if odd else right))
        assert all(text in one for one in context.gather(error))
        check_map(context, tables, twins.maps)
    if context.size > 1:
        if odd:
            tables.eval()
        error = raises(ns.TensorError, "with dynamic ids all ranks must train, or none",
                       lambda: tables(right))
        assert len(set(context.gather(error))) == 1
        tables.train()
        check_map(context, tables, twins.maps)
    ids, offsets = torch.tensor([2**40, 2, 2**40]), torch.tensor([0, 1, 2, 3])
    jagged = ns.distributed.Jagged(ids, offsets)
    for broken, text in ((jagged._replace(offsets=torch.tensor([0, 5, 1, 3])), "offsets"),
                         (jagged._replace(offsets=offsets.double()), "offsets"),
                         (jagged._replace(offsets=offsets[:3]), "offsets"),
                         (jagged._replace(ids=ids.double()), "ids"), (jagged._replace(ids=ids[None]), "ids")):
        raises(ValueError, text, lambda broken=broken: tables(broken if odd else jagged))
        check_map(context, tables, twins.maps)
    for results in twins.start(batches.take()):
        loss_of(results).backward()
    twins.check()
    text = "neuroshard.distributed.pipeline cannot send dynamic ids ahead"
    raises(ns.TensorError, text, lambda: next(ns.distributed.pipeline([right], {tables: lambda one: one})))


def case_static_errors(context):
    """A static id that no row has ends the step on all ranks; rows that dynamic ids got stay theirs."""
    twins = Twins(context)
    batch = [{"a0": [[rank]], "b0": [[0]], "a1": [[2**62]]} for rank in range(context.size)]
    bad = dict(tensors(batch[context.rank]), b0=(torch.tensor([9]), torch.tensor([0, 1])))
    twins.rename(batch)
    raises(ValueError, "b0", lambda: twins.tables(bad))
    twins.check()
    for results in twins.start(batch):
        loss_of(results).backward()
    twins.check()


def case_two_tables(context):
    """Each table has a map of its own, also for the same ids."""
    tables = [ns.Table("a", ROWS, DIM), ns.Table("c", 17, 4)]
    features = [ns.Feature("a0", "a"), ns.Feature("c0", "c"), ns.Feature("a1", "a")]
    problem = ns.ShardingProblem(tables=tables, features=features, batch=16 * context.size,
                                 topology=f"{context.size}x{context.devices}")
    policies = {"c": ns.DynamicIds(evict_by="lfu"), "a": ns.DynamicIds(admit_after=2)}
    module = context.make(make_plan(problem, ["rows", "columns"], context.size, 3), problem,
                          dynamic_ids=policies)
    maps = {table.name: Maps(table.rows, context.size, policies[table.name]) for table in tables}
    batches = Batches(context, most=4)
    for _ in range(10):
        batch = [{"a0": one["a0"], "c0": one["a1"], "a1": one["a1"]} for one in batches.take()]
        given = {name: (torch.tensor([id for bag in bags for id in bag], dtype=torch.int64),
                        torch.tensor([0, *(len(bag) for bag in bags)]).cumsum(0))
                 for name, bags in batch[context.rank].items()}
        maps["a"].train([ids_of(one) for one in batch])
        maps["c"].train([[id for bag in one["c0"] for id in bag] for one in batch])
        loss_of(module(given)).backward()
        for name, one in maps.items():
            check_map(context, module, one, name)
    assert module.dynamic_ids["c"].total().evicted > 10


def case_memory(context):
    """What maps take is what the formula of docs/dynamic-ids.md says."""
    problem = problem_of(context)
    plan = make_plan(problem, ["table_wise", "rows"], context.size, 3)
    policy = ns.DynamicIds(admit_after=2, candidates=100)
    table = context.make(plan, problem, dynamic_ids={"a": policy}).dynamic_ids["a"]

    def bytes_for(count):
        places = 1
        while places < count + count // 2 + 1:
            places *= 2
        return 52 * count + 12 * places

    begin, end = table.candidate_range
    assert table.figures().memory_bytes == bytes_for(table.figures().rows) + bytes_for(end - begin)
