"""Runs and times exchanges between the ranks of a torch.distributed job."""

import os
import time

import torch
import torch.distributed as dist

from neuroshard._group.host import boot_id, local_ranks
from neuroshard._group.messages import exchange

# How long ahead a start is agreed, so that every rank is ready: longer after a rank was late, then
# shorter again.
LEAST_LEAD_MS = 1.0
MOST_LEAD_MS = 50.0
MOST_TRIES = 4
SPIN_NS = 200_000
CLOCK_ROUNDS = 20


def now_ms():
    return time.monotonic_ns() / 1e6


def may_spin():
    """Whether each rank of this machine has a core of its own."""
    return local_ranks() <= len(os.sched_getaffinity(0))


def wait_until(moment_ms, spin):
    """Sleeps until a moment; spins for the last part if `spin`, which is for ranks with a core of
    their own."""
    moment_ns = int(moment_ms * 1e6)
    margin_ns = SPIN_NS if spin else 0
    while (left := moment_ns - time.monotonic_ns()) > margin_ns:
        time.sleep((left - margin_ns) / 1e9)
    while time.monotonic_ns() < moment_ns:
        pass


class Control:
    """Messages between the ranks beside the measured exchanges."""

    def __init__(self, group):
        self.group = group
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()

    def gather(self, values):
        """The numbers of all ranks: [size, len(values)]."""
        mine = torch.tensor(values, dtype=torch.float64)
        everyone = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(everyone, mine, group=self.group)
        return torch.stack(everyone).numpy()

    def gather_objects(self, value):
        everyone = [None] * self.size
        dist.all_gather_object(everyone, value, group=self.group)
        return everyone

    def clock_offset_ms(self):
        """This rank's clock minus rank 0's: 0 on one machine, else taken from the fastest of
        several round trips."""
        boots = self.gather_objects(boot_id())
        if len(set(boots)) == 1:
            return 0.0
        offset = 0.0
        for rank in range(1, self.size):
            if self.rank == 0:
                self._answer(rank)
            elif self.rank == rank:
                offset = self._ask()
        return offset

    def _answer(self, rank):
        word = torch.zeros(1, dtype=torch.float64)
        for _ in range(CLOCK_ROUNDS):
            dist.recv(word, src=rank, group=self.group)
            word[0] = now_ms()
            dist.send(word, dst=rank, group=self.group)

    def _ask(self):
        best = (float("inf"), 0.0)
        word = torch.zeros(1, dtype=torch.float64)
        for _ in range(CLOCK_ROUNDS):
            sent = now_ms()
            dist.send(word, dst=0, group=self.group)
            dist.recv(word, src=0, group=self.group)
            received = now_ms()
            best = min(best, (received - sent, (sent + received) / 2 - float(word[0])))
        return best[1]


class Exchanger:
    """Uneven all-to-alls on buffers that are allocated and touched once."""

    def __init__(self, control, device, most_bytes):
        self.control = control
        self.device = device
        self.outgoing = torch.ones(most_bytes, dtype=torch.uint8, device=device)
        self.incoming = torch.zeros(most_bytes, dtype=torch.uint8, device=device)
        self.offset_ms = 0.0
        self.lead_ms = 4 * LEAST_LEAD_MS
        self.spin = may_spin()

    def adjust_clock(self):
        self.offset_ms = self.control.clock_offset_ms()

    def splits(self, draw):
        """Bytes that this rank sends to, and receives from, each rank."""
        devices = draw.devices
        parts = [int(owned) // devices for owned in draw.owner_bytes]
        mine = [parts[self.control.rank]] * devices
        return (mine, parts) if draw.direction == "forward" else (parts, mine)

    def adapt_lead(self, least_slack_ms):
        """Adapts the lead from values that all ranks have, so that they agree on it."""
        factor = 1.5 if least_slack_ms < 0 else 0.9 if least_slack_ms > self.lead_ms / 2 else 1
        self.lead_ms = min(max(self.lead_ms * factor, LEAST_LEAD_MS), MOST_LEAD_MS)

    def time_once(self, draw):
        """(time, lateness) of each rank in ms: [size, 2]. time: from the moment at which the rank
        is to start until its results have arrived. lateness: how much of it passed before the
        system ran the rank."""
        for _ in range(MOST_TRIES):
            result = self._try_once(draw)
            least_slack_ms = result[:, 2].min()
            self.adapt_lead(least_slack_ms)
            if least_slack_ms >= 0:
                break
        return result[:, :2]

    def _try_once(self, draw):
        """One try. The third column is how long before its start each rank was ready; below 0 the
        try is void."""
        send, receive = self.splits(draw)
        outgoing = self.outgoing[: sum(send)]
        incoming = self.incoming[: sum(receive)]
        ready = self.control.gather([now_ms() - self.offset_ms])
        start = (ready.max() + self.lead_ms + float(draw.skews_ms[self.control.rank])
                 + self.offset_ms)
        slack = start - now_ms()
        wait_until(start, self.spin)
        begin = now_ms()
        if self.device.type == "cpu":
            exchange(incoming, outgoing, receive, send)
        else:
            dist.all_to_all_single(incoming, outgoing, receive, send)
            torch.cuda.synchronize(self.device)
        return self.control.gather([now_ms() - start, begin - start, slack])
