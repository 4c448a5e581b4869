"""Cases: batches whose ids travel during the step before."""

from dataclasses import dataclass

import torch
from torchrec.distributed.train_pipeline import TrainPipelineSparseDist
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor
from torchrec.streamable import Pipelineable

from distributed_context import raises, whole
from distributed_models import random_parts
from distributed_steps import Model as FlatModel
from distributed_steps import given, small
from neuroshard.distributed import lockstep, pipeline
from neuroshard.errors import GroupError, TensorError

STEPS = 5


class Batches:
    """Batches of this rank; the given ids replace those of a step."""

    def __init__(self, context, problem, steps=STEPS, **replaced):
        generator = context.generator("batches")
        sizes = [3 + one for one in range(context.size)]
        self.all = [given(random_parts(problem, sizes, generator)[context.rank])
                    for _ in range(steps)]
        for step, ids in replaced.items():
            self.all[int(step[1:])] = ids


class Model(FlatModel):
    """Called with a Jagged."""

    def forward(self, ids):
        pooled = self.tables(ids)
        return self.top(torch.cat(list(pooled.values()), 1)).squeeze(1)


def train(context, batches, optimizer="rowwise_adagrad", **options):
    """Losses, tables after training, and updates, of a loop over batches(tables)."""
    problem, plan = small(context.size, optimizer)
    tables = context.make(plan, problem)
    model = Model(tables)
    dense = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for batch in batches(tables):
        loss = model(batch).square().mean()
        losses.append(loss.item())
        dense.zero_grad()
        loss.backward()
        dense.step()
    return losses, whole(tables), model.top.weight.detach().clone(), tables.step


def same(one, other):
    losses, tables, dense, steps = one
    assert losses == other[0]
    assert torch.equal(dense, other[2]) and steps == other[3]
    for name, (weights, states) in tables.items():
        assert torch.equal(weights, other[1][name][0]), name
        assert all(map(torch.equal, states, other[1][name][1])), name


def case_same_bits(context, depth="2", optimizer="rowwise_adagrad"):
    problem, _ = small(context.size)
    batches = Batches(context, problem).all
    plain = train(context, lambda tables: batches, optimizer)
    ahead = train(context, lambda tables: pipeline(batches, {tables: lambda ids: ids},
                                                   depth=int(depth)), optimizer)
    same(plain, ahead)
    assert plain[3] == STEPS


@dataclass
class Batch(Pipelineable):
    """As TorchRec's pipelines take them."""

    ids: KeyedJaggedTensor

    def to(self, device, non_blocking=False):
        return Batch(self.ids.to(device, non_blocking))

    def record_stream(self, stream):
        pass


class Dlrm(torch.nn.Module):
    """A model as TorchRec's pipelines take them, which gives (loss, predictions)."""

    def __init__(self, tables):
        super().__init__()
        torch.manual_seed(3)
        self.tables, self.top = tables, torch.nn.Linear(32, 1)

    def forward(self, batch):
        predictions = self.top(self.tables(batch.ids).values())
        return predictions.square().mean(), predictions


def case_of_torchrec(context):
    """TorchRec's pipeline takes a model with the module, and the one of here in its place trains the same."""
    problem, plan = small(context.size)
    generator = context.generator()
    batches = []
    for _ in range(STEPS):
        part = random_parts(problem, [4] * context.size, generator)[context.rank]
        batches.append(Batch(KeyedJaggedTensor([one.name for one in problem.features], part.ids,
                                               offsets=part.offsets)))
    found = []
    for kind in ("plain", "torchrec", "own"):
        model = Dlrm(context.make(plan, problem))
        dense = torch.optim.SGD(model.top.parameters(), 0.1)
        if kind == "torchrec":
            theirs, loader = TrainPipelineSparseDist(model, dense, torch.device("cpu")), iter(batches)
            for _ in batches:
                theirs.progress(loader)
        else:
            for batch in batches if kind == "plain" else pipeline(batches, {model.tables: lambda one: one.ids}):
                dense.zero_grad()
                model(batch)[0].backward()
                dense.step()
        found.append(([], whole(model.tables), model.top.weight.detach().clone(), model.tables.step))
    same(found[0], found[1])
    same(found[0], found[2])


