"""Cases: the spans of a step in torch's profiler, and the terms of the planner's objective."""

import dataclasses
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from distributed_models import make_plan, random_parts
from distributed_steps import given, small
from neuroshard.results import DeviceCost

LONGEST_S = 10


class Dense(torch.autograd.Function):
    """Takes so long, in both directions."""

    @staticmethod
    def forward(context, values, seconds):
        context.seconds = seconds
        with record_function("dense"):
            time.sleep(seconds)
        return values.clone()

    @staticmethod
    def backward(context, gradients):
        with record_function("dense backward"):
            time.sleep(context.seconds)
        return gradients, None


def spans(tables, ids, dense_s):
    """[(name, begin, end)] of a step whose dense part takes so long, and updates the tables."""
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        pending = tables.start(ids)
        pending.look_up()
        bottom = Dense.apply(torch.ones(3, requires_grad=True), dense_s)
        with record_function("waits"):
            results = pending.wait()
        (bottom.sum() + sum(one.sum() for one in results.values())).backward()
    return [(one.name, one.time_range.start, one.time_range.end) for one in profiler.events()]


def case_overlap(context, device="cpu"):
    """The exchanges of results and of gradients lie inside the dense part of all ranks, if that is
    long enough. Every term of a device's cost has a span."""
    problem, _ = small(context.size, "rowwise_adagrad")
    plan = make_plan(problem, ["table_wise"] * len(problem.tables), context.size, 2)
    tables = context.make(plan, problem, device=device)
    part = random_parts(problem, [20] * context.size, context.generator())[context.rank]
    spans(tables, given(part), 0)
    dense_s = 0.1
    while True:
        found = spans(tables, given(part), dense_s)
        inside = all(context.gather(is_inside(found) and is_inside_backward(found)))
        if inside or dense_s > LONGEST_S:
            break
        dense_s *= 2
    assert inside, found
    check_terms(tables, [name for name, _, _ in found])


def is_inside(found):
    """Whether the exchange that follows the lookup is over before the dense part is, and waiting
    for the results starts none."""
    dense, = [one for one in found if one[0] == "dense"]
    waits, = [one for one in found if one[0] == "waits"]
    looked_up = next(one for one in found if one[0] == "neuroshard::embeddings_lookup")
    assert not [one for one in found if one[0].startswith("gloo:")
                and waits[1] <= one[1] < waits[2]], found
    travels = [one for one in found if one[0] == "gloo:all_to_all" and one[1] > looked_up[1]
               and one[1] < dense[2]]
    return len(travels) > 0 and all(one[2] < dense[2] for one in travels)


def is_inside_backward(found):
    """Whether gradients travel in the backward of the dense part, and the update comes after it."""
    dense, = [one for one in found if one[0] == "dense backward"]
    sends = next(one for one in found if one[0] == "neuroshard::embeddings_gradients")
    updates = next(one for one in found if one[0] == "neuroshard::embeddings_update")
    assert sends[2] <= dense[1] and dense[2] <= updates[1], found
    travels = [one for one in found if one[0] == "gloo:all_to_all" and one[1] > sends[1]
               and one[1] < dense[2]]
    return len(travels) > 0 and all(one[2] < dense[2] for one in travels)


def check_terms(tables, names):
    """A span's name is neuroshard::TERM::PHASE. Costs have a field for each term, and no others."""
    ops = torch.ops.neuroshard
    by_phase = dict(zip(ops.phase_names(), ops.phase_terms(), strict=True))
    seen = {tuple(name.split("::")[1:]) for name in names
            if name.startswith("neuroshard::") and name.count("::") == 2}
    assert seen <= {(term, phase) for phase, term in by_phase.items()}, seen
    assert {term for term, _ in seen} == set(by_phase.values())
    fields = {one.name.removesuffix("_ms") for one in dataclasses.fields(DeviceCost)
              if one.name.endswith("_ms")}
    assert set(by_phase.values()) == fields
    phases, terms = tables.phases(), tables.terms()
    assert set(terms) == fields
    for term, ms in terms.items():
        assert abs(ms - sum(phases[phase][0] for phase, own in by_phase.items()
                            if own == term)) < 1e-6 * max(ms, 1)
