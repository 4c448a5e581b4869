"""Cases: wrong input on one rank raises the same error on all ranks, and training goes on."""

import gc
import json
import shutil
import types

import torch
import torch.distributed as dist

import neuroshard as ns
from distributed_context import raises, whole
from distributed_models import make_plan, make_problem, random_parts
from distributed_steps import given, small
from distributed_training import Training
from neuroshard._artifact.manifest import Manifest
from neuroshard.distributed._compile_cache import make_artifact
from neuroshard.distributed._inputs import only_input_of
from neuroshard.errors import InvalidPlan, TensorError
from support import sealing

Jagged = ns.distributed.Jagged


def case_ids_of_one_rank(context):
    """Wrong ids or offsets on one rank: all get the same ValueError in that step, no table
    changes, and the next step is right."""
    problem, plan = small(context.size, "adagrad")
    training = Training(context, plan, problem)
    generator = context.generator()
    ids, offsets = torch.tensor([1, 2, 3, 1]), torch.arange(5)
    name = ", ".join(feature.name for feature in problem.features)
    wrong = {
        "id 40 is out of range for table \"a\" with 40 rows":
            Jagged(torch.tensor([40, 2, 3, 1]), offsets),
        "feature \"a1\", bag 0, position 0": Jagged(torch.tensor([1, 2, 2**40, 1]), offsets),
        "id -1 is out of range": Jagged(torch.tensor([1, -1, 3, 1]), offsets),
        f"input \"{name}\": offsets must start at 0, found 1": Jagged(ids, offsets + 1),
        "offsets must not decrease and bags hold less than 2^31 ids: feature \"b0\": offset 0 is 0, "
        "the next -2 (offset 1 of the input is 3, the next 1)": Jagged(ids, torch.tensor([0, 3, 1, 3, 4])),
        f"input \"{name}\": the last offset must be the number of ids 4, found 3":
            Jagged(ids, torch.tensor([0, 1, 2, 3, 3])),
    }
    for number, (text, bad) in enumerate(wrong.items()):
        culprit = number % context.size
        before = whole(training.module)
        batch = bad if context.rank == culprit else Jagged(ids, offsets)
        found = raises(ValueError, text, lambda: training.module(batch))
        assert set(context.gather(found)) == {found}
        assert f"rank {culprit}:" in found and "exchange" not in found, found
        for name, (weights, _) in whole(training.module).items():
            assert torch.equal(weights, before[name][0])
        training.step(random_parts(problem, [2] * context.size, generator), generator)
    assert training.module.step == len(wrong)


def made_in_inference(ids):
    with torch.inference_mode():
        return ids.clone()


class Strange:
    """Looks like a KeyedJaggedTensor, and raises an error of another kind."""

    def keys(self):
        raise KeyError("a loader's own error")

    values = offsets = keys


def case_defaults(context):
    """torch's default dtype and device have no effect on how tables learn."""
    problem, plan = small(context.size)
    part = random_parts(problem, [2] * context.size, context.generator())[context.rank]
    found = []
    for dtype, device in ((torch.float32, "cpu"), (torch.float64, "cpu"), (torch.float32, "meta")):
        torch.set_default_dtype(dtype)
        try:
            with torch.device(device):
                tables = context.make(plan, problem)
            sum(one.sum() for one in tables(given(part)).values()).backward()
        finally:
            torch.set_default_dtype(torch.float32)
        assert tables.step == 1
        found.append({name: weights for name, (weights, _) in whole(tables).items()})
    for other in found[1:]:
        assert all(torch.equal(other[name], weights) for name, weights in found[0].items())


