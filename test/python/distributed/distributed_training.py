"""Cases: forward and training steps equal torch on the gathered global batch."""

from unittest import mock

import torch
import torch.distributed as dist
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

import neuroshard as ns
from distributed_context import column_groups, raises, whole
from distributed_models import (input_of, joined, kinds_of, lone, make_plan, make_problem, in_tiers,
                                random_parts)
from neuroshard.errors import TensorError
from support import matrix, optimizers, oracle
from support.batch import random_values
from support.model import DTYPES

# Unit roundoff, and half of the smallest step.
ROUNDING = {"f32": (0.0, 0.0), "f16": (2.0**-11, 2.0**-25), "bf16": (2.0**-8, 2.0**-134)}


def roundings(problem):
    """Of results and of gradients on the wire."""
    types = problem.batch.wire_type.split("/")
    return ROUNDING[types[0]], ROUNDING[types[-1]]


class Training:
    """A module and, beside it, the formulas."""

    def __init__(self, context, plan, problem, group=None, scale=None, **options):
        self.context, self.plan, self.problem, self.group = context, plan, problem, group
        self.module = context.make(plan, problem, process_group=group, **options)
        self.lookups = input_of(problem).lookups
        self.scale = 1 / plan.device_count if scale is None else scale
        self.rank = torch.distributed.get_rank(group)
        self.distinct = options.get("distinct_ids", False)
        self.updates = 0

    def step(self, parts, generator, learning_rate=0.125, keyed=False):
        """Checks a forward and an update; gives the results. keyed: ids come in a
        KeyedJaggedTensor."""
        self.module.set_learning_rate(learning_rate)
        results, weights = self.forward(parts, keyed)
        self.backward(parts, results, weights, generator)
        return results

    def forward(self, parts, keyed=False):
        """The results of the own part, checked, and its sample weights."""
        own, before = parts[self.rank], whole(self.module, self.group)
        ids, offsets, *weights = own.tensors()
        weights = [one.clone().requires_grad_() for one in weights]
        if keyed:
            given = KeyedJaggedTensor([one.name for one in self.problem.features], ids,
                                      *weights, lengths=offsets.diff())
        else:
            given = ns.distributed.Jagged(ids, offsets, *weights)
        results = self.values(self.module(given))
        self.check_results(before, own, results)
        return results, weights

    def backward(self, parts, results, weights, generator):
        """Checks the update by random gradients of the results of forward()."""
        own, before = parts[self.rank], whole(self.module, self.group)
        gradients = [self.random_gradients(part, generator) for part in parts]
        loss = sum((result * gradient).sum() for result, gradient
                   in zip(results, gradients[self.rank], strict=True))
        loss.backward()
        self.updates += 1
        assert self.module.step == self.updates
        after = whole(self.module, self.group)
        if self.rank == 0:
            self.check_tables(before, after, parts, gradients, self.module.learning_rate)
        if weights:
            self.check_weights(before, own, gradients[self.rank], weights[0].grad)

    def values(self, output):
        if isinstance(output, KeyedTensor):
            assert output.values().is_contiguous()
            output = output.to_dict()
        assert list(output) == [lookup.feature for lookup in self.lookups]
        return [one if isinstance(one, torch.Tensor) else one[0] for one in output.values()]

    def random_gradients(self, part, generator):
        rows = [part.span(number)[1] - part.span(number)[0] if lookup.pooling == "unpooled"
                else part.batch for number, lookup in enumerate(self.lookups)]
        return [random_values((count, self.problem.table(lookup.table).dim), generator, False,
                              DTYPES[lookup.result])
                for count, lookup in zip(rows, self.lookups, strict=True)]

    def widened(self, bounded, magnitude, terms):
        """The value with the error of `terms` values that were rounded for sending."""
        relative, smallest = roundings(self.problem)[0]
        return oracle.Bounded(bounded.value,
                              bounded.error + 1.01 * relative * magnitude + terms * smallest)

    def check_results(self, tables, part, results):
        for number, (lookup, result) in enumerate(zip(self.lookups, results, strict=True)):
            weights = tables[lookup.table][0]
            bounded = oracle.forward(weights, part, number, lookup)
            absolute = type(part)(part.ids, part.offsets, part.weights.abs(), part.features) \
                if part.weights is not None else part
            magnitude = oracle.forward(weights.abs(), absolute, number, lookup).value
            assert result.dtype == DTYPES[lookup.result], f"{lookup}: {result.dtype}"
            oracle.assert_within(result, self.widened(bounded, magnitude, 8), f"{lookup}")

    def check_tables(self, before, after, parts, gradients, learning_rate):
        batch = joined(self.problem, parts)
        for table in self.problem.tables:
            readers = [(batch, number, lookup,
                        torch.cat([one[number] for one in gradients]).double() * self.scale)
                       for number, lookup in enumerate(self.lookups)
                       if lookup.table == table.name]
            weights, states = before[table.name]
            relative, smallest = roundings(self.problem)[1]
            if len(self.plan.shards_of(table.name)[0].devices) > 1:
                # Sums of rows are rounded before up to three journeys.
                relative, smallest = (1 + relative) ** 3 - 1, 3 * smallest
            if self.distinct:
                # Each rank's sum for a row is of the type of the results.
                of_sum, smallest_sum = ROUNDING[self.problem.batch.output_type]
                relative, smallest = (1 + relative) * (1 + of_sum) - 1, smallest + smallest_sum
            gradient = Travelled(oracle.table_gradient(weights, readers), relative, smallest)
            expected = optimizers.step(table.optimizer, weights, states, gradient, learning_rate,
                                       self.updates, column_groups(self.plan, table))
            got = [after[table.name][0], *after[table.name][1]]
            for name, value, bounded in zip(("weights", "state 0", "state 1", "state 2"), got, expected):
                oracle.assert_within(value, bounded,
                                     f"{table}: {name} after step {self.updates}")

    def check_weights(self, tables, part, gradients, got):
        """Gradients of sample weights belong to the rank's own loss and are not scaled."""
        expected = oracle.Bounded(torch.zeros(len(part.ids)).double(),
                                  torch.zeros(len(part.ids)).double())
        for number, (lookup, gradient) in enumerate(zip(self.lookups, gradients, strict=True)):
            if not lookup.weighted:
                continue
            weights, where = tables[lookup.table][0], slice(*part.span(number))
            one = oracle.sample_weight_gradient(weights, part, number, lookup, gradient)
            size = oracle.sample_weight_gradient(weights.abs(), part, number, lookup,
                                                 gradient.abs()).value
            # The scale is taken off again: two roundings more.
            one = self.widened(oracle.Bounded(one.value, one.error + 2 * oracle.ulp(size)), size,
                               weights.abs().double().sum(1).max() / self.scale)
            expected.value[where], expected.error[where] = one.value, one.error
        oracle.assert_within(got, expected, "gradient of the sample weights")