def case_what_is_sent(context):
    """Ids of the next batch are sent when the results of this one are there, those of no batch
    twice; start() takes them, too; a skipped batch and an early end drop them."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    batches = Batches(context, problem).all
    numbers = {id(batch): number for number, batch in enumerate(batches)}
    sent = []
    original = tables._send
    tables._send = lambda ids: sent.append(numbers[id(ids)]) or original(ids)
    seen = []
    for batch in pipeline(iter(batches), {tables: lambda ids: ids}):
        number = numbers[id(batch)]
        assert sent == list(range(number + 1)), (number, sent)
        if number == 1:
            continue  # no lookup
        pending = tables.start(batch)
        pending.look_up()
        assert sent == list(range(number + 1))
        results = pending.wait()
        assert sent == list(range(min(number + 2, STEPS))), (number, sent)
        seen.append(number)
        sum(one.sum() for one in results.values()).backward()
        if number == 3:
            break
    assert seen == [0, 2, 3] and tables.step == 3
    sum(one.sum() for one in tables(batches[0]).values()).backward()
    assert tables.step == 4


def learn(tables, ids):
    sum(one.square().sum() for one in tables(ids).values()).backward()


def look(tables, ids):
    with torch.no_grad():
        tables(ids)


def halve(tables):
    for shard in tables.local_shards():
        shard.weights.mul_(0.5)


# What a step does with the module, its ids and others.
BODIES = {
    "evaluation": lambda tables, ids, other: (learn(tables, ids), look(tables, other)),
    "same again": lambda tables, ids, other: (learn(tables, ids), look(tables, ids)),
    "before": lambda tables, ids, other: (look(tables, other), learn(tables, ids)),
    "replay": lambda tables, ids, other: (learn(tables, ids), learn(tables, other)),
    "replay before": lambda tables, ids, other: (learn(tables, other), learn(tables, ids)),
    "changed": lambda tables, ids, other: (learn(tables, ids), look(tables, other), halve(tables)),
    "dropped": lambda tables, ids, other: (tables.start(other), learn(tables, ids)),
    "inside": lambda tables, ids, other: nested(tables, ids, other),
    "others alone": lambda tables, ids, other: learn(tables, other),
}


def nested(tables, ids, other):
    loss = sum(one.square().sum() for one in tables(ids).values())
    look(tables, other)
    loss.backward()


def case_other_ids(context, depth="2"):
    """A module that is called with other ids, too, learns as without a pipeline."""
    problem, plan = small(context.size)
    batches = Batches(context, problem).all
    for name, body in BODIES.items():
        tables, plain = context.make(plan, problem), context.make(plan, problem)
        for ids in pipeline(batches, {tables: lambda ids: ids}, depth=int(depth)):
            body(tables, ids, batches[1])
        for ids in batches:
            body(plain, ids, batches[1])
        assert tables.step == plain.step > 0, name
        assert all(torch.equal(values[0], whole(plain)[table][0])
                   for table, values in whole(tables).items()), name


def case_not_taken(context):
    """What a compiled model would do is an error; so are ids that were changed in place."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    batches = Batches(context, problem).all

    def untaken():
        for ids in pipeline(batches, {tables: lambda ids: ids}):
            tables._sent_ahead, kept = None, tables._sent_ahead
            learn(tables, ids)
            tables._sent_ahead = kept

    def changed():
        for ids in pipeline(batches, {tables: lambda ids: ids}):
            ids.ids.remainder_(5)
            learn(tables, ids)

    raises(TensorError, "trained by ids other than those", untaken)
    raises(TensorError, "changed in place", changed)
    learn(tables, batches[0])


def case_modes(context):
    """Steps may repeat an object, fail and be caught, and differ in whether they learn."""
    problem, plan = small(context.size)
    batches = Batches(context, problem).all
    repeated = [batches[0]] * 3 + batches[1:3]
    tables, plain = context.make(plan, problem), context.make(plan, problem)

    def run(module, number, ids):
        if number == 1:
            with torch.inference_mode():
                module(ids)
        elif number == 2:
            try:
                raise ValueError("skipped")
            except ValueError:
                return
        else:
            learn(module, ids)

    sent = []
    original = tables._send
    tables._send = lambda ids: sent.append(ids) or original(ids)
    for number, ids in enumerate(pipeline(repeated, {tables: lambda ids: ids})):
        before = len(sent)
        run(tables, number, ids)
        assert len(sent) - before == (number not in (2, 4)), number  # those of the next step
    for number, ids in enumerate(repeated):
        run(plain, number, ids)
    assert tables.step == plain.step == 3
    assert all(torch.equal(values[0], whole(plain)[name][0])
               for name, values in whole(tables).items())


