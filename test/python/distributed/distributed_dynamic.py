"""Cases: tables of dynamic ids beside a simulation of their maps, and beside static tables whose rows
are named as the simulation says."""

import contextlib

import torch

import neuroshard as ns
from distributed_context import raises, whole
from distributed_models import make_plan
from neuroshard._artifact.optimizer_states import STATE_NAMES
from support.dynamic_batches import (DIM, ROWS, SEED, Batches, check_map, ids_of, loss_of, policy_of, problem_of,
                                     tensors)
from support.id_simulation import Maps, initial_weights, map_bytes

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
        sums = {"initial_accumulator": 0.25} if "sum" in STATE_NAMES[optimizer] else {}
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
    """What maps take is what the formula of docs/dynamic-ids.md says, and what the planner counts."""
    problem, (b, a) = problem_of(context), problem_of(context).tables
    problem = problem.replace(tables=[b, a.replace(dynamic_ids=True, id_candidates=100)])
    plan = make_plan(problem, ["table_wise", "rows"], context.size, 3)
    policy = ns.DynamicIds(admit_after=2, candidates=100)
    table = context.make(plan, problem, dynamic_ids={"a": policy}).dynamic_ids["a"]
    begin, end = table.candidate_range
    assert table.figures().memory_bytes == map_bytes(table.figures().rows) + map_bytes(end - begin)
    assert ns.inspect(problem, plan).memory.host_bytes == (table.total().memory_bytes,)
    for given, text in ((None, "says that table \"a\" has them"), ({"a": ns.DynamicIds()}, "its DynamicIds 0")):
        raises(ValueError, text, lambda given=given: context.make(plan, problem, dynamic_ids=given))


class Pipelined:
    """Tables that train in a pipeline, and others that train without one, which are the same."""

    def __init__(self, context, kind="rows", optimizer="adagrad", policy="lru", tier="", depth=2, **options):
        if tier == "dram":
            context.devices = "H200"
        self.context, self.depth = context, int(depth)
        problem = problem_of(context, ns.Optimizer(optimizer))
        plan = kind_plan(context, problem, kind, tier)
        self.piped, self.plain = (context.make(plan, problem, dynamic_ids={"a": policy_of(policy)}, seed=SEED,
                                               **options) for _ in range(2))

    def run(self, batches):
        """Batches of this rank, in the pipeline."""
        return ns.distributed.pipeline(batches, {self.piped: lambda batch: batch}, depth=self.depth)

    def check(self):
        table, other = (one.dynamic_ids["a"] for one in (self.piped, self.plain))
        assert torch.equal(table.owner.entries(), other.owner.entries())
        assert torch.equal(table.owner.candidates(), other.owner.candidates())
        assert table.figures() == other.figures()
        assert table.owner.batches() == other.owner.batches()
        for name, (weights, states) in whole(self.plain).items():
            found = whole(self.piped)[name]
            assert torch.equal(found[0], weights), name
            assert all(map(torch.equal, found[1], states)), name


def case_pipelined(context, steps="12", **options):
    """Maps, results and training have the bits of tables without a pipeline, in each step."""
    counts = "after" in options.get("policy", "")
    both, batches = Pipelined(context, **options), Batches(context, ids=110 if counts else 300)
    loader = [tensors(batches.take()[context.rank]) for _ in range(30 if counts else int(steps))]
    for batch in both.run(loader):
        found, wanted = both.piped(batch), both.plain(batch)
        assert_equal_results(found, wanted)
        both.check()
        for one in (found, wanted):
            loss_of(one).backward()
        both.check()
    figures = both.piped.dynamic_ids["a"].total()
    assert both.piped.step == len(loader) and figures.admitted > 25
    assert figures.evicted > 10 or figures.refused > 10, figures
    loss_of(both.piped(loader[0])).backward()
    loss_of(both.plain(loader[0])).backward()
    both.check()


def case_pipelined_otherwise(context, way="other_ids", depth="2"):
    """Steps that are not as was expected when their ids were mapped: maps are as without a pipeline."""
    both, batches = Pipelined(context, depth=depth, policy="lfu"), Batches(context, most=3, ids=80)
    loader = [tensors(batches.take()[context.rank]) for _ in range(10)]
    other = tensors(batches.take()[context.rank])
    for number, batch in enumerate(both.run(loader)):
        if way == "no_grad" and number % 3 == 1:
            with torch.no_grad():
                assert_equal_results(both.piped(batch), both.plain(batch))
        elif way == "skipped" and number % 3 == 1:
            pass
        elif way == "accumulate" and number % 2:
            with both.piped.accumulate(), both.plain.accumulate():
                for _ in range(2):
                    for tables in (both.piped, both.plain):
                        loss_of(tables(batch)).backward()
        else:
            for tables in (both.piped, both.plain):
                loss_of(tables(batch)).backward()
        if way == "other_ids" and number % 3 == 1:
            for tables in (both.piped, both.plain):
                loss_of(tables(other)).backward()
        both.check()
        if way == "loaded" and number == 4:
            for tables in (both.piped, both.plain):
                tables.load_state_dict({key: value.clone() for key, value in tables.state_dict().items()})
            both.check()
        if way == "break" and number == 5:
            break
    for tables in (both.piped, both.plain):
        loss_of(tables(other)).backward()
    both.check()


def case_pipelined_kept(context):
    """Gradients that wait for an update of later steps hold rows, as without a pipeline."""
    both, batches = Pipelined(context, update_every=3, policy="age"), Batches(context, most=2, ids=80)
    loader = [tensors(batches.take()[context.rank]) for _ in range(9)]
    for batch in both.run(loader):
        for tables in (both.piped, both.plain):
            loss_of(tables(batch)).backward()
        both.check()


def case_pipelined_errors(context):
    """An error of ids is raised at its step on all ranks; steps before it have ended, and nothing else
    counts."""
    both, batches = Pipelined(context), Batches(context, most=3, ids=80)
    loader = [tensors(batches.take()[context.rank]) for _ in range(5)]
    if context.rank == context.size - 1:
        ids, offsets = loader[3]["a0"]
        loader[3]["a0"] = ids.double(), offsets
    steps = []

    def train():
        for batch in both.run(loader):
            steps.append(loss_of(both.piped(batch)))
            steps[-1].backward()

    raises(ValueError, "torch.float64", train)
    assert len(steps) == 3
    for batch in loader[:3]:
        loss_of(both.plain(batch)).backward()
    both.check()
    full = Pipelined(context)
    full.piped, full.plain = (context.make(full.piped.plan, full.piped.problem,
                                           dynamic_ids={"a": ns.DynamicIds(when_full="refuse")}) for _ in range(2))
    ends = []
    for tables in (full.piped, full.plain):
        given = [tensors(one[context.rank]) for one in (Batches(context, "full").take() for _ in range(1))]
        more = Batches(context, "more")
        given += [tensors(more.take()[context.rank]) for _ in range(8)]
        count = 0
        try:
            for batch in (full.run(given) if tables is full.piped else given):
                loss_of(tables(batch)).backward()
                count += 1
        except ns.TensorError as error:
            ends.append((count, str(error)))
    assert len(ends) == 2 and ends[0] == ends[1] and "has no row for id" in ends[0][1]
    full.check()
    changed = Pipelined(context)
    given = [tensors(batches.take()[context.rank]) for _ in range(3)]

    def change():
        for batch in changed.run(given):
            given[1]["a0"][0].add_(1)  # is being mapped, and not sent yet
            loss_of(changed.piped(batch)).backward()

    raises(ns.TensorError, "the ids were changed in place", change)
    assert changed.piped.step == 1