class Travelled:
    """A table's gradient whose terms were rounded for sending."""

    def __init__(self, gradient, relative, smallest):
        self.value, self.touched = gradient.value, gradient.touched
        self._gradient, self._relative, self._smallest = gradient, relative, smallest

    def error(self, decay):
        terms = self._gradient.terms.double().unsqueeze(1)
        return (self._gradient.error(decay) + 1.01 * self._relative * self._gradient.magnitude
                + terms * self._smallest)


def local_sizes(ranks, generator):
    """Local batches of each step: uneven, one empty, all empty, all the same."""
    uneven = torch.randint(1, 7, (ranks,), generator=generator).tolist()
    empty = list(uneven)
    empty[int(torch.randint(0, ranks, (1,), generator=generator))] = 0
    return [uneven, empty, [0] * ranks, [4] * ranks]


def describe(context, number, unpooled):
    """(problem, plan); in a quarter of the problems the last rank owns nothing, and in half of those
    for one kind of device some shards are in lower tiers."""
    problem = make_problem(number, context.size, unpooled)
    idle = (context.size - 1,) if number % 4 == 3 and context.size > 1 else ()
    plan = make_plan(problem, kinds_of(number), context.size, f"{matrix.seed()} {number}", idle)
    if not (context.tiers and number % 2):
        return problem, plan
    problem = problem.replace(topology=f"{context.size}x{context.devices}")
    return problem, in_tiers(plan, f"{matrix.seed()} {number}", context.tiers)


def case_matrix(context, number, unpooled="0", distinct="0"):
    number, unpooled = int(number), unpooled == "1"
    generator = context.generator()
    problem, plan = describe(context, number, unpooled)
    training = Training(context, plan, problem, gradient_division=number % 3 != 2,
                        scale=1.0 if number % 3 == 2 else None, distinct_ids=distinct == "1")
    check_initial(training.module)
    for step, sizes in enumerate(local_sizes(context.size, generator)):
        training.step(random_parts(problem, sizes, generator), generator, 0.125 / (step + 1),
                      keyed=step % 2 == 1 and not unpooled)


