"""Cases: the spans of a step in torch's profiler, and the terms of the planner's objective."""

import dataclasses

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function

import neuroshard as ns
from distributed_models import make_plan, random_parts
from distributed_steps import given, small
from neuroshard.results import DeviceCost
from support.dynamic_batches import Batches, policy_of, problem_of, tensors


class Dense(torch.autograd.Function):
    """A dense part that calls functions in its forward and in its backward."""

    @staticmethod
    def forward(context, values, forward, backward):
        context.call = backward
        forward()
        return values.clone()

    @staticmethod
    def backward(context, gradients):
        context.call()
        return gradients, None, None


class Held:
    """The dense part of one rank ends when the others have got its results; its backward, when they
    have made their updates, which need its gradients. So both travel meanwhile."""

    def __init__(self, context, held):
        default = dist.distributed_c10d._get_default_store()
        self.store = dist.PrefixStore(f"held {held}", default)
        self.is_held, self.rank = context.rank == held, context.rank
        self.others = [rank for rank in range(context.size) if rank != held]

    def wait_for(self, event):
        if self.is_held:
            self.store.wait([f"{event} {rank}" for rank in self.others])

    def tell(self, event):
        self.store.set(f"{event} {self.rank}", "")


def spans(tables, ids, held):
    """[(name, begin, end)] of a step that updates the tables."""
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        pending = tables.start(ids)
        pending.look_up()
        bottom = Dense.apply(torch.ones(3, requires_grad=True), lambda: held.wait_for("results"),
                             lambda: held.wait_for("updated"))
        with record_function("waits"):
            results = pending.wait()
        held.tell("results")
        (bottom.sum() + sum(one.sum() for one in results.values())).backward()
        held.tell("updated")
    return [(one.name, one.time_range.start, one.time_range.end) for one in profiler.events()]


def case_overlap(context, device="cpu"):
    """Results and gradients travel during the dense part of each rank. Every term of a device's
    cost has a span."""
    problem, _ = small(context.size, "rowwise_adagrad")
    plan = make_plan(problem, ["table_wise"] * len(problem.tables), context.size, 2)
    tables = context.make(plan, problem, device=device)
    part = random_parts(problem, [20] * context.size, context.generator())[context.rank]
    for held in range(context.size):
        found = spans(tables, given(part), Held(context, held))
        check_order(found)
        check_terms(tables, [name for name, _, _ in found])


def check_order(found):
    """Waiting for the results starts no exchange; the update comes after the dense backward."""
    waits, = [one for one in found if one[0] == "waits"]
    assert not [one for one in found if one[0].startswith("gloo:")
                and waits[1] <= one[1] < waits[2]], found
    dense, = [one for one in found if one[0] == "DenseBackward"]
    sends, updates = (next(one for one in found if one[0] == f"neuroshard::embeddings_{name}")
                      for name in ("gradients", "update"))
    assert sends[2] <= dense[1] and dense[2] <= updates[1], found


def check_terms(tables, names):
    """A span's name is neuroshard::TERM::PHASE. Costs have a field for each term, and no others."""
    ops = torch.ops.neuroshard
    by_phase = dict(zip(ops.phase_names(), ops.phase_terms(), strict=True))
    seen = {tuple(name.split("::")[1:]) for name in names
            if name.startswith("neuroshard::") and name.count("::") == 2}
    assert seen <= {(term, phase) for phase, term in by_phase.items()}, seen
    # No shard has a cache whose rows are fetched.
    assert {term for term, _ in seen} == set(by_phase.values()) - {"fetch"}
    fields = {one.name.removesuffix("_ms") for one in dataclasses.fields(DeviceCost)
              if one.name.endswith("_ms")}
    assert set(by_phase.values()) == fields
    phases, terms = tables.phases(), tables.terms()
    assert set(terms) == fields
    for term, ms in terms.items():
        assert abs(ms - sum(phases[phase][0] for phase, own in by_phase.items()
                            if own == term)) < 1e-6 * max(ms, 1)


def id_map_parts(names):
    """The parts of the term of the maps of dynamic ids that have spans."""
    return {name.split("::")[2] for name in names if name.startswith("neuroshard::id_maps::")}


def case_id_maps(context):
    """Maps of dynamic ids have the spans of the parts that the planner prices; static tables have none."""
    problem = problem_of(context)
    plan = make_plan(problem, ["table_wise", "rows"], context.size, 3)
    batch = tensors(Batches(context).take()[context.rank])
    for policies in ({"a": policy_of("lru")}, {}):
        module = context.make(plan, problem, dynamic_ids=policies)
        if not policies:
            batch = {name: (torch.zeros_like(ids), offsets) for name, (ids, offsets) in batch.items()}
        with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
            sum(one.sum() for one in module(batch).values()).backward()
        priced = ns.plan(problem.replace(tables=[one.replace(dynamic_ids=one.name in policies)
                                                 for one in problem.tables])).explanation
        lines = [line.split(": ")[1] for line in priced if line.startswith("id_maps ")]
        parts = {part.split()[0] for line in lines for part in line.split(", ")}
        assert id_map_parts(one.name for one in profiler.events()) == parts, parts
        assert len(parts) == 2 * len(policies)
