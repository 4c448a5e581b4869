"""Runs the steps of one rank: lookup, exchange of results, exchange of gradients, update."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuroshard import cuda
from neuroshard._dtypes import DTYPES
from neuroshard._gpu.out_of_memory import with_torch_memory
from neuroshard.distributed._gpu.id_exchange import IdExchange
from neuroshard.distributed._gpu.layout import Layout
from neuroshard.distributed._gpu.norms import NormExchange
from neuroshard.distributed._gpu.results import Assembler, Home
from neuroshard.distributed._gpu.shard_memory import ShardMemory
from neuroshard.distributed._gpu.step_state import Places, Received, Step, Table
from neuroshard.distributed._gpu.transport import Transport
from neuroshard.distributed._gpu.weight_gradients import WeightGradients
from neuroshard.errors import TensorError
from neuroshard._jagged import Jagged


class Stepper:
    """Runs steps on this rank's shards. All ranks call start, finish and update alike."""

    def __init__(self, layout: Layout, transport: Transport, shards: ShardMemory,
                 norms: NormExchange, id_dtype: torch.dtype) -> None:
        self.layout, self.transport, self.shards, self.norms = layout, transport, shards, norms
        self.owner, self.place = layout.owners[transport.rank], shards.place
        self.table = Table(self.owner)
        self.id_exchange = IdExchange(layout, transport, shards.place, id_dtype)
        self.scale, self.updates = 1.0, 0
        # The step whose ids the library has sorted, and the one whose kernels may still run.
        self._sorted: Step | None = None
        self._held: Step | None = None

    def start(self, given: Jagged, learns: bool) -> Step:
        """Checks the ids and sends them. Raises a ValueError on all ranks if they are wrong on
        one."""
        return self.id_exchange.start(given, learns)

    def finish(self, step: Step) -> list[torch.Tensor]:
        """The results of all lookups."""
        received = step.received = Received(self.table, self.layout.pooled, self.transport.rank,
                                            step)
        places, home = Places(received), Home(self.layout, step.sizes, step.routed.batch)
        rows = self._empty(sum(places.counts))
        copies = self._empty(places.copy_counts[self.transport.rank])
        self._launch(step, places.addresses(rows, copies, self.transport.rank), places.stride,
                     cuda.TRAINING if step.learns else cuda.INFERENCE)
        remote = self.transport.swap_rows(rows, places.counts, home.counts).wait()
        return Assembler(self.layout, step, home, places, self.transport.rank).results(remote,
                                                                                       copies)

    def _empty(self, count: int) -> torch.Tensor:
        return torch.empty(count, dtype=torch.float32, device=self.place)

    def _launch(self, step: Step, out: torch.Tensor, stride: torch.Tensor, mode: int) -> None:
        if self.shards.device is None:
            return
        # Another stream of the library reads the ids until the next call makes this stream wait
        # for it. They are held until then, so that torch does not reuse their memory.
        before, self._sorted = self._sorted, None
        held, parts = step.received.parts(out, stride)
        with_torch_memory(
            lambda: self.shards.device.forward(parts, mode, self.shards.stream()),
            capturing=False)
        del held, before  # held until here: the parts, and the ids of the call before
        self._sorted = step if mode != cuda.INFERENCE else None

    # Gradients and the update

    def update(self, step: Step, gradients: Sequence[torch.Tensor],
               learning_rate: float) -> torch.Tensor | None:
        """Updates the tables of all ranks; returns the gradient of this rank's sample weights."""
        received, rank = step.received, self.transport.rank
        places, home = Places(received), Home(self.layout, step.sizes, step.routed.batch)
        if self._sorted is not step:
            # Another batch was looked up since: sort this one's ids again.
            self._launch(step, torch.zeros_like(places.begin), places.stride,
                         cuda.TRAINING_JOINED)
        assembler = Assembler(self.layout, step, home, places, rank)
        remote, copies = assembler.gradients(self._checked(gradients), self.scale)
        arrival = self.transport.swap_rows(remote, home.counts, places.counts)
        gathered = None
        if self.owner.replicated:
            gathered = self.transport.gather(copies, places.copy_counts).wait().float()
        arrived = arrival.wait().float()
        weights = None
        if step.weights is not None:
            weights = WeightGradients(self.layout, step, rank)
        self._apply(step, places, arrived, gathered, weights, learning_rate)
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
               gathered: torch.Tensor | None, weights: WeightGradients | None,
               learning_rate: float) -> None:
        device, stream = self.shards.device, self.shards.stream()
        if device is not None:
            begin = places.begin * 4 + arrived.data_ptr() * (arrived.numel() > 0)
            if gathered is not None:
                peers = torch.arange(self.layout.ranks) * max(places.copy_counts)
                begin = torch.where(self.table.replicated,
                                    (places.begin + peers) * 4 + gathered.data_ptr(), begin)
            held, native = step.received.gradients(begin, places.stride,
                                                   weights.addresses if weights else None)
            device.set_step(learning_rate, self.updates + 1, stream)
            self._sorted = None
            device.backward(native, stream)
            del held
        if self.norms.needed:
            self.norms.run(device, step.received)
        if device is not None and device.info.two_phase:
            device.backward_apply(stream)
        self._held = step

    def check(self) -> None:
        """Waits; raises cuda.BadId for ids of the last step that changed after their check."""
        if self.shards.device is not None:
            self.shards.device.check(self.shards.stream())

    def close(self) -> None:
        self._sorted = self._held = None
        self.shards.close()
