"""A user's own cost model: its plans equal the built-in model's, its mistakes are named, its
exceptions reach the caller."""

import itertools
import math
import threading
import traceback

import pytest

import neuroshard as ns
from support.planning import (EXPECTED, BytesModel, ReferenceModel, reference_task,
                              small_problem)


def published(problem, **options):
    return ns.plan(problem, objective="published", algorithm="published", **options)


@pytest.mark.parametrize("task", ["task_00", "task_01", "task_03", "task_07", "task_12"])
def test_reference_in_python_plans_as_the_built_in(task):
    problem = reference_task(task)
    own = published(problem, cost_model=ReferenceModel())
    built_in = published(problem, cost_model="reference")
    assert own.plan.shards == built_in.plan.shards
    assert own.cost_ms == pytest.approx(built_in.cost_ms, rel=1e-12)
    assert own.cost_ms == pytest.approx(EXPECTED[task]["cost_ms"], rel=1e-9)
    assert own.plan.provenance.cost_model == "reference in Python"


def test_default_search_under_a_model_in_python():
    problem = reference_task("task_00")
    result = ns.plan(problem, cost_model=ReferenceModel(), objective="published")
    result.plan.verify(problem)
    assert result.cost_ms < EXPECTED["task_00"]["cost_ms"]
    again = ns.evaluate(problem, result.plan, cost_model="reference", objective="published")
    assert again.cost_ms == pytest.approx(result.cost_ms, rel=1e-12)


def test_the_number_of_threads_does_not_matter():
    problem = small_problem()
    plans = [ns.plan(problem, cost_model=BytesModel(), threads=threads).plan
             for threads in (1, 2, 8)]
    assert plans[0] == plans[1] == plans[2]


def test_what_a_model_sees():
    seen = {}

    class Looking(BytesModel):
        def compute_ms(self, shard_sets):
            for shard_set in shard_sets:
                assert shard_set.shards and shard_set.device_class.name == "CPU"
                for shard in shard_set.shards:
                    if shard.width == 64 and shard.rows == 100_000 and not shard.replicated:
                        seen["user"] = shard
            return super().compute_ms(shard_sets)

        def communication_ms(self, traffic, skews=None, direction="forward"):
            assert skews is None and traffic.topology.device_count == 2
            seen[direction] = traffic
            return super().communication_ms(traffic, skews, direction)

    ns.plan(small_problem(), cost_model=Looking())
    user = seen["user"]
    assert (user.table, user.table_rows, user.table_dim) == ("user", 100_000, 64)
    assert (user.type, user.optimizer, user.pooling, user.features) == (
        "f32", "rowwise_adagrad", 1, 1)
    assert user.lookups == user.output_rows == 4096
    assert user.reuse is None and not user.row_split
    assert repr(user) == "ShardWork(table='user', rows=100000, width=64)"
    assert {"input", "forward", "backward"} <= set(seen)
    assert seen["input"].dims == [0, 0] and sum(seen["forward"].dims) > 0


def test_reuse_reaches_the_model_and_outlives_the_search():
    reuse = (0.5, 0.5) + (0,) * 15
    kept = []

    class Keeping(BytesModel):
        def compute_ms(self, shard_sets):
            kept.extend(shard for one in shard_sets for shard in one.shards)
            return super().compute_ms(shard_sets)

    problem = small_problem()
    tables = (problem.tables[0].replace(access=ns.Access(batch=4096, reuse=reuse)),
              *problem.tables[1:])
    ns.plan(problem.replace(tables=tables), cost_model=Keeping(), algorithm="dim")
    del problem, tables
    user = next(shard for shard in kept if shard.table == "user")
    assert tuple(user.reuse) == reuse and user.reuse_batch == 4096


class Broken(BytesModel):
    """Returns a wrong value in place of a right one."""

    def __init__(self, compute=None, communication=None):
        self.compute, self.communication = compute, communication

    def compute_ms(self, shard_sets):
        right = super().compute_ms(shard_sets)
        return right if self.compute is None else self.compute(right)

    def communication_ms(self, traffic, skews=None, direction="forward"):
        right = super().communication_ms(traffic, skews, direction)
        return right if self.communication is None else self.communication(right)


@pytest.mark.parametrize("answer, message", [
    (lambda right: right[1:], r"compute_ms: expected 1 times.*got: 0"),
    (lambda right: None, r"compute_ms: expected a list.*got: None"),
    (lambda right: [(1, 2, 3)] * len(right), r"expected \(forward, backward\) or one number"),
    (lambda right: ["fast"] * len(right), r"time\[0\]: expected a number.*'fast'"),
    (lambda right: [(1, math.nan)] * len(right), r"time\[0\] backward: expected a finite"),
    (lambda right: [(-1, 1)] * len(right), r"time\[0\] forward: expected a finite.*-1"),
    (lambda right: [(1, None)] * len(right), r"time\[0\] backward: expected a number.*None"),
    (lambda right: itertools.repeat((1, 1)), r"compute_ms: expected 1 times.*got: more"),
    (lambda right: [(1.1e15, 1)], r"time\[0\] forward: expected at most 1e15.*1100000000000000"),
    (lambda right: [(1, 10**400)], r"time\[0\] backward: expected a number"),
    (lambda right: [(1, 10**5000)], r"expected a number.*got: a value of type int"),
    (lambda right: ["\ud800"], r"time\[0\]: expected a number.*ud800"),
])
def test_wrong_compute_times_are_named(answer, message):
    with pytest.raises(ns.CostModelError, match=r"^Broken: " + ".*" + message):
        ns.plan(small_problem(), cost_model=Broken(compute=answer))


