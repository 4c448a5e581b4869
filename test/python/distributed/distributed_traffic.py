"""Cases: the bytes that ranks of the engine for GPUs send, and take for it, beside those that the
planner counts."""

import collections

import torch

from distributed_gpu import OF_GPUS, ragged
from distributed_models import kinds_of, make_plan, make_problem, random_parts
from distributed_steps import given
from neuroshard import _planner
from neuroshard.distributed._gpu import operators

KINDS = ("ids", "results", "gradients", "copies", "norms")


class Sent:
    """Notes what a stepper sends to each rank, by kind, and the tensors that it takes for that. A
    step begins with a header, which is not counted as sent."""

    def __init__(self, stepper, ranks):
        transport = stepper.transport
        self.bytes = {kind: [0] * ranks for kind in KINDS}
        self.taken = collections.Counter()
        self.ranks, self.rows, self.headers = ranks, 0, 0
        swap, swap_rows, gather = transport.swap, transport.swap_rows, transport.gather
        start, empty, add = stepper.id_exchange.start, stepper._empty, stepper.norms._add

        def noted_swap(send, send_counts, receive_counts):
            arrival = swap(send, send_counts, receive_counts)
            if self.rows == 0 and self.headers == 0:
                self.headers = 1
                self.take("headers", send, *self.received(arrival, send))
                return arrival
            kind = "norms" if self.rows == 2 else "ids"
            self.note(kind, send, send_counts)
            self.take("norms" if self.rows == 2 else "sent_ids", send)
            self.take("norms" if self.rows == 2 else "received_ids",
                      *self.received(arrival, send))
            return arrival

        def noted_rows(send, send_counts, receive_counts):
            self.rows += 1
            kind = "results" if self.rows == 1 else "gradients"
            transport.swap = swap
            self.note(kind, send.to(transport.wire), send_counts)
            arrival = swap_rows(send, send_counts, receive_counts)
            transport.swap = noted_swap
            if self.rows == 2:
                self.take("gradients", send)
            received = self.received(arrival, send)
            if received and transport.wire != torch.float32:
                self.take(f"sent_{kind}", send.to(transport.wire))
                if self.rows == 2:
                    received += [received[0].float()]
            self.take(f"received_{kind}", *received)
            return arrival

        def noted_gather(send, counts):
            self.note("copies", send.to(transport.wire), [max(counts)] * ranks)
            arrival = gather(send, counts)
            self.take("gradients", send)
            received = self.received(arrival, send)
            if received:
                self.take("sent_gradients", received[0][:max(counts)])
                if transport.wire != torch.float32:
                    received += [received[0].float()]
            self.take("received_gradients", *received)
            return arrival

        def noted_start(*given):
            self.step = start(*given)
            routed = self.step.routed
            self.take("places", routed.lengths, routed.totals, *(routed.orders or []))
            return self.step

        def noted_add(own, arrived):
            self.take("norms", *(slot.values for slot in own.values()))
            add(own, arrived)

        def noted_empty(count):
            made = empty(count)
            self.take("partials", made)
            return made

        transport.swap, transport.swap_rows = noted_swap, noted_rows
        transport.gather = noted_gather
        stepper.id_exchange.start, stepper._empty = noted_start, noted_empty
        stepper.norms._add = noted_add

    @staticmethod
    def received(arrival, send):
        """What a message came in; nothing if it never left."""
        return [] if arrival._tensor is send else [arrival._tensor]

    def take(self, kind, *tensors):
        self.taken[kind] += sum(one.numel() * one.element_size() for one in tensors)

    def all_taken(self):
        """By kind, after the step."""
        self.take("received_ids", self.step.received.offsets)
        return {kind: taken for kind, taken in self.taken.items() if taken}

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
    step = [[part.batch for part in parts]], [ids], [sorted(one) for one in rows]
    return (_planner.plan_traffic(on_gpus._native, plan._native, *step),
            _planner.plan_buffers(on_gpus._native, plan._native, *step))


def count_ids(ids, rows):
    return int(((ids >= rows[0]) & (ids < rows[1])).sum())


def check(context, problem, plan):
    tables = context.make(plan, problem, **OF_GPUS)
    generator = context.generator()
    stepper = operators.find(tables.name).stepper
    parts = random_parts(problem, [3 + 2 * rank for rank in range(context.size)], generator)
    expected, buffers = planned(problem, plan, stepper.layout, parts)
    sent = Sent(stepper, context.size)
    results = tables(given(parts[context.rank]))
    torch.cat([value.flatten().float() for value in results.values()]).sum().backward()
    for kind in KINDS:
        assert sent.bytes[kind] == expected[kind][context.rank], kind
    taken = {kind: count for kind, count in buffers[context.rank].items() if count}
    assert sent.all_taken() == taken
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