def case_forms_of_one_rank(context):
    """Input of a wrong form on one rank: it gets its own error, the others get its text in that
    step, and the next step is right."""
    problem, plan = small(context.size, "adagrad")
    training = Training(context, plan, problem)
    generator = context.generator()
    ids, offsets = torch.tensor([1, 2, 3, 1]), torch.arange(5)
    name = ", ".join(feature.name for feature in problem.features)
    wrong = {
        "expected ids as torch.int64 or torch.int32, found torch.float32": Jagged(ids.float(), offsets),
        "expected ids as a dense tensor, found a nested one":
            Jagged(torch.nested.nested_tensor([ids, ids]), offsets),
        f"input \"{name}\": ids: expected a tensor with values, found one on the meta device":
            Jagged(ids.to("meta"), offsets),
        "expected ids as a dense tensor, found a quantized one":
            Jagged(torch.quantize_per_tensor(torch.zeros(4), 1.0, 0, torch.qint32), offsets),
        "found one of torch.inference_mode(); clone() it outside": Jagged(made_in_inference(ids), offsets),
        "a loader's own error": Strange(),
        "expected features * batch + 1": Jagged(ids, offsets[:4]),
        "expected ids as a dense tensor, found str": Jagged("ids", offsets),
        "expected the features": {"other": (ids, offsets)},
        "expected a Jagged, (ids, offsets)": 3,
    }
    for number, (text, bad) in enumerate(wrong.items()):
        culprit = number % context.size
        mine = context.rank == culprit
        found = raises((ValueError, KeyError), text,
                       lambda: training.module(bad if mine else Jagged(ids, offsets)))
        assert mine or found.startswith(f"rank {culprit}:"), found
        training.step(random_parts(problem, [2] * context.size, generator), generator)
    assert training.module.step == len(wrong)


def case_forms(context):
    """Input of a wrong form, on all ranks: an error that says what was expected."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    ids, offsets = torch.tensor([1, 2, 3, 1]), torch.arange(5)
    raises(ValueError, "expected ids as torch.int64 or torch.int32, found torch.float32",
           lambda: tables((ids.float(), offsets)))
    raises(ValueError, "expected offsets as torch.int64 or torch.int32, found torch.float32",
           lambda: tables((ids, offsets.float())))
    raises(ValueError, "ids: expected 1 dimensions, found shape [2, 2]",
           lambda: tables((ids.view(2, 2), offsets)))
    raises(ValueError, "expected features * batch + 1 = 4 * batch + 1 values, found 4",
           lambda: tables((ids, offsets[:4])))
    raises(ValueError, "expected 2 tensors of ids, offsets and weights, found 3",
           lambda: torch.ops.neuroshard.embeddings_start(
               tables.name, torch.zeros(()), [ids, offsets, torch.ones(4)]))
    raises(TensorError, "expected a Jagged", lambda: tables(ids))
    raises(TensorError, "expected a Jagged", lambda: tables(None))
    raises(TensorError, "expected a Jagged", lambda: tables((ids,)))
    dicts = {name: ids.view(2, 2) for name in tables.features}
    assert [tuple(one.shape) for one in tables(dicts).values()] == [(2, 8), (2, 12), (2, 8),
                                                                    (2, 4)]
    raises(TensorError, "expected the features ['a0', 'b0', 'a1', 'c0'], found ['a0', 'b0', 'a1']",
           lambda: tables({name: ids.view(2, 2) for name in ("a0", "b0", "a1")}))
    raises(TensorError, "found ['a0', 'b0', 'a1', 'c0', 'd']",
           lambda: tables({**dicts, "d": ids.view(2, 2)}))
    raises(TensorError, "feature \"c0\": expected ids [batch, pooling] or (ids, offsets)",
           lambda: tables({**dicts, "c0": ids}))
    assert [len(one) for one in tables({**dicts, "c0": ids.view(4, 1)}).values()] == [2, 2, 2, 4]
    for dtype in (torch.float32, torch.uint8, torch.uint64, torch.bool):
        said = f"feature \"c0\": expected ids as torch.int64 or torch.int32, found {dtype}"
        odd = torch.ones(2, 2).to(dtype)
        raises(TensorError, said, lambda odd=odd: tables({**dicts, "c0": odd}))
        raises(TensorError, said, lambda odd=odd: tables(
            {**dicts, "c0": (odd.view(4), torch.tensor([0, 2, 4]))}))
    nested = torch.nested.nested_tensor([ids, ids])
    raises(TensorError, "feature \"c0\": expected ids [batch, pooling] or (ids, offsets), found a "
           "nested tensor", lambda: tables({**dicts, "c0": nested}))
    raises(TensorError, "one dimension, found a nested tensor",
           lambda: tables({**dicts, "c0": (nested, torch.tensor([0, 2, 4]))}))
    raises(TensorError, "(ids, offsets), found list", lambda: tables({**dicts, "c0": [1, 2]}))
    for wrong in ([0, 2, 3], [0, 2, 9], [1, 2, 4]):
        raises(TensorError, f"\"b0\": expected offsets from 0 to 4, the number of its ids, found "
               f"{wrong[0]} to {wrong[-1]}",
               lambda wrong=wrong: tables({**dicts, "b0": (ids, torch.tensor(wrong))}))
    for rate in (-1, 1e39, float("nan")):
        raises(ValueError, "learning_rate", lambda rate=rate: tables.set_learning_rate(rate))
    for rate in ("0.1", True):
        raises(TypeError, "learning_rate", lambda rate=rate: tables.set_learning_rate(rate))
    tables.optimizer.param_groups[0]["lr"] = float("inf")
    out = tables((ids, offsets))["a0"]
    raises(ValueError, "learning_rate", out.sum().backward)
    tables.set_learning_rate(0.5)
    out = tables((ids, offsets))["a0"]
    raises(RuntimeError, "", lambda: out.backward(torch.ones(3, 8)))
    out.backward(torch.ones(1, 8))
    assert tables.step == 1


def case_weights(context):
    """A model with sample weights requires one for each id."""
    problem = make_problem(0, context.size)
    plan = make_plan(problem, ["table_wise"] * len(problem.tables), context.size, 0)
    tables = context.make(plan, problem)
    part = random_parts(problem, [2] * context.size, context.generator())[context.rank]
    ids, offsets, weights = part.tensors()
    raises(ValueError, "weights: expected one for each id, found none",
           lambda: tables((ids, offsets)))
    raises(ValueError, f"weights: expected one for each of the {len(ids)} ids",
           lambda: tables((ids, offsets, weights[:-1])))
    raises(ValueError, "expected weights of a floating-point type, found torch.int64",
           lambda: tables((ids, offsets, weights.long())))
    raises(TensorError, "weights: expected a tensor with values, found one on the meta device",
           lambda: tables((ids, offsets, weights.to("meta"))))
    tables((ids, offsets, weights))


def case_unread_weights(context):
    """A module without sample weights refuses them, but in a KeyedJaggedTensor, where other collections may read
    them."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    ids, offsets = random_parts(problem, [2] * context.size, context.generator())[context.rank].tensors()
    weights, bags = torch.ones(len(ids)), (len(offsets) - 1) // len(tables.features)
    parts = [(ids[offsets[first]:offsets[first + bags]], offsets[first:first + bags + 1] - offsets[first])
             for first in range(0, len(offsets) - 1, bags)]
    weighted = {name: (*part, torch.ones(len(part[0]))) for name, part in zip(tables.features, parts)}
    for given in ((ids, offsets, weights), ns.distributed.Jagged(ids, offsets, weights), weighted):
        raises(TensorError, "expected no weights, as no lookup reads them, found some", lambda given=given: tables(given))

    found = tables(types.SimpleNamespace(
        keys=lambda: list(tables.features), values=lambda: ids, offsets=lambda: offsets, weights_or_none=lambda: weights))
    found = list(found.values() if isinstance(found, dict) else found.to_dict().values())
    assert all(map(torch.equal, found, tables((ids, offsets)).values()))