def check_initial(module):
    """First weights are within +-1/sqrt(rows), and the states are those of the optimizer."""
    for name, (weights, states) in whole(module).items():
        table = module.problem.table(name)
        bound = table.rows ** -0.5 * (1 if table.type == "f32" else 1.01)
        assert weights.abs().max() <= bound
        if weights.numel() > 30:
            assert weights.float().std() > bound / 3
        first = table.optimizer.initial_accumulator
        for state in states:
            assert (state == first).all(), f"{name}: expected {first}, found {state}"
            first = 0  # of states behind a sum


def case_same_bits(context, number, unpooled="0"):
    """Two modules, the same steps: the same bits. One rank alone has the same first weights,
    and, where no table is cut by rows and nothing is rounded on the way, the same results."""
    number, unpooled = int(number), unpooled == "1"
    problem, plan = describe(context, number, unpooled)
    parts = [random_parts(problem, sizes, context.generator("ids"))
             for sizes in local_sizes(context.size, context.generator("sizes"))]
    runs = []
    for _ in range(2):
        training = Training(context, plan, problem, scale=1.0, gradient_division=False)
        first = whole(training.module)
        generator = context.generator("gradients")
        results = [training.step(one, generator) for one in parts]
        runs.append((results, whole(training.module)))
        training.module.close()
    for step, (one, other) in enumerate(zip(runs[0][0], runs[1][0], strict=True)):
        assert all(map(torch.equal, one, other)), f"results of step {step} differ"
    for name, (weights, states) in runs[0][1].items():
        others = runs[1][1][name]
        assert torch.equal(weights, others[0]) and all(map(torch.equal, states, others[1])), name

    alone, alone_plan = lone(problem)
    module = context.make(alone_plan, alone, process_group=context.lone_group())
    for shard in module.local_shards():
        assert torch.equal(shard.weights, first[shard.table][0]), shard.table
    if roundings(problem)[0] != ROUNDING["f32"]:
        return
    own = parts[0][context.rank]
    out = training.values(module(ns.distributed.Jagged(*own.tensors())))
    for lookup, theirs, ours in zip(training.lookups, out, runs[0][0][0], strict=True):
        if len({shard.rows for shard in plan.shards_of(lookup.table)}) == 1 \
                or lookup.pooling == "unpooled":
            assert torch.equal(theirs, ours), f"{lookup} has other bits on one rank"


def case_cuts(context):
    """Rectangles that form no grid, with a norm over all columns of a row; and a table that nothing
    reads."""
    tables = [ns.Table("a", 10, 12, optimizer="rowwise_adagrad"), ns.Table("b", 9, 4)]
    problem = ns.ShardingProblem(tables=tables, batch=8, topology=f"{context.size}xCPU@4GiB",
                                 features=[ns.Feature("f", "a"), ns.Feature("g", "a", "mean")])
    places = (((0, 4), (0, 4), 0), ((0, 4), (4, 12), 1), ((4, 10), (0, 8), 1), ((4, 10), (8, 12), 0))
    plan = ns.Plan(device_count=context.size, shards=[
        *(ns.Shard(table="a", rows=rows, cols=cols, devices=owner) for rows, cols, owner in places),
        ns.Shard(table="b", rows=(0, 9), cols=(0, 4), devices=1)])
    training = Training(context, plan, problem)
    generator = context.generator()
    for sizes in local_sizes(context.size, generator):
        training.step(random_parts(problem, sizes, generator), generator)


