"""The steps of one rank: ids out, lookups, results back; gradients out, update."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuroshard import cuda
from neuroshard.distributed.agreement import attempt, gather
from neuroshard.distributed.gpu.layout import Layout
from neuroshard.distributed.gpu.norms import NormExchange
from neuroshard.distributed.gpu.results import Assembler, Home
from neuroshard.distributed.gpu.routing import FAILED, RIGHT, Routed, Router
from neuroshard.distributed.gpu.shard_memory import ShardMemory
from neuroshard.distributed.gpu.step import Places, Received, Sizes, Step
from neuroshard.distributed.gpu.transport import Arrival, Transport
from neuroshard.distributed.gpu.weight_gradients import WeightGradients
from neuroshard.distributed.operators import DTYPES
from neuroshard.errors import TensorError
from neuroshard.jagged import Jagged

# Of a header, before the numbers of ids of each stream.
CODE, BATCH, LEARNS, HEAD = range(4)


class Stepper:
    """Runs steps on this rank's shards. All ranks call start, finish and update alike."""

    def __init__(self, layout: Layout, transport: Transport, shards: ShardMemory,
                 norms: NormExchange) -> None:
        self.layout, self.transport, self.shards, self.norms = layout, transport, shards, norms
        self.owner, self.place = layout.owners[transport.rank], shards.place
        self.router = Router(layout, self.place)
        self.learning_rate, self.scale, self.updates = 0.0, 1.0, 0
        self.id_dtype = torch.int64
        self._sorted: Step | None = None
        most = max(len(owner.streams) for owner in layout.owners)
        none = len(layout.buckets)
        # The bucket of each stream, by rank; behind the last one that no bucket has.
        self._buckets = torch.tensor(
            [[*owner.streams, *[none] * (most - len(owner.streams))] for owner in layout.owners],
            dtype=torch.int64, device=self.place).view(layout.ranks, most)

    # Ids out

    def start(self, given: Jagged, learns: bool) -> Step:
        """Checks the ids and sends them. A ValueError on all ranks if they are wrong on one."""
        routed, error = attempt(lambda: self._route(given, learns))
        header = self._header(routed, learns)
        arrived = self.transport.swap(header.flatten(), *[[header.shape[1]] * self.layout.ranks] * 2)
        headers, sizes = self._read(arrived.wait().view(header.shape), routed)
        self._agree(headers, given, error, sizes)
        return self._send(given, learns, routed, headers, sizes)

    def _route(self, given: Jagged, learns: bool) -> Routed:
        self._check(given)
        if learns and given.weights is not None and given.weights.requires_grad and any(
                lookup.mean for lookup in self.layout.lookups):
            raise TensorError("gradients of sample weights cannot be computed for means on GPUs: "
                              "detach the weights, or pool by sum")
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
            for rank, found in enumerate(gather(text, self.transport.group) if
                                         self.transport.group else [text]):
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
        counts = [header[HEAD:][:self._streams(self.owner, source, rank, learns)]
                  for source, header in enumerate(headers)]
        sizes = Sizes([header[BATCH] for header in headers], counts, own[1:1 + buckets],
                      own[1 + buckets:])
        step = Step(given, learns, routed, sizes, None, None, None, self.layout)
        streams = [owner.streams[:self._streams(owner, rank, to, learns)]
                   for to, owner in enumerate(self.layout.owners)]
        step.lengths = self._send_lengths(step, streams)
        id_counts = ([sum(sizes.own[bucket] for bucket in one) for one in streams],
                     [sum(one) for one in counts])
        spans = [step.span_of(bucket) for one in streams for bucket in one]
        step.ids = self.transport.swap(pick(given.ids, routed, spans), *id_counts)
        if given.weights is not None:
            weights = pick(given.weights.detach(), routed, spans)
            step.weights = self.transport.swap(weights, *id_counts)
        return step

    def _streams(self, owner, source: int, to: int, learns: bool) -> int:
        """How many streams a rank sends to another: ids of copies only to learn from."""
        return len(owner.streams) if learns or source == to else owner.own_streams

    def _send_lengths(self, step: Step, streams: list[tuple[int, ...]]) -> Arrival:
        """Of each bag of each stream; if not pooled, one number for each stream."""
        order = [bucket for one in streams for bucket in one]
        lengths = (step.routed.lengths if self.layout.pooled else
                   step.routed.totals.unsqueeze(1)).to(torch.int32)
        index = torch.tensor(order, dtype=torch.int64, device=self.place)
        width = [batch if self.layout.pooled else 1 for batch in step.sizes.batches]
        mine = width[self.transport.rank]
        return self.transport.swap(
            lengths.index_select(0, index).flatten(), [len(one) * mine for one in streams],
            [len(one) * each for one, each in zip(step.sizes.counts, width)])

    # Lookups and results

    def finish(self, step: Step) -> list[torch.Tensor]:
        """The results of all lookups."""
        received = step.received = Received(self.owner, self.layout, self.transport.rank, step)
        places, home = Places(received), Home(self.layout, step.sizes, step.routed.batch)
        rows = torch.empty(places.total, dtype=torch.float32, device=self.place)
        copies = torch.empty(places.copy_counts[self.transport.rank], dtype=torch.float32,
                             device=self.place)
        places.rows, places.copies = rows.data_ptr(), copies.data_ptr()
        self._launch(step, places, cuda.TRAINING if step.learns else cuda.INFERENCE)
        remote = self.transport.swap_rows(rows, places.counts, home.counts).wait()
        return Assembler(self.layout, step, home, places, self.transport.rank).results(remote,
                                                                                       copies)

    def _launch(self, step: Step, places: Places, mode: int) -> None:
        if self.shards.device is None:
            return
        self._sorted = None
        _, parts = memory_and_parts = step.received.parts(places)
        self.shards.device.forward(parts, mode, self.shards.stream())
        del memory_and_parts
        # A stream of the library reads the ids beside this one: they stay until the next call.
        self._sorted = step if mode != cuda.INFERENCE else None

    # Gradients and the update

    def update(self, step: Step, gradients: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """Updates the tables of all ranks; gives the gradient of this rank's sample weights."""
        received, rank = step.received, self.transport.rank
        places, home = Places(received), Home(self.layout, step.sizes, step.routed.batch)
        if self._sorted is not step:
            # Another batch was looked up since: this one's ids have to be sorted again.
            self._launch(step, places, cuda.TRAINING_JOINED)
        assembler = Assembler(self.layout, step, home, places, rank)
        remote, copies = assembler.gradients(self._checked(gradients), self.scale)
        arrival = self.transport.swap_rows(remote, home.counts, places.counts)
        gathered = None
        if self.owner.replicated:
            gathered = self.transport.gather(copies, places.copy_counts).wait().float()
        arrived = arrival.wait().float()
        weights = None
        if step.weights is not None and not any(one.mean for one in self.layout.lookups):
            weights = WeightGradients(self.layout, step, rank)
        self._apply(step, places, arrived, gathered, weights)
        self.updates += 1
        return weights.finish(self.transport, self.scale) if weights else None

    def _checked(self, gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        for result, gradient in zip(self.layout.results, gradients, strict=True):
            wanted = DTYPES[result.lookup.result_type]
            if gradient.device != self.place or gradient.dtype != wanted:
                raise TensorError(f"gradient of \"{self.layout.features[result.lookup.feature]}\": "
                                  f"expected {wanted} on {self.place}, found {gradient.dtype} on "
                                  f"{gradient.device}")
        return list(gradients)

    def _apply(self, step: Step, places: Places, arrived: torch.Tensor,
               gathered: torch.Tensor | None, weights: WeightGradients | None) -> None:
        device, stream = self.shards.device, self.shards.stream()
        if device is not None:
            most = max(places.copy_counts)
            native = []
            for entry, source in step.received.entries():
                base = arrived if not entry.replicated else gathered
                first = places.begin(entry, source) + most * source * entry.replicated
                native.append((base.data_ptr() + 4 * first if base.numel() else None,
                               places.stride(entry),
                               weights.target(entry, source) or None if weights else None))
            device.set_step(self.learning_rate, self.updates + 1, stream)
            self._sorted = None
            device.backward(native, stream)
        if self.norms.needed:
            self.norms.run(device, step.received)
        if device is not None and device.info.two_phase:
            device.backward_apply(stream)
        # Kernels read these after this returns; a stream of this device alone reuses them.
        self._held = (step, arrived, gathered, weights)

    def check(self) -> None:
        """Waits; raises cuda.BadId for ids that were changed after they were checked."""
        if self.shards.device is not None:
            self.shards.device.check(self.shards.stream())

    def close(self) -> None:
        self._sorted = self._held = None
        self.shards.close()


def pick(values: torch.Tensor, routed: Routed, spans: list[tuple]) -> torch.Tensor:
    """The values of all spans, one after the other."""
    if not spans:
        return values[:0]
    if routed.orders is None:
        return torch.cat([values[begin:end] for _, begin, end in spans])
    ordered = {id(order): values[order] for order in routed.orders}
    return torch.cat([ordered[id(order)][begin:end] for order, begin, end in spans])