def case_construction(context):
    """A module that cannot be built raises one error on all ranks before anything is built."""
    problem, plan = small(context.size)
    other, other_plan = small(context.size + 1)
    raises(ValueError, f"the plan is for {context.size + 1} devices, but the group has "
           f"{context.size} rank", lambda: context.make(other_plan, other))
    taller = problem.replace(tables=[table.replace(rows=table.rows + 1)
                                     for table in problem.tables])
    raises(InvalidPlan, "a", lambda: context.make(plan, taller))
    raises(ValueError, "learning_rate", lambda: context.make(plan, problem, -0.5))
    mixed = problem.replace(features=[problem.features[0].replace(weighted=True),
                                      *problem.features[1:]])
    raises(ValueError, "some features have sample weights", lambda: context.make(plan, mixed))
    mean = problem.replace(features=[one.replace(weighted=True) for one in problem.features])
    raises(ValueError, "feature \"b0\" has sample weights, which are for pooling \"sum\" only",
           lambda: context.make(plan, mean))
    half = problem.replace(features=[problem.features[0].replace(pooling="none"),
                                     *problem.features[1:]])
    raises(ValueError, "use ShardedEmbeddingCollection",
           lambda: ns.ShardedEmbeddingBagCollection(plan, half, learning_rate=0.5))
    raises(ValueError, "use ShardedEmbeddingBagCollection",
           lambda: ns.ShardedEmbeddingCollection(plan, half, learning_rate=0.5))
    for name, value in (("plan", problem), ("problem", plan), ("gradient_division", "no")):
        raises(TypeError, f"{name}: expected a ", lambda name=name, value=value: ns.
               ShardedEmbeddingBagCollection(**{"plan": plan, "problem": problem,
                                                "learning_rate": 0.5, name: value}))
    for name, value in (("seed", "a"), ("seed", 1.5), ("seed", True), ("seed", 2**63),
                        ("name", 5), ("name", "\ud800"), ("threads", 2**70), ("threads", -1)):
        raises(ValueError, f"{name}: expected ", lambda name=name, value=value: context.make(
            plan, problem, **{"name": "again", name: value}))
    raises(ValueError, "is not an artifact of",
           lambda: context.make(plan, problem, artifact=context.folder / "none"))
    raises(TypeError, "process_group: expected a group of torch.distributed, as new_group() gives it, or None, got: 3",
           lambda: context.make(plan, problem, process_group=3))
    for function, text in ((lambda _: 1 / 0, "its function failed for zeros of [40, 8]: ZeroDivisionError: division by zero"),
                           (lambda values: values[:3], "expected None or a tensor of [40, 8], found one of [3, 8]"),
                           (lambda _: 3, "expected None or a tensor of [40, 8], found 3")):
        raises(ValueError, f"initial_values: table \"a\": {text}", lambda function=function: context.make(
            plan, problem, initial_values={"a": function}))
    rows = problem.replace(tables=[problem.tables[0].replace(type="int8", optimizer="sgd"), *problem.tables[1:]])
    raises(ValueError, "table \"a\" has rows of int8, which are not trained", lambda: context.make(plan, rows))
    serving = context.make(plan, problem.served())
    ids = (torch.ones(4).long(), torch.arange(5))
    raises(TensorError, "the problem is of mode inference", lambda: serving(ids))
    with torch.no_grad():
        assert all(torch.equal(one, serving.eval()(ids)[name]) for name, one in serving.train()(ids).items())
    tables = context.make(plan, problem, name="again")
    for count in (-1, 2**63 - 1, 1.5, "3", None, True):
        kind = ValueError if type(count) is int else TypeError
        raises(kind, "step: expected a whole number",
               lambda count=count: setattr(tables, "step", count))
    assert tables.step == 0
    check_successor(context, plan, problem, tables)
    tables = context.make(plan, problem, name="taken")
    raises(ValueError, "taken", lambda: context.make(plan, problem, name="taken"))
    sum(one.sum() for one in tables((torch.ones(4).long(), torch.arange(5))).values()).backward()


