"""Cases: the bytes that a step sends, and takes for its buffers, beside those that the planner
counts; gradients of frozen tables do not travel, and other tables learn as without."""

import random

import torch
import torch.distributed as dist

import neuroshard as ns
from distributed_context import raises, whole
from distributed_gpu import OF_GPUS, ragged
from distributed_models import kinds_of, make_plan, make_problem, random_parts
from distributed_steps import given, small
from distributed_training import describe
from distributed_updates import assert_same, backward, part_of
from neuroshard import _planner
from support import matrix

# Kinds of the planner by phase of a step.
PHASES = {"ids_exchange": ("ids",), "results_exchange": ("results",),
          "gradients_exchange": ("gradients", "copies"),
          "norm_exchange": ("norms",)}
# On GPUs, by where rows begin.
STAGED = ("partials", "received_gradients")


def planned(problem, plan, buckets, parts, on_gpus):
    """What the planner says of these local batches."""
    tables = [table.name for table in problem.tables]
    rows = [[[] for _ in parts] for _ in tables]
    for rank, part in enumerate(parts):
        for number, feature in enumerate(problem.features):
            rows[tables.index(feature.table)][rank] += part.feature(number)[0].tolist()
    ids = [[count_ids(part.feature(bucket["lookup"])[0], bucket["rows"]) for bucket in buckets]
           for part in parts]
    if on_gpus:
        problem = problem.replace(topology=f"{len(parts)}xH200")
    step = [[part.batch for part in parts]], [ids], rows
    return (_planner.plan_traffic(problem._native, plan._native, *step),
            _planner.plan_buffers(problem._native, plan._native, *step))


def count_ids(ids, rows):
    return int(((ids >= rows[0]) & (ids < rows[1])).sum())


def to_others(expected, kinds, rank):
    return sum(one for kind in kinds for peer, one in enumerate(expected[kind][rank])
               if peer != rank)


def check_buffers(taken, planned_bytes, most):
    """most: kinds of which the planner counts the most that may be taken."""
    for kind, count in planned_bytes.items():
        assert taken[kind] == count or kind in most and taken[kind] < count, (kind, taken[kind],
                                                                              count)


def buffers_of(tables):
    ops = torch.ops.neuroshard
    return dict(zip(ops.buffer_names(), ops.buffer_bytes(tables.name)))


def check(context, problem, plan, on_gpus):
    tables = context.make(plan, problem, **(OF_GPUS if on_gpus else {}))
    parts = random_parts(problem, [3 + 2 * rank for rank in range(context.size)],
                         context.generator())
    buckets = tables._session.manifest.plain["layout"][0]["buckets"]
    expected, buffers = planned(problem, plan, buckets, parts, on_gpus)
    results = tables(given(parts[context.rank]))
    torch.cat([value.flatten().float() for value in results.values()]).sum().backward()
    sent = tables.phases()
    for phase, kinds in PHASES.items():
        assert sent[phase][1] == to_others(expected, kinds, context.rank), phase
    check_buffers(buffers_of(tables), buffers[context.rank], STAGED if on_gpus else ())
    return expected


def case_numbered(context, first, count, on_gpus="1"):
    """A problem and a plan of each number. Not of weighted ones: gradients of sample weights are
    not counted."""
    for number in range(int(first), int(first) + int(count)):
        if number % 3 == 0:
            continue
        problem = make_problem(number, context.size)
        plan = make_plan(problem, kinds_of(number), context.size, number)
        check(context, problem, plan, on_gpus == "1")


def case_inference(context, number, unpooled="0", groups="1"):
    """Lookups without gradients send, and take for buffers, what the planner counts of mode inference."""
    context.tiers = ()
    problem, plan = describe(context, int(number), unpooled == "1")
    if groups != "1":
        problem = problem.replace(topology=f"{groups}x{context.size // int(groups)}xCPU@4GiB")
    tables = context.make(plan, problem).eval()
    parts = random_parts(problem, [3 + 2 * rank for rank in range(context.size)], context.generator())
    buckets = tables._session.manifest.plain["layout"][0]["buckets"]
    expected, buffers = planned(problem.served(), plan, buckets, parts, False)
    tables(given(parts[context.rank]))
    sent = tables.phases()
    for phase, kinds in PHASES.items():
        assert sent[phase][1] == to_others(expected, kinds, context.rank), phase
    check_buffers(buffers_of(tables), buffers[context.rank], ())


class Distinct:
    """A local batch with each id of a feature once."""

    def __init__(self, part):
        self.batch, self._part = part.batch, part

    def feature(self, number):
        ids, *rest = self._part.feature(number)
        return torch.unique(ids), *rest