def case_decay_of_all_rows(context):
    """What docs/distributed.md shows: with it SGD and Adagrad are torch's optimizers of dense gradients and AdamW's
    decay, as they do not move rows with gradients of 0. The plan has columns, rows and copies."""
    rate, decay, ranks = 0.25, 0.5, context.size
    tables = [ns.Table("a", 20, 12, optimizer="sgd"), ns.Table("c", 7, 4, optimizer="sgd"),
              ns.Table("b", 9, 4, optimizer=ns.Optimizer("adagrad", eps=1e-3)),
              ns.Table("d", 8, 1, optimizer=ns.Optimizer("rowwise_adagrad", eps=1e-3))]
    problem = ns.ShardingProblem(tables=tables, features=[ns.Feature(f"of_{one.name}", one.name) for one in tables],
                                 batch=4 * ranks, topology=f"{ranks}x{context.devices}")
    last = ranks - 1
    plan = ns.Plan(device_count=ranks, shards=[
        ns.Shard(table="a", rows=(0, 20), cols=(0, 8), devices=0),
        ns.Shard(table="a", rows=(0, 20), cols=(8, 12), devices=last),
        ns.Shard(table="b", rows=(0, 5), cols=(0, 4), devices=last),
        ns.Shard(table="b", rows=(5, 9), cols=(0, 4), devices=0),
        ns.Shard(table="c", rows=(0, 7), cols=(0, 4), devices=tuple(range(ranks))),
        ns.Shard(table="d", rows=(0, 8), cols=(0, 1), devices=0)])
    module = context.make(plan, problem, learning_rate=rate, gradient_division=False)
    dense = {name: torch.nn.Parameter(weights.clone()) for name, (weights, _) in whole(module).items()}
    theirs = [torch.optim.SGD([dense["a"], dense["c"]], lr=rate),
              torch.optim.Adagrad([dense["b"], dense["d"]], lr=rate, eps=1e-3)]
    generator = context.generator()
    for _ in range(3):
        ids = {one.name: torch.randint(0, one.rows, (ranks, 2, 2), generator=generator) for one in tables}
        vectors = module({f"of_{name}": every[context.rank] for name, every in ids.items()})
        with torch.no_grad():
            for shard in module.local_shards():
                shard.weights.mul_(1 - rate * decay)
        sum(one.square().sum() for one in vectors.values()).backward()
        for name, every in ids.items():
            torch.nn.functional.embedding_bag(every.reshape(-1, 2), dense[name], mode="sum").square().sum().backward()
        with torch.no_grad():
            for parameter in dense.values():
                parameter.mul_(1 - rate * decay)
        for one in theirs:
            one.step()
            one.zero_grad()
    for name, (weights, _) in whole(module).items():
        torch.testing.assert_close(weights, dense[name].detach(), rtol=1e-5, atol=1e-6, msg=name)


def case_seeds(context):
    """The seed changes the first weights; without it they are those of seed 0."""
    problem, plan = describe(context, 0, False)
    tables = [whole(context.make(plan, problem, **options))
              for options in ({}, {"seed": 0}, {"seed": 1})]
    for name, (weights, _) in tables[0].items():
        assert torch.equal(weights, tables[1][name][0])
        assert not torch.equal(weights, tables[2][name][0])


def case_initial_values(context, number="0"):
    """Functions give the weights that they give whole tables, however a plan cuts them, also in several blocks;
    an error of one is one on all ranks."""
    from neuroshard.distributed import _initial_values

    problem, plan = describe(context, int(number), False)
    first, second, third, *others = [table.name for table in problem.tables]
    functions = {first: torch.nn.init.xavier_normal_, second: lambda values: values + 3,
                 third: lambda values: values.normal_(0, 0.1)}
    state = torch.random.get_rng_state()
    found = [whole(context.make(one, problem, initial_values=functions, seed=seed))
             for one, seed in ((plan, 4), (ns.plan(problem).plan, 4), (plan, 5))]
    assert torch.equal(torch.random.get_rng_state(), state)
    plain = whole(context.make(plan, problem, seed=4))
    for name, (weights, _) in found[0].items():
        assert torch.equal(weights, found[1][name][0]), name
        assert torch.equal(weights, plain[name][0]) == (name not in functions), name
    assert (found[0][second][0] == 3).all()
    assert not torch.equal(found[0][third][0], found[2][third][0])
    table, weights = problem.table(third), found[0][third][0].float()
    assert weights.unique().numel() > weights.numel() / 2 and 0.05 < weights.std() < 0.2
    with mock.patch.object(_initial_values, "BLOCK", 3 * table.dim):
        blocks = [whole(context.make(one, problem, initial_values=functions)) for one in
                  (plan, ns.plan(problem).plan)]
    assert torch.equal(blocks[0][third][0], blocks[1][third][0])

    def fails(values):
        if context.rank == context.size - 1:
            raise KeyError("of the caller")

    mine = context.rank == context.size - 1
    name = next(shard.table for shard in plan.shards if context.size - 1 in shard.devices)
    kind, text = (ValueError, "KeyError: 'of the caller'") if mine else (ns.distributed.GroupError, f"rank {context.size - 1}: filling")
    raises(kind, text, lambda: context.make(plan, problem, initial_values={name: fails}))
    for wrong, error, text in (({"no": fails}, ValueError, "expected tables of"), ({first: 3}, TypeError, "a function"),
                               (3, TypeError, "a dict"),
                               ({first: lambda values: values[:1, :0]}, (ValueError, ns.distributed.GroupError),
                                "None or a tensor of")):
        raises(error, text, lambda wrong=wrong: context.make(plan, problem, initial_values=wrong))


