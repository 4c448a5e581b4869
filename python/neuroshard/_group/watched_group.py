"""A watched process group: every rank learns why it ended, and none waits for ever.

A thread of each rank writes heartbeats to the group's store and reads there the cause that ended
the group (lib/RuntimeTorch/GroupWatch). docs/faults.md lists the errors."""

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

from neuroshard._group.silence import silence
from neuroshard._native.torch_library import load_library
from neuroshard.errors import GroupError

# Seconds that a failed process may do nothing while the interpreter is freed, after its exit
# handlers: it then waits for a collective that cannot end.
EXIT_S = 8.0

# Its name in PyTorch 2.14, and before.
_set_timeout = (getattr(dist.distributed_c10d, "set_timeout", None)
                or dist.distributed_c10d._set_pg_timeout)
_numbers = itertools.count()
_times_watched: collections.Counter[str] = collections.Counter()
_open: "weakref.WeakKeyDictionary[dist.ProcessGroup, WatchedGroup]" = weakref.WeakKeyDictionary()
_owner: list[int] = []


def is_forked() -> bool:
    """Whether this process was forked from one that watches a group. It has none of the watching
    threads, and shares its parent's connections."""
    return bool(_owner) and os.getpid() != _owner[0]


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without the stack that torch appends."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


class WatchedGroup:
    """This rank's end of a watched group, and gathers over it. All ranks make it together."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        load_library()
        self.name = f"control_{next(_numbers)}"
        self.rank = dist.get_rank(group)
        self._group = weakref.ref(group)
        self._own: dist.ProcessGroup | None = None
        self._closed = False
        # A store may outlive its group, and a later group have the same name.
        _times_watched[group.group_name] += 1
        prefix = f"neuroshard/{_times_watched[group.group_name]}"
        try:
            torch.ops.neuroshard.watch(self.name, group.group_name, prefix, dist.get_rank() == 0,
                                       silence(), timeout_of(group).total_seconds())
        except RuntimeError as error:
            raise GroupError(first_line(error)) from None
        try:
            self._meet(group)
            self._own = self.new_group()
            torch.ops.neuroshard.watch_connect(self.name, self._own.group_name)
        except BaseException:
            self.close()
            raise
        # Exit handlers close what is open then.
        weakref.finalize(group, self._end_with_group).atexit = False

    def _meet(self, group: dist.ProcessGroup) -> None:
        """Waits for all ranks without a limit. If one is gone the exchange fails on the others."""
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
        """A group of the same ranks for our collectives alone.

        Ranks come here within moments of each other, so making it has a short timeout; the
        group itself has the one of the process group."""
        group = self._group()
        if self._own:
            set_group_count(max(self.gather_numbers(group_count())))
        ranks = dist.get_process_group_ranks(group)
        try:
            own = dist.new_group(ranks, backend=backend, use_local_synchronization=True,
                                 timeout=connecting_limit(len(ranks)))
            _set_timeout(timeout_of(group), own)
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
        """Why the group has ended; "" while it runs."""
        return torch.ops.neuroshard.cause_of_end(self.name)

    def require_going(self) -> None:
        if cause := self.cause():
            raise GroupError(cause)

    def fail(self, error: BaseException, what: str) -> None:
        """Ends the group after an error of torch's collectives and raises a GroupError with the
        cause, which may be that a rank is gone."""
        torch.ops.neuroshard.end_group_after(self.name,
                                             f"rank {self.rank}: {what}: {first_line(error)}")
        raise GroupError(self.cause()) from error

    def report(self, kind: type[BaseException], error: BaseException) -> None:
        """Tells the other ranks that this program ends with an error. If the error is the
        consequence of another, prints that one to stderr."""
        text = f"rank {self.rank}: its program ended with {kind.__name__}: {first_line(error)}"
        end = (torch.ops.neuroshard.end_group_after
               if issubclass(kind, (RuntimeError, OSError)) else torch.ops.neuroshard.end_group)
        end(self.name, text)
        cause = self.cause()
        if first_line(error) not in cause and cause not in str(error):
            print(f"neuroshard: rank {self.rank}: the group has ended: {cause}", file=sys.stderr,
                  flush=True)

    def _end_with_group(self) -> None:
        """Leaves when the process group is destroyed; if an error is on its way, with that."""
        kind, error, _ = sys.exc_info()
        if error is not None and not is_forked():
            self.report(kind, error)
        self.close()

    def close(self) -> None:
        """Later calls do nothing."""
        if not self._closed and not is_forked():
            self._closed = True
            torch.ops.neuroshard.unwatch(self.name)


def group_count() -> int:
    """The number of groups that this rank has made, from which torch derives the name of the next
    one. Ranks with different counts would wait for each other under different names, so they agree
    on the largest count first."""
    return dist.distributed_c10d._world.group_count


def set_group_count(count: int) -> None:
    dist.distributed_c10d._world.group_count = count


def connecting_limit(ranks: int) -> timedelta:
    """How long ranks may take to connect to each other."""
    return timedelta(seconds=10 + 0.1 * ranks)


def timeout_of(group: dist.ProcessGroup) -> timedelta:
    """How long collectives of a group may take."""
    device = torch.device("cuda" if dist.get_backend(group) == "nccl" else "cpu")
    return group._get_backend(device).options._timeout


def watched_group_of(group: dist.ProcessGroup | None) -> WatchedGroup:
    """The watched group of a process group. All ranks make it together at the first call."""
    if is_forked():
        raise GroupError("this process was forked from one that neuroshard.distributed runs in; "
                         "start it with the method \"spawn\", or use it for data alone")
    group = group or dist.group.WORLD
    if group not in _open:
        watch_the_end()
        _open[group] = WatchedGroup(group)
    return _open[group]


def explain(error: BaseException, group: dist.ProcessGroup | None) -> str:
    """Why collectives of the group fail with `error`: a rank that has gone, or the error."""
    if group is None and not dist.is_initialized():
        return first_line(error)
    try:
        watched = watched_group_of(group)
    except GroupError as without:
        return str(without)
    torch.ops.neuroshard.end_group_after(watched.name, f"rank {watched.rank}: {first_line(error)}")
    return watched.cause()


def watch_the_end() -> None:
    """Installs a hook that tells the group when this program ends with an error."""
    if _owner:
        return
    _owner.append(os.getpid())
    previous = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, trace: object) -> None:
        previous(kind, error, trace)
        if is_forked():
            return
        torch.ops.neuroshard.end_process_after_exit(EXIT_S)
        for watched in list(_open.values()):
            watched.report(kind, error)

    sys.excepthook = report


@atexit.register
def _close_all() -> None:
    """Threads of open groups must not outlive the interpreter."""
    if is_forked():
        return
    for watched in list(_open.values()):
        if watched.cause():
            torch.ops.neuroshard.end_process_after_exit(EXIT_S)
        watched.close()