def case_distinct_ids(context, number):
    """Results are those of all ids, to the bit; what is sent is what the planner counts of ids without
    repetitions; a wrong id is named where it was given."""
    context.tiers = ()
    problem, plan = describe(context, int(number), True)
    plain, tables = context.make(plan, problem), context.make(plan, problem, distinct_ids=True)
    parts = random_parts(problem, [12 + 2 * rank for rank in range(context.size)], context.generator())
    own = parts[context.rank]
    assert any(len(Distinct(own).feature(one)[0]) < len(own.feature(one)[0])
               for one in range(len(problem.features)))
    buckets = tables._session.manifest.plain["layout"][0]["buckets"]
    for is_trained in (True, False):
        expected, _ = planned(problem if is_trained else problem.served(), plan, buckets,
                              [Distinct(part) for part in parts], False)
        found = [one.train(is_trained)(given(own)) for one in (plain, tables)]
        for name, (values, offsets) in found[0].items():
            assert torch.equal(values, found[1][name][0]) and torch.equal(offsets, found[1][name][1]), name
        if is_trained:
            for one in found:
                torch.cat([values.flatten().float() for values, _ in one.values()]).sum().backward()
        sent = tables.phases()
        for phase, kinds in PHASES.items():
            assert sent[phase][1] == to_others(expected, kinds, context.rank), phase
        tables.reset_phases()
    ids = own.ids.clone()
    ids[-1] = 10**6
    raises(ValueError, "id 1000000", lambda: tables((ids, own.offsets)))
    for wrong, error in ((1, TypeError), ("no", TypeError)):
        raises(error, "distinct_ids: expected a bool", lambda wrong=wrong: context.make(
            plan, problem, distinct_ids=wrong))
    raises(ValueError, "distinct_ids: expected False for pooled", lambda: context.make(
        *reversed(small(context.size)), distinct_ids=True))


def case_norms(context, kind="rowwise_adagrad", on_gpus="1"):
    """Column shards whose rows are cut at other places."""
    expected = check(context, *ragged(context.size, kind), on_gpus == "1")
    assert context.size == 1 or any(map(any, expected["norms"]))


class Some:
    """A local batch with some of its features."""

    def __init__(self, part, numbers):
        self.batch, self._part, self._numbers = part.batch, part, numbers

    def feature(self, number):
        return self._part.feature(self._numbers[number])


def gradient_bytes(problem, plan, buckets, parts, rank, on_gpus):
    """What the planner says that a rank sends of gradients to others."""
    expected, _ = planned(problem, plan, buckets, parts, on_gpus)
    return to_others(expected, PHASES["gradients_exchange"], rank)


def expected_bytes(tables, names, parts, rank, on_gpus):
    """Those of a model without the tables of these names."""
    problem, plan = tables.problem, tables.plan
    left = [one for one in problem.tables if one.name not in names]
    if not left:
        return 0
    numbers = [number for number, one in enumerate(problem.features) if one.table not in names]
    buckets = [{**one, "lookup": numbers.index(one["lookup"])}
               for one in tables._session.manifest.plain["layout"][0]["buckets"] if one["lookup"] in numbers]
    return gradient_bytes(problem.replace(tables=left, features=[problem.features[one] for one in numbers]),
                          plan.replace(shards=[one for one in plan.shards if one.table not in names]),
                          buckets, [Some(part, numbers) for part in parts], rank, on_gpus)