def case_drift(context, optimizer="adagrad"):
    """Copies that drift train on each rank as torch does there alone, and are averaged with their states
    after every third update; what would save one copy for all asks for an average first."""
    every, (rows, dim), rate = 3, (29, 8), 0.125
    problem = ns.ShardingProblem(
        tables=[ns.Table("t", rows=rows, dim=dim, optimizer=optimizer)], features=[ns.Feature("f", "t")],
        topology=f"{context.size}xCPU@1GiB", batch=8 * context.size)
    plan = ns.Plan(device_count=context.size, shards=[
        ns.Shard(table="t", rows=(0, rows), cols=(0, dim), devices=range(context.size), sync_every=every)])
    tables = context.make(plan, problem, learning_rate=rate)
    (shard,) = tables.local_shards()
    alone = torch.nn.EmbeddingBag.from_pretrained(shard.weights.clone(), freeze=False, mode="sum", sparse=True)
    learner = (torch.optim.Adagrad(alone.parameters(), lr=rate, eps=1e-8) if optimizer == "adagrad"
               else torch.optim.SGD(alone.parameters(), lr=rate))
    generator = context.generator()
    for number in range(1, 2 * every + 2):
        parts = [torch.randint(0, rows, (8, 3), generator=generator) for _ in range(context.size)]
        target = torch.randn(8, dim, generator=generator)
        for model in (lambda ids: tables({"f": ids})["f"], alone):
            loss = (model(parts[context.rank]) - target).square().mean()
            learner.zero_grad()
            loss.backward()
        learner.step()
        values = [alone.weight.data, *(state["sum"] for state in learner.state.values() if "sum" in state)]
        if number % every:
            continue
        for value in values:
            dist.all_reduce(value)
            value /= context.size
        whole(tables)  # copies are equal
        tables.state_dict()
        torch.testing.assert_close(shard.weights, values[0], rtol=2e-6, atol=2e-6)
        for state in shard.states.values():
            torch.testing.assert_close(state, values[1], rtol=2e-6, atol=2e-6)
    text = "call average_copies() on all ranks first"
    raises(TensorError, text, tables.state_dict)
    raises(TensorError, text, lambda: tables.reshard(plan))
    raises(ValueError, "do not clip by the norm", lambda: clipped(tables))
    tables.average_copies()
    for value in values:
        dist.all_reduce(value)
    torch.testing.assert_close(shard.weights, values[0] / context.size, rtol=2e-6, atol=2e-6)
    saved = whole(tables)
    again = context.make(plan, problem, learning_rate=rate, seed=7)
    again.load_state_dict(tables.state_dict())
    for one, other in ((whole(again)["t"], saved["t"]), (whole(tables)["t"], saved["t"])):
        assert torch.equal(one[0], other[0]) and all(map(torch.equal, one[1], other[1]))
    again.state_dict()  # alike, though its number of updates is no multiple
    path = context.gather(str(context.folder / context.name.replace(":", "-")))[0]
    ns.distributed.save(path, {"tables": tables})
    tables.reshard(plan)
    tables.state_dict()  # alike, as copies of what moved
    (shard,) = tables.local_shards()
    tables({"f": parts[context.rank]})["f"].sum().backward()
    raises(TensorError, text, tables.state_dict)
    ns.distributed.load(path, {"tables": tables}, only="weights")
    raises(TensorError, text, tables.state_dict)  # states and the step are not loaded
    ns.distributed.load(path, {"tables": tables})
    assert tables.step == 2 * every + 1 and torch.equal(whole(tables)["t"][0], saved["t"][0])
    tables.state_dict()
    tables.step = 2 * every  # copies stay alike, of a step that averages
    ns.distributed.save(path, {"tables": tables})
    tables({"f": parts[context.rank]})["f"].sum().backward()
    ns.distributed.load(path, {"tables": tables}, only="optimizer")
    assert tables.step == 2 * every
    raises(TensorError, f"the number of updates was set to {2 * every}", tables.state_dict)
    tables.average_copies()
    tables.state_dict()


def clipped(tables):
    with tables.accumulate():
        tables({"f": torch.zeros(1, 1, dtype=torch.int64)})["f"].sum().backward()
        try:
            tables.clip_grad_norm_(1.0)
        finally:
            tables.optimizer.zero_grad()