def case_several_modules(context):
    """Each module sends its ids; batches of several depths."""
    problem, plan = small(context.size)
    one, two = context.make(plan, problem), context.make(plan, problem)
    apart = context.make(plan, problem), context.make(plan, problem)
    batches = Batches(context, problem, 6).all
    pairs = list(zip(batches[::2], batches[1::2]))

    def step(first, second, pair):
        results = [*first(pair[0]).values(), *second(pair[1]).values()]
        sum(one.square().sum() for one in results).backward()

    for pair in pipeline(pairs, {one: lambda pair: pair[0], two: lambda pair: pair[1]}, depth=3):
        step(one, two, pair)
    for pair in pairs:
        step(*apart, pair)
    for module, other in zip((one, two), apart):
        assert all(torch.equal(values[0], whole(other)[name][0])
                   for name, values in whole(module).items())


def case_uneven(context):
    """All ranks stop with the first whose loader ends."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    batches = Batches(context, problem).all[:STEPS - (context.rank == 0)]
    taken = 0
    for batch in pipeline(batches, {tables: lambda ids: ids}):
        sum(one.sum() for one in tables(batch).values()).backward()
        taken += 1
    assert taken == tables.step == STEPS - 1


def case_errors(context, kind="ids"):
    """What is wrong with a batch is raised at its step on all ranks, after the steps before; the
    module goes on."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    batches = Batches(context, problem).all
    bad, wrong = 3, context.rank == context.size - 1
    function = lambda ids: ids  # noqa: E731
    loader = iter(batches)
    if kind == "ids" and wrong:
        batches[bad] = batches[bad]._replace(ids=batches[bad].ids + 10**6)
    if kind == "form" and wrong:
        batches[bad] = {"no": "feature"}
    if kind == "function" and wrong:
        function = lambda ids: ids if ids is not batches[bad] else [][0]  # noqa: E731
    if kind == "empty" and wrong:
        function = unless(batches[bad])
    if kind == "loader" and wrong:
        loader = failing(batches, bad)
    steps = 0
    try:
        for batch in pipeline(loader, {tables: function}):
            results = tables(batch)
            steps += 1
            sum(one.sum() for one in results.values()).backward()
    except Exception as error:  # noqa: BLE001, looked at below
        text = f"{type(error).__name__}: {error}"
    else:
        text = ""
    assert text, "no error"
    assert steps == bad and tables.step == bad, (steps, tables.step, text)
    expected = {"ids": "id 1000", "form": "rank" if not wrong else "feature",
                "function": "index out of range", "empty": "AssertionError", "loader": "its loader failed" if not wrong
                else "no more of these"}[kind]
    assert expected in text, text
    sum(one.sum() for one in tables(batches[0]).values()).backward()
    assert tables.step == bad + 1


def case_held_by_its_error(context):
    """A loop in an expression, which its own error keeps until the module's next call."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    good, bad = Batches(context, problem, steps=2).all
    bad = bad._replace(ids=bad.ids + 10**6)

    def run():
        return [sum(one.sum() for one in tables(ids).values()).backward()
                for ids in pipeline([good, bad], {tables: lambda ids: ids})]

    try:
        run()
    except ValueError:
        pass
    else:
        raise AssertionError("no error")
    sum(one.sum() for one in tables(good).values()).backward()
    assert tables.step == 2


def unless(wrong):
    def function(ids):
        if ids is wrong:
            raise AssertionError
        return ids
    return function


def failing(batches, at):
    yield from batches[:at]
    raise OSError("no more of these")


def case_arguments(context):
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    get = lambda ids: ids  # noqa: E731

    def first(*arguments, **options):
        return next(pipeline(*arguments, **options))

    raises(TypeError, "ids: expected a dict", lambda: first([], {}))
    raises(TypeError, "ids: expected a dict", lambda: first([], tables))
    raises(TypeError, "as keys, got", lambda: first([], {"tables": get}))
    raises(TypeError, "ids: expected a function", lambda: first([], {tables: "ids"}))
    raises(TypeError, "depth: expected a whole number", lambda: first([], {tables: get}, depth=1.5))
    raises(ValueError, "depth: expected at least 1", lambda: first([], {tables: get}, depth=0))
    batches = Batches(context, problem).all
    if context.size > 1:
        raises(GroupError, "rank 1 has another depth than rank 0 (3, not 2)",
               lambda: pipeline(batches, {tables: get}, depth=3 if context.rank == 1 else 2))
    one = pipeline(batches, {tables: get})
    next(one)
    raises(TensorError, "another neuroshard.distributed.pipeline",
           lambda: first(batches, {tables: get}))
    one.close()
    assert len(list(pipeline(batches[:2], {tables: get}))) == 2  # no lookups at all


def case_no_loader(context):
    """A loader that cannot begin on one rank is an error on all."""
    mine = context.rank == 0
    kind, text = (TypeError, "not iterable") if mine else (GroupError, "rank 0: its loader failed before step 0")
    raises(kind, text, lambda: list(lockstep(None if mine else [1])))