def case_frozen(context, number, unpooled="0", groups="1"):
    """Of a random plan: gradients are as many bytes as without the frozen tables, which keep their bits; others
    get the bits that they have where none is frozen. With sample weights gradients travel to
    owners, who need them for those of the weights."""
    on_gpus = context.devices == "H200"
    context.tiers = ()
    problem, plan = describe(context, int(number), unpooled == "1")
    if groups != "1":
        problem = problem.replace(topology=f"{groups}x{context.size // int(groups)}xCPU@4GiB")
    weighted = problem.features[0].weighted
    tables, plain = context.make(plan, problem), context.make(plan, problem)
    names = [table.name for table in problem.tables]
    half = random.Random(f"{matrix.seed()} {number}").sample(names, len(names) // 2)
    generator = context.generator()
    for frozen in (half, [name for name in names if name not in half], names):
        tables.unfreeze()
        tables.freeze(*frozen)
        copy_shards(tables, plain)
        before = whole(tables)
        parts = random_parts(problem, [3 + 2 * rank for rank in range(context.size)], generator)
        for one in (tables, plain):
            one.reset_phases()
            backward_of(one, parts[context.rank])
        sent, of_all = (one.phases()["gradients_exchange"][1] for one in (tables, plain))
        if weighted:  # only sums of copies do not travel
            assert 0 < sent <= of_all or context.size == 1
        else:
            assert sent == expected_bytes(tables, frozen, parts, context.rank, on_gpus), (frozen, sent)
        after, learned = whole(tables), whole(plain)
        assert_same({name: after[name] for name in frozen}, before)
        for name in names:
            if name in frozen:
                continue
            if on_gpus:  # chunks of sums depend on the ids of all tables
                torch.testing.assert_close(after[name][0], learned[name][0], rtol=2e-2, atol=2e-2)
            else:
                assert_same({name: after[name]}, learned)


def copy_shards(module, other):
    """The weights and states of a module to an equal one, and its count of updates."""
    for own, theirs in zip(module.local_shards(), other.local_shards(), strict=True):
        theirs.weights.copy_(own.weights)
        for name, state in own.states.items():
            theirs.states[name].copy_(state)
    other.step = module.step


def backward_of(tables, part):
    values = [one[0] if isinstance(one, tuple) else one for one in tables(given(part)).values()]
    sum(value.float().square().sum() for value in values).backward()


def case_frozen_updates(context, at="backward", groups="1"):
    """Gradients of several backwards, scaled by a GradScaler and clipped: frozen tables have none in the norm nor
    in the buffers, and tables learn on once they are not frozen any more."""
    problem, plan = small(context.size, "rowwise_adagrad", groups=int(groups))
    scalers = [torch.amp.GradScaler("cpu", init_scale=2.0**6) for _ in range(2)]
    tables, plain = (context.make(plan, problem, update_at=at, grad_scaler=scaler) for scaler in scalers)
    generator = context.generator()
    for frozen in (("a",), ("b", "c"), ()):
        tables.unfreeze()
        if frozen:
            tables.freeze(*frozen)
        copy_shards(tables, plain)
        before = whole(tables)
        parts = [part_of(context, problem, generator) for _ in range(3)]
        for one, scaler in zip((tables, plain), scalers):
            with one.accumulate():
                for part in parts:
                    backward(one, part, scaler.scale)
                norm = one.clip_grad_norm_(float("inf")) if one is tables else None
            scaler.step(one.optimizer)
            scaler.update()
            if at == "step":
                one.optimizer.zero_grad()
            if norm is not None:
                assert norm > 0
        after, learned = whole(tables), whole(plain)
        for name in "abc":
            assert_same({name: after[name]}, before if name in frozen else learned)
            assert torch.equal(after[name][0], before[name][0]) == (name in frozen)
    with tables.no_sync():
        backward(tables, parts[0])
        for change in (tables.freeze, lambda: tables.freeze("a")):
            raises(ValueError, "gradients wait for an update", change)
    tables.optimizer.zero_grad()
    tables.freeze("a")
    early = tables(given(parts[0]))
    tables.unfreeze("a")
    with tables.no_sync():
        backward(tables, parts[1])
        raises(ValueError, "with other frozen tables than those of the gradients that wait",
               lambda: sum(one.sum() for one in early.values()).backward())
    tables.optimizer.zero_grad()
    del early
    before = whole(tables)
    with tables.accumulate():
        backward(tables, parts[0])
    tables.optimizer.step()
    after = whole(tables)
    assert not any(torch.equal(after[name][0], before[name][0]) for name in "abc")


def case_frozen_pipeline(context, depth="2"):
    """Tables that are frozen in a loop whose ids were sent ahead have the bits of a loop without."""
    problem, plan = small(context.size, "adagrad")
    generator = context.generator()
    batches = [given(part_of(context, problem, generator)) for _ in range(6)]
    ahead, plain = context.make(plan, problem), context.make(plan, problem)

    def train(tables, loader):
        sent = []
        for step, ids in enumerate(loader):
            if step % 2 == 1:
                (tables.unfreeze if step == 5 else tables.freeze)("b")
            tables.reset_phases()
            results = tables(ids)
            if step == 2:
                tables.unfreeze("b")  # its own gradients are frozen already
            sum(one.square().sum() for one in results.values()).backward()
            sent.append(tables.phases()["gradients_exchange"][1])
        return sent

    sent = [train(ahead, ns.distributed.pipeline(batches, {ahead: lambda ids: ids}, depth=int(depth))),
            train(plain, batches)]
    assert sent[0] == sent[1], sent
    assert_same(whole(ahead), whole(plain))


def case_frozen_mixed(context):
    """Where one rank has frozen another table, the next lookup ends the group with the names."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem, process_group=dist.new_group())
    part = part_of(context, problem, context.generator())
    tables.freeze("a")
    backward(tables, part)
    if context.rank == context.size - 1:
        tables.freeze("c")
    text = raises(dist.DistBackendError, "has other frozen tables than rank", lambda: tables(given(part)))
    assert "freeze and unfreeze tables alike on all ranks" in text
