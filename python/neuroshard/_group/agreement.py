"""Agreement of the ranks of a process group: an error on one rank is raised on all.

No rank waits for one that failed: each raises the same error, which names the failed rank."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch.distributed as dist

from neuroshard import _fields
from neuroshard._group.host import boot_id
from neuroshard._group.watched_group import watched_group_of
from neuroshard.errors import GroupError

T = TypeVar("T")


def rank_of(group: dist.ProcessGroup | None) -> int:
    """The rank within the group; 0 without torch.distributed. Raises a TypeError for what is no group."""
    _require_group(group)
    return dist.get_rank(group) if dist.is_initialized() else 0


def size_of(group: dist.ProcessGroup | None) -> int:
    """Ranks of the group; 1 without torch.distributed. Raises a TypeError for what is no group."""
    _require_group(group)
    return dist.get_world_size(group) if dist.is_initialized() else 1


def _require_group(group: object) -> None:
    # Of new_group() ranks outside of the group get a value of their own, which torch's functions know.
    if group is not None and not isinstance(group, dist.ProcessGroup) and group != dist.GroupMember.NON_GROUP_MEMBER:
        raise TypeError("process_group: expected a group of torch.distributed, as new_group() gives it, or None, got: "
                        f"{_fields.shown(group)}")


def gather(value: T, group: dist.ProcessGroup | None) -> list[T]:
    """The values of all ranks, in rank order, on every rank. Raises a GroupError with the cause,
    the same everywhere, if ranks are gone."""
    if size_of(group) == 1:
        return [value]
    everyone = watched_group_of(group).gather_bytes(pickle.dumps(value))
    return [pickle.loads(data) for data in everyone]


def attempt(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """(result of work(), None), or (None, the exception it raised)."""
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001, the other ranks must learn of any error
        return None, error


def together(work: Callable[[], T], group: dist.ProcessGroup | None, what: str,
             ranks: Sequence[int] | None = None) -> T | None:
    """Runs work() on the given ranks (default: all) and returns its own result.

    If it failed anywhere, raises on all ranks: on the rank itself its own error, elsewhere a
    GroupError that names the first such rank and its error."""
    mine = ranks is None or rank_of(group) in ranks
    result, error = attempt(work) if mine else (None, None)
    texts = gather(f"{type(error).__name__}: {error}" if error else None, group)
    if error:
        raise error
    for rank, text in enumerate(texts):
        if text is not None:
            raise GroupError(f"rank {rank}: {what} failed: {text}")
    return result


def require_same(values: Mapping[str, str], group: dist.ProcessGroup | None, advice: str) -> None:
    """Raises a GroupError on all ranks unless every value is the same on all of them."""
    everyone = gather(dict(values), group)
    for name, expected in everyone[0].items():
        for rank, theirs in enumerate(everyone):
            if theirs.get(name) != expected:
                raise GroupError(f"rank {rank} has another {name} than rank 0 "
                                 f"({theirs.get(name)}, not {expected}); {advice}")


def host_leaders(group: dist.ProcessGroup | None) -> list[int]:
    """The first rank of each host."""
    hosts = gather(f"{socket.gethostname()}:{boot_id()}", group)
    return [rank for rank, host in enumerate(hosts) if host not in hosts[:rank]]