def check_successor(context, plan, problem, tables):
    """What is left of closed tables does not act on those that got their name."""
    ids, offsets = torch.tensor([1, 2, 3, 1]), torch.arange(5)
    loss = sum(one.sum() for one in tables((ids, offsets)).values())
    pending = tables.start((ids, offsets))
    tables.close()
    successor = context.make(plan, problem, name=tables.name)
    started = successor.start((ids + 1, offsets))
    raises(ValueError, "is over", pending.wait)
    raises(ValueError, "is over", loss.backward)
    del pending, loss
    found, expected = started.wait(), successor((ids + 1, offsets))
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert successor.step == 0


def case_artifact(context):
    """An artifact of another problem, without a part of a step, or with two inputs, is refused when
    it is opened."""
    problem, plan = small(context.size)
    other = problem.replace(features=[one.replace(pooling="sum") for one in problem.features])
    raises(ValueError, "pooling: mean in the artifact, sum in the problem",
           lambda: context.make(plan, other, artifact=make_artifact(plan, problem)))
    cut = context.folder / f"{context.name}-{context.rank}"
    shutil.copytree(make_artifact(plan, problem), cut)
    manifest = json.loads((cut / "manifest.json").read_text())
    for part in ("embeddings_lookup", "embeddings_wait"):
        functions = {name: one for name, one in manifest["functions"].items() if name != part}
        (cut / "manifest.json").write_text(json.dumps({**manifest, "functions": functions}))
        sealing.seal(cut)
        raises(ValueError, f"has no function {part}; compile it again",
               lambda: context.make(plan, problem, artifact=cut))
    raises(TensorError, "has 2 inputs of ids; expected one",
           lambda: only_input_of(Manifest({"exchanges": [{}, {}]})))


class Failing(torch.autograd.Function):
    """Fails in its backward, if it is to."""

    @staticmethod
    def forward(context, values, fails):
        context.fails = fails
        return values.clone()

    @staticmethod
    def backward(context, gradients):
        if context.fails:
            raise ArithmeticError("the dense part has failed")
        return gradients, None


