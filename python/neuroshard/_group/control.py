"""A watched process group: its ranks learn why it has ended, and do not wait for ever.

A thread of each rank gives signs of life through the group's store and looks there for the
cause that ended the group (lib/RuntimeTorch/GroupWatch). docs/faults.md says what ranks see."""

from __future__ import annotations

import atexit
import collections
import itertools
import os
import sys
import time
import weakref
from datetime import timedelta

import torch
import torch.distributed as dist

from neuroshard._torch_library import load_library
from neuroshard.errors import GroupError

SILENCE_S = 20.0
# A process that has failed may be kept by collectives of others that cannot end.
EXIT_S = 8.0

_numbers = itertools.count()
_times_watched: collections.Counter[str] = collections.Counter()
_open: "weakref.WeakKeyDictionary[dist.ProcessGroup, Control]" = weakref.WeakKeyDictionary()
_owner: list[int] = []


def is_forked() -> bool:
    """Whether this is a child of the process that uses this. It has no threads of ours, and its
    connections are its parent's."""
    return bool(_owner) and os.getpid() != _owner[0]


def silence() -> float:
    """Seconds without a sign of life after which a process counts as gone; at least 5."""
    text = os.environ.get("NEUROSHARD_SILENCE_S", "")
    try:
        seconds = float(text) if text else SILENCE_S
    except ValueError:
        seconds = 0
    if not 5 <= seconds <= 1e6:
        raise ValueError("NEUROSHARD_SILENCE_S: expected a number of seconds from 5, found "
                         f"{text!r}")
    return seconds


def first_line(error: BaseException) -> str:
    """The text of an error without the stack that torch's carry."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


class Control:
    """This rank's end of a watched group, and gathers over it. All ranks make it together."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        load_library()
        self.name = f"control_{next(_numbers)}"
        self.rank = dist.get_rank(group)
        self._group = weakref.ref(group)
        self._own: dist.ProcessGroup | None = None
        # A store may outlive its group, whose name then comes again.
        _times_watched[group.group_name] += 1
        prefix = f"neuroshard/{_times_watched[group.group_name]}"
        limit = silence()
        try:
            torch.ops.neuroshard.watch(self.name, group.group_name, prefix, limit)
        except RuntimeError as error:
            raise GroupError(first_line(error)) from None
        try:
            self._meet(group)
            self._own = self.new_group()
            torch.ops.neuroshard.watch_connect(self.name, self._own.group_name)
        except BaseException:
            self.close()
            raise

    def _meet(self, group: dist.ProcessGroup) -> None:
        """Waits for all ranks, as long as it takes. A rank that has gone breaks the exchange; the
        others wait for nothing then."""
        place = "cuda" if dist.get_backend(group) == "nccl" else "cpu"
        count = torch.tensor([group_count()], device=place)
        try:
            work = dist.all_reduce(count, dist.ReduceOp.MAX, group=group, async_op=True)
            while not work.is_completed():
                self.require_going()
                time.sleep(0.002)
            work.wait()
        except GroupError:
            raise
        except RuntimeError as error:
            self.fail(error, "could not reach the other ranks")
        set_group_count(int(count))

    def new_group(self, backend: str = "gloo") -> dist.ProcessGroup:
        """A group of the same ranks, in which collectives of others are never between ours.

        Ranks come here within moments of each other, so making it has a short timeout; the
        group itself has the one of the process group."""
        group = self._group()
        if self._own:
            set_group_count(max(self.gather_numbers(group_count())))
        ranks = dist.get_process_group_ranks(group)
        try:
            own = dist.new_group(ranks, backend=backend, use_local_synchronization=True,
                                 timeout=timedelta(seconds=10 + 0.1 * len(ranks)))
            dist.distributed_c10d.set_timeout(timeout_of(group), own)
        except RuntimeError as error:
            self.fail(error, "could not connect to the other ranks")
        torch.ops.neuroshard.watch_group(self.name, own.group_name)
        return own

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """The bytes of all ranks, in rank order."""
        mine = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(
            0, dtype=torch.uint8)
        try:
            return [one.numpy().tobytes()
                    for one in torch.ops.neuroshard.gather_bytes(self.name, 1, mine)]
        except RuntimeError as error:
            raise GroupError(first_line(error)) from None

    def gather_numbers(self, number: int) -> list[int]:
        """One number of each rank."""
        try:
            return torch.ops.neuroshard.gather_numbers(self.name, 2, number)
        except RuntimeError as error:
            raise GroupError(first_line(error)) from None

    def cause(self) -> str:
        """Why the group has ended; "" while it goes on."""
        return torch.ops.neuroshard.cause_of_end(self.name)

    def require_going(self) -> None:
        if cause := self.cause():
            raise GroupError(cause)

    def fail(self, error: BaseException, what: str) -> None:
        """Ends the group after an error of torch's collectives, whose cause may be a rank that
        has gone; raises a GroupError with it."""
        torch.ops.neuroshard.end_group_after(self.name,
                                             f"rank {self.rank}: {what}: {first_line(error)}")
        raise GroupError(self.cause()) from error

    def report(self, kind: type[BaseException], error: BaseException) -> None:
        """Tells the others that this program ends with an error, and stderr, if the error is
        the consequence of something else, of what."""
        text = f"rank {self.rank}: its program ended with {kind.__name__}: {first_line(error)}"
        end = (torch.ops.neuroshard.end_group_after
               if issubclass(kind, (RuntimeError, OSError)) else torch.ops.neuroshard.end_group)
        end(self.name, text)
        cause = self.cause()
        if first_line(error) not in cause and cause not in str(error):
            print(f"neuroshard: rank {self.rank}: the group has ended: {cause}", file=sys.stderr,
                  flush=True)

    def close(self) -> None:
        torch.ops.neuroshard.unwatch(self.name)