@pytest.mark.parametrize("answer, message", [
    (lambda right: right + [1], r"communication_ms: expected 2 times.*got: 3"),
    (lambda right: itertools.count(), r"communication_ms: expected 2 times.*got: more"),
    (lambda right: [0, 1e300], r"communication_ms: time\[1\]: expected at most 1e15.*1e\+300"),
    (lambda right: 1.5, r"communication_ms: expected a list.*got: 1.5"),
    (lambda right: [math.inf, 1], r"communication_ms: time\[0\]: expected a finite.*inf"),
    (lambda right: [0, "slow"], r"communication_ms: time\[1\]: expected a number.*'slow'"),
])
def test_wrong_communication_times_are_named(answer, message):
    with pytest.raises(ns.CostModelError, match=message):
        ns.plan(small_problem(), cost_model=Broken(communication=answer))


def test_one_form_of_time_always():
    asked = []

    class Wavering(BytesModel):
        def compute_ms(self, shard_sets):
            asked.append(len(shard_sets))
            times = super().compute_ms(shard_sets)
            return times if len(asked) < 3 else [sum(time) for time in times]

    with pytest.raises(ns.CostModelError, match="one number, where the first answer was"):
        ns.plan(small_problem(), cost_model=Wavering())


def test_one_number_serves_only_the_published_objective():
    with pytest.raises(ns.CostModelError, match="published"):
        ns.plan(small_problem(), cost_model=ReferenceModel(), objective="step")
    with pytest.raises(ns.CostModelError, match="published"):
        plan = ns.plan(small_problem(), algorithm="dim").plan
        ns.evaluate(small_problem(), plan, cost_model=ReferenceModel(), objective="step")


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("algorithm", ["default", "published", "size"])
@pytest.mark.parametrize("when", [1, 2, 5])
def test_an_exception_comes_out_as_it_is(threads, algorithm, when):
    lock = threading.Lock()
    calls = []

    class Failing(ReferenceModel):
        def compute_ms(self, shard_sets):
            with lock:
                calls.append(1)
                if len(calls) >= when:
                    raise LookupError("the table of costs is empty")
            return super().compute_ms(shard_sets)

    with pytest.raises(LookupError, match="the table of costs is empty") as caught:
        published_or = {"algorithm": algorithm, "objective": "published"}
        ns.plan(reference_task("task_00"), cost_model=Failing(), threads=threads, **published_or)
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-1] == "compute_ms"
    assert len(calls) == when  # Nobody asks a model that has failed.


def test_a_model_without_its_methods_says_which_is_missing():
    class Empty(ns.CostModel):
        pass

    with pytest.raises(NotImplementedError, match="Empty.compute_ms: .*derive from"):
        ns.plan(small_problem(), cost_model=Empty())
    with pytest.raises(NotImplementedError, match="CostModel.communication_ms: .*derive from"):
        ns.CostModel().communication_ms(None)


@pytest.mark.parametrize("changes, message", [
    ({"name": 3}, "Odd.name: expected a text, got: 3"),
    ({"name": "\ud800"}, "Odd.name: expected a text that UTF-8 can hold"),
    ({"monotone": "yes"}, "Odd.monotone: expected True or False, got: 'yes'"),
    ({"monotone": None}, "Odd.monotone: expected True or False, got: None"),
])
def test_a_wrong_name_or_monotone_is_named(changes, message):
    odd = type("Odd", (BytesModel,), changes)
    with pytest.raises(ns.CostModelError, match=f"^{message}"):
        ns.plan(small_problem(), cost_model=odd())


def test_an_iterator_of_the_right_length_will_do():
    class Lazy(BytesModel):
        def compute_ms(self, shard_sets):
            return iter(super().compute_ms(shard_sets))

    problem = small_problem()
    plans = [ns.plan(problem, cost_model=model, algorithm="size") for model in
             (Lazy(), BytesModel())]
    assert plans[0].cost_ms == plans[1].cost_ms


def test_device_classes_are_listed():
    assert ns.device_classes()["H200"].memory_bytes > 100 << 30


@pytest.mark.parametrize("model, error, message", [
    ("fastest", ns.UnknownCostModel, "expected auto, roofline, reference"),
    ("missing.safetensors", ns.UnknownCostModel, "missing.safetensors"),
    (["missing.safetensors"], ns.UnknownCostModel, "missing.safetensors"),
    ("", ns.UnknownCostModel, "expected auto, roofline, reference"),
    (BytesModel, TypeError, "an instance, not the class"),
    (None, TypeError, "expected a name"),
    (7, TypeError, "got: 7"),
    ([7], TypeError, "cost_model: expected a path.*got: 7"),
    ("roofline\0", ValueError, "cost_model: expected a path without NUL"),
    ("\ud800", ValueError, "cost_model: .*lone surrogates"),
])
def test_what_is_no_model_is_refused(model, error, message):
    with pytest.raises(error, match=message):
        ns.plan(small_problem(), cost_model=model)


def test_auto_finds_the_shipped_models():
    result = ns.plan(small_problem())
    assert result.plan.provenance.cost_model.startswith("cpu_compute+")