def case_lost_update(context):
    """A rank whose dense backward fails between its gradients and its update says so, to all ranks,
    at the next step. A single rank sends nothing and updates at once, before the dense part."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem)
    part = random_parts(problem, [2] * context.size, context.generator())[context.rank]

    def step(fails):
        pending = tables.start(given(part))
        bottom = Failing.apply(torch.ones(2, requires_grad=True), fails)
        results = pending.wait()
        (bottom.sum() + sum(one.sum() for one in results.values())).backward()

    step(False)
    if context.rank == 0:
        raises(ArithmeticError, "the dense part has failed", lambda: step(True))
    else:
        step(False)
    gc.collect()
    if context.size == 1:
        step(False)
        assert tables.step == 3
    else:
        raises(ValueError, "begin again from a checkpoint", lambda: step(False))
        assert tables.step == (1 if context.rank == 0 else 2)


def case_mixed_backwards(context, groups="1"):
    """Backwards of two lookups in different orders on ranks end the group at the next lookup."""
    problem, plan = small(context.size, groups=int(groups))
    tables = context.make(plan, problem, process_group=dist.new_group())
    part = random_parts(problem, [2] * context.size, context.generator())[context.rank]
    losses = [sum(one.sum() for one in tables(given(part)).values()) for _ in range(2)]
    for one in losses if context.rank else reversed(losses):
        one.backward()
    for _ in range(2):
        raises(dist.DistBackendError, "in another order than rank", lambda: tables(given(part)))


def case_mixed_starts(context, groups="1"):
    """Where one rank looks up before the next start and another does not, that start ends the group."""
    problem, plan = small(context.size, groups=int(groups))
    tables = context.make(plan, problem, process_group=dist.new_group())
    part = random_parts(problem, [2] * context.size, context.generator())[context.rank]
    first = tables.start(given(part))
    if context.rank == 0:
        first.look_up()
    raises(dist.DistBackendError, "in another order than rank", lambda: tables.start(given(part)))


def case_mixed_rates(context):
    """Where one rank updates by another learning rate, the next lookup ends the group."""
    problem, plan = small(context.size)
    tables = context.make(plan, problem, process_group=dist.new_group())
    part = random_parts(problem, [2] * context.size, context.generator())[context.rank]
    for rate in (0.5, 0.25):  # alike on all ranks
        tables.set_learning_rate(rate)
        sum(one.sum() for one in tables(given(part)).values()).backward()
    tables.set_learning_rate(0.25 + context.rank)
    sum(one.sum() for one in tables(given(part)).values()).backward()
    raises(dist.DistBackendError, "by another learning rate", lambda: tables(given(part)))


def case_disagreement(context):
    """A different plan or problem, or an invalid plan, on one rank raises one error on all."""
    problem, plan = small(context.size)
    odd = context.rank == context.size - 1
    last = context.size - 1
    moved = make_plan(problem, ["table_wise"] * 3, context.size, 2)
    text = raises(ns.distributed.GroupError, f"rank {last} has another plan than rank 0",
                  lambda: context.make(moved if odd else plan, problem))
    assert set(context.gather(text)) == {text}
    slower = problem.replace(tables=[one.replace(optimizer="adam") for one in problem.tables])
    text = raises(ns.distributed.GroupError, f"rank {last} has another model than rank 0",
                  lambda: context.make(plan, slower if odd else problem))
    assert set(context.gather(text)) == {text}
    own = make_plan(slower, ["table_wise"] * 3, context.size, 2)
    raises(ns.distributed.GroupError, f"rank {last} has another model than rank 0",
           lambda: context.make(own if odd else plan, slower if odd else problem))
    wrong = ns.Plan(shards=plan.shards[1:], device_count=context.size)
    if odd:
        raises(InvalidPlan, "", lambda: context.make(wrong, problem))
    else:
        raises(ns.distributed.GroupError, f"rank {last}: the check of plan and problem failed: "
               "InvalidPlan", lambda: context.make(plan, problem))
    raises(Exception, "learning_rate" if odd else f"rank {last}",
           lambda: context.make(plan, problem, -1 if odd else 0.5))
    for name, options in (("seed", {"seed": int(odd)}), ("gradient_division",
                                                        {"gradient_division": odd}),
                          ("learning rate", {"learning_rate": 0.5 + odd})):
        raises(ns.distributed.GroupError, f"rank {last} has another {name} than rank 0",
               lambda options=options: context.make(plan, problem, **options))
    tables = context.make(plan, problem)
    part = random_parts(problem, [2] * context.size, context.generator())[context.rank]
    sum(one.sum() for one in tables(given(part)).values()).backward()
    assert tables.step == 1
