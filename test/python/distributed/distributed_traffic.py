"""Cases: the bytes that a step sends, and takes for its buffers, beside those that the planner
counts."""

import torch

from distributed_gpu import OF_GPUS, ragged
from distributed_models import kinds_of, make_plan, make_problem, random_parts
from distributed_steps import given
from neuroshard import _planner

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


def case_norms(context, kind="rowwise_adagrad", on_gpus="1"):
    """Column shards whose rows are cut at other places."""
    expected = check(context, *ragged(context.size, kind), on_gpus == "1")
    assert context.size == 1 or any(map(any, expected["norms"]))
