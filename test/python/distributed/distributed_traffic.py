"""Cases: the bytes that ranks of the engine for GPUs send, beside those that the planner counts."""

import torch

from distributed_gpu import OF_GPUS, ragged
from distributed_models import kinds_of, make_plan, make_problem, random_parts
from distributed_steps import given
from neuroshard import _planner
from neuroshard.distributed._gpu import operators

KINDS = ("ids", "results", "gradients", "copies", "norms")


class Sent:
    """Notes what a transport sends to each rank, by kind. A step begins with a header, which is
    not counted."""

    def __init__(self, transport, ranks):
        self.bytes = {kind: [0] * ranks for kind in KINDS}
        self.ranks, self.rows, self.headers = ranks, 0, 0
        swap, swap_rows, gather = transport.swap, transport.swap_rows, transport.gather

        def noted_swap(send, send_counts, receive_counts):
            if self.rows == 0 and self.headers == 0:
                self.headers = 1
            else:
                self.note("norms" if self.rows == 2 else "ids", send, send_counts)
            return swap(send, send_counts, receive_counts)

        def noted_rows(send, send_counts, receive_counts):
            self.rows += 1
            transport.swap = swap
            self.note("results" if self.rows == 1 else "gradients", send.to(transport.wire),
                      send_counts)
            arrival = swap_rows(send, send_counts, receive_counts)
            transport.swap = noted_swap
            return arrival

        def noted_gather(send, counts):
            self.note("copies", send.to(transport.wire), [max(counts)] * ranks)
            return gather(send, counts)

        transport.swap, transport.swap_rows = noted_swap, noted_rows
        transport.gather = noted_gather

    def note(self, kind, send, counts):
        for rank, count in enumerate(counts):
            self.bytes[kind][rank] += count * send.element_size()


def planned(problem, plan, layout, parts):
    """What the planner says of these local batches on GPUs."""
    tables = [table.name for table in problem.tables]
    rows = [set() for _ in tables]
    for part in parts:
        for number, feature in enumerate(problem.features):
            rows[tables.index(feature.table)].update(part.feature(number)[0].tolist())
    ids = [[count_ids(part.feature(bucket.lookup)[0], bucket.rows) for bucket in layout.buckets]
           for part in parts]
    on_gpus = problem.replace(topology=f"{len(parts)}xH200")
    return _planner.plan_traffic(on_gpus._native, plan._native, [[part.batch for part in parts]],
                                 [ids], [sorted(one) for one in rows])


def count_ids(ids, rows):
    return int(((ids >= rows[0]) & (ids < rows[1])).sum())


def check(context, problem, plan):
    tables = context.make(plan, problem, **OF_GPUS)
    generator = context.generator()
    stepper = operators.find(tables.name).stepper
    parts = random_parts(problem, [3 + 2 * rank for rank in range(context.size)], generator)
    expected = planned(problem, plan, stepper.layout, parts)
    sent = Sent(stepper.transport, context.size)
    results = tables(given(parts[context.rank]))
    torch.cat([value.flatten().float() for value in results.values()]).sum().backward()
    for kind in KINDS:
        assert sent.bytes[kind] == expected[kind][context.rank], kind
    return expected


def case_numbered(context, first, count):
    """A problem and a plan of each number. Not of weighted ones: gradients of sample weights are
    not counted."""
    for number in range(int(first), int(first) + int(count)):
        if number % 3 == 0:
            continue
        problem = make_problem(number, context.size)
        plan = make_plan(problem, kinds_of(number), context.size, number)
        check(context, problem, plan)


def case_norms(context):
    """Column shards whose rows are cut at other places."""
    expected = check(context, *ragged(context.size))
    assert context.size == 1 or any(map(any, expected["norms"]))
