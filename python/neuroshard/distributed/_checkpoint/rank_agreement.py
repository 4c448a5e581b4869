"""A save or load of a checkpoint by all ranks of a group, with one error for all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException

from neuroshard._group.agreement import attempt, gather, rank_of, size_of
from neuroshard._group.watched_group import explain, first_line
from neuroshard.errors import CheckpointError, Error, GroupError

T = TypeVar("T")


class Run:
    """One save or load by the ranks of a group: an error on one rank is raised on all. errand:
    what the ranks do, for messages."""

    def __init__(self, group: dist.ProcessGroup | None, errand: str) -> None:
        self.group = group
        self.errand = errand
        self.ranks = size_of(group)
        self.lost = False

    def gather(self, value: T) -> list[T]:
        try:
            return gather(value, self.group)
        except GroupError as error:
            self._raise_lost(error)

    def on_each(self, action: Callable[[], T]) -> T:
        """Runs an action on all ranks."""
        result, error = attempt(action)
        self._raise_first(dict(enumerate(self.gather(cause_of(error)))))
        return result

    def on_first(self, action: Callable[[], T]) -> T:
        """Runs an action on rank 0 and gives all ranks its result."""
        mine = (None, "")
        if rank_of(self.group) == 0:
            result, error = attempt(action)
            mine = (result, cause_of(error))
        result, failure = self.gather(mine)[0]
        if failure:
            raise CheckpointError(f"{self.errand}: {failure}")
        return result

    def checkpoint(self, action: Callable[..., Any]) -> None:
        """Runs torch.distributed.checkpoint."""
        options = {"process_group": self.group} if dist.is_initialized() else {"no_dist": True}
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*assuming the intent is to")
                action(**options)
        except CheckpointException as error:
            failures = {rank: cause_of(cause) for rank, (cause, _) in error.failures.items()}
            self._raise_first(failures)
        except RuntimeError as error:
            self._raise_lost(error)

    def compare(self, names: Iterable[str], option: str) -> None:
        """Raises unless all ranks called with the same errand, names and option; otherwise their
        collectives would not match, or each would have a part of what another has. option: name=value."""
        first, *others = self.gather((self.errand, sorted(names), option))
        for rank, other in enumerate(others, start=1):
            if other != first:
                mine, theirs = (f"{errand} with {', '.join([*listed, given])}"
                                for errand, listed, given in (first, other))
                raise CheckpointError(f"rank 0 is {mine}, but rank {rank} is {theirs}; all ranks must call with the same "
                                      f"path, names and {option.partition('=')[0]}")

    def _raise_first(self, failures: Mapping[int, str]) -> None:
        """Raises the first failure on all ranks; names the rank unless all failed alike."""
        failed = {rank: failure for rank, failure in failures.items() if failure}
        if not failed:
            return
        rank, failure = min(failed.items())
        alike = len(failed) == self.ranks and len(set(failed.values())) == 1
        where = "" if alike else f"rank {rank}: "
        raise CheckpointError(f"{self.errand}: {where}{failure}")

    def _raise_lost(self, error: Exception) -> NoReturn:
        self.lost = True
        cause = first_line(error) if isinstance(error, GroupError) else explain(error, self.group)
        raise CheckpointError(f"{self.errand}: {cause}") from error


def cause_of(error: BaseException | None) -> str:
    """One line about an error; it names the type of errors whose text may not tell."""
    if error is None:
        return ""
    text = first_line(error)
    plain = isinstance(error, (Error, OSError, ValueError))
    return text if plain else f"{type(error).__name__}: {text}"