def group_count() -> int:
    """torch names a group of some ranks by how many groups each has made. Ranks that have been in
    more groups than others would look for the rest under another name, for ever: they agree on
    the largest count first."""
    return dist.distributed_c10d._world.group_count


def set_group_count(count: int) -> None:
    dist.distributed_c10d._world.group_count = count


def timeout_of(group: dist.ProcessGroup) -> timedelta:
    """How long collectives of a group may take."""
    device = torch.device("cuda" if dist.get_backend(group) == "nccl" else "cpu")
    return group._get_backend(device).options._timeout


def control_of(group: dist.ProcessGroup | None) -> Control:
    """The control of a process group; made, by all ranks together, when first asked for."""
    if is_forked():
        raise GroupError("this process was forked from one that neuroshard.distributed runs in; "
                         "start it with the method \"spawn\", or use it for data alone")
    group = group or dist.group.WORLD
    if group not in _open:
        watch_the_end()
        _open[group] = Control(group)
    return _open[group]


def is_watched(group: dist.ProcessGroup) -> bool:
    """Whether the group has a control."""
    return group in _open


def explain(error: BaseException, group: dist.ProcessGroup | None) -> str:
    """Why collectives of the group fail with `error`: a rank that has gone, or the error."""
    if group is None and not dist.is_initialized():
        return first_line(error)
    try:
        control = control_of(group)
    except GroupError as without:
        return str(without)
    torch.ops.neuroshard.end_group_after(control.name, f"rank {control.rank}: {first_line(error)}")
    return control.cause()


def watch_the_end() -> None:
    """Has the group told when this program ends with an error."""
    if _owner:
        return
    _owner.append(os.getpid())
    previous = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, trace: object) -> None:
        previous(kind, error, trace)
        if is_forked() or not _open:
            return
        torch.ops.neuroshard.end_process_in(EXIT_S)
        for control in list(_open.values()):
            control.report(kind, error)

    sys.excepthook = report


@atexit.register
def _close_all() -> None:
    """Threads of open controls must not outlive the interpreter."""
    if is_forked():
        return
    for control in list(_open.values()):
        if control.cause():
            torch.ops.neuroshard.end_process_in(EXIT_S)
        control.close()
