"""Sends the ids of a step to the ranks that own their rows. All ranks first exchange the counts
that the host needs, and errors: wrong ids on one rank are an error on all."""

from __future__ import annotations

import torch

from neuroshard._group.agreement import attempt
from neuroshard.distributed._gpu.layout import Layout, Owner
from neuroshard.distributed._gpu.routing import FAILED, RIGHT, Routed, Router
from neuroshard.distributed._gpu.step_state import Sizes, Step
from neuroshard.distributed._gpu.transport import Arrival, Transport
from neuroshard.errors import TensorError
from neuroshard._jagged import Jagged

# The fields of a header before the number of ids in each stream.
CODE, BATCH, LEARNS, HEAD = range(4)


class IdExchange:
    """Sends the ids of steps. All ranks call start alike."""

    def __init__(self, layout: Layout, transport: Transport, place: torch.device,
                 id_dtype: torch.dtype) -> None:
        self.layout, self.transport, self.place = layout, transport, place
        self.id_dtype, self.router = id_dtype, Router(layout, place)
        self.owner = layout.owners[transport.rank]
        most = max(len(owner.streams) for owner in layout.owners)
        none = len(layout.buckets)
        # By rank, the bucket of each stream, padded with a number that is no bucket's.
        self._buckets = torch.tensor(
            [[*owner.streams, *[none] * (most - len(owner.streams))] for owner in layout.owners],
            dtype=torch.int64, device=place).view(layout.ranks, most)
        # By whether an update may follow: the buckets sent to each rank, and their order.
        self._streams = {learns: [
            owner.streams[:self._count(owner, transport.rank, to, learns)]
            for to, owner in enumerate(layout.owners)] for learns in (False, True)}
        self._order = {learns: torch.tensor(sum(streams, ()), dtype=torch.int64, device=place)
                       for learns, streams in self._streams.items()}

    @staticmethod
    def _count(owner: Owner, source: int, to: int, learns: bool) -> int:
        """How many streams a rank sends to another. Ids of replicated tables go to other ranks only
        if an update may follow."""
        return len(owner.streams) if learns or source == to else owner.own_streams

    def start(self, given: Jagged, learns: bool) -> Step:
        """Checks the ids and sends them. Raises a ValueError on all ranks if they are wrong on
        one."""
        routed, error = attempt(lambda: self._route(given))
        header = self._header(routed, learns)
        even = [header.shape[1]] * self.layout.ranks
        arrived = self.transport.swap(header.flatten(), even, even)
        headers, sizes = self._read(arrived.wait(host=True).view(header.shape), routed)
        self._agree(headers, given, error, sizes)
        return self._send(given, learns, routed, headers, sizes)

    def _route(self, given: Jagged) -> Routed:
        self._check(given)
        return self.router.route(given)

    def _check(self, given: Jagged) -> None:
        wanted = [("ids", given.ids, self.id_dtype), ("offsets", given.offsets, torch.int64)]
        if (given.weights is not None) != self.layout.weighted:
            raise TensorError("weights: expected " + ("one for each id, found none" if
                                                      self.layout.weighted else
                                                      "none, since no lookup is weighted"))
        if given.weights is not None:
            wanted.append(("weights", given.weights, torch.float32))
            if given.weights.shape != given.ids.shape:
                raise TensorError(f"weights: expected one for each of the {given.ids.shape[0]} "
                                  f"ids, found {given.weights.shape[0]}")
        for name, tensor, dtype in wanted:
            if tensor.device != self.place:
                raise TensorError(f"{name}: expected a tensor on {self.place}, where the tables "
                                  f"are, found one on {tensor.device}")
            if tensor.dtype != dtype or tensor.dim() != 1:
                raise TensorError(f"{name}: expected one dimension of {dtype}, found "
                                  f"{tuple(tensor.shape)} of {tensor.dtype}")
        features, count = len(self.layout.features), given.offsets.shape[0]
        if count < 1 or (count - 1) % features:
            raise TensorError(f"offsets: expected {features} features * batch + 1 values, found "
                              f"{count}")

    def _header(self, routed: Routed | None, learns: bool) -> torch.Tensor:
        ranks = self.layout.ranks
        if routed is None:
            header = torch.zeros((ranks, HEAD + self._buckets.shape[1]), dtype=torch.int64,
                                 device=self.place)
            header[:, CODE] = FAILED
            return header
        totals = torch.cat([routed.totals, routed.totals.new_zeros(1)])
        head = [routed.code.expand(ranks), *[totals.new_full((ranks,), value) for value in
                                             (routed.batch, int(learns))]]
        return torch.cat([torch.stack(head, 1), totals[self._buckets]], 1)

    def _read(self, arrived: torch.Tensor,
              routed: Routed | None) -> tuple[list[list[int]], list[int]]:
        """Headers of all ranks, and what the host has to know of its own ids: the one time that
        a forward waits for the device."""
        width = arrived.shape[1]
        own = [] if routed is None else [routed.place.view(1), routed.totals, routed.feature_begin]
        values = torch.cat([arrived.flatten(), *own]).tolist()
        ranks = self.layout.ranks
        headers = [values[rank * width:(rank + 1) * width] for rank in range(ranks)]
        return headers, values[ranks * width:]

    def _agree(self, headers: list[list[int]], given: Jagged, error: BaseException | None,
               own: list[int]) -> None:
        codes = [header[CODE] for header in headers]
        if any(codes):
            mine, text = codes[self.transport.rank], None
            if mine == FAILED:
                text = f"{error}"
            elif mine != RIGHT:
                text = self.router.explain(given, mine, own[0])
            for rank, found in enumerate(self.transport.gather_text(text)):
                if found is not None:
                    # The rank's own error has its stack.
                    raise TensorError(f"rank {rank}: {found}") from error
        modes = [header[LEARNS] for header in headers]
        if len(set(modes)) > 1:
            raise TensorError(
                f"rank {modes.index(1)} is to learn from this batch and rank {modes.index(0)} is "
                "not: all ranks must be in train() mode with gradients, or none")

    def _send(self, given: Jagged, learns: bool, routed: Routed, headers: list[list[int]],
              own: list[int]) -> Step:
        rank, buckets = self.transport.rank, len(self.layout.buckets)
        counts = [header[HEAD:][:self._count(self.owner, source, rank, learns)]
                  for source, header in enumerate(headers)]
        sizes = Sizes([header[BATCH] for header in headers], counts, own[1:1 + buckets],
                      own[1 + buckets:])
        step = Step(self.layout, given, learns, routed, sizes)
        streams = self._streams[learns]
        step.lengths = self._send_lengths(step, streams)
        id_counts = ([sum(sizes.own[bucket] for bucket in one) for one in streams],
                     [sum(one) for one in counts])
        spans = [step.span_of(bucket) for one in streams for bucket in one]
        step.ids = self.transport.swap(pick(given.ids, routed, spans), *id_counts)
        if given.weights is not None:
            weights = pick(given.weights.detach(), routed, spans)
            step.weights = self.transport.swap(weights, *id_counts)
        return step

    def _send_lengths(self, step: Step, streams: list[tuple[int, ...]]) -> Arrival:
        """Of each bag of each stream; if not pooled, one number for each stream."""
        lengths = (step.routed.lengths if self.layout.pooled else
                   step.routed.totals.unsqueeze(1)).to(torch.int32)
        width = [batch if self.layout.pooled else 1 for batch in step.sizes.batches]
        mine = width[self.transport.rank]
        send = lengths.index_select(0, self._order[step.learns]).flatten()
        return self.transport.swap(
            send, [len(one) * mine for one in streams],
            [len(one) * each for one, each in zip(step.sizes.counts, width)])


def pick(values: torch.Tensor, routed: Routed, spans: list[tuple]) -> torch.Tensor:
    """The values of all spans, one after the other."""
    if not spans:
        return values[:0]
    if routed.orders is None:
        return torch.cat([values[begin:end] for _, begin, end in spans])
    ordered = {id(order): values[order] for order in routed.orders}
    return torch.cat([ordered[id(order)][begin:end] for order, begin, end in spans])
