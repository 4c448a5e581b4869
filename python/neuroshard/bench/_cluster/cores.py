"""A share of this machine's cores for each rank, as a control group of Linux.

Without it, a rank with less work than others lends them its cores, which ranks of a cluster cannot: a
plan that loads them unevenly would cost too little."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

RANK_GROUPS = "NEUROSHARD_RANK_CORES"  # of a rank: the path of its group without its number
# As short as the kernel allows, so that messages do not wait long for a rank's next turn.
LEAST_US = 1000
PATIENCE_S = 5.0
# Where groups are made, and what limits them, as cgroup v1 and v2 have it (v2 has not been run).
Limits = Callable[[int, int], dict[str, str]]
ROOTS: list[tuple[Path, Limits]] = [
    (Path("/sys/fs/cgroup/cpu"), lambda quota, period: {
        "cpu.cfs_period_us": str(period), "cpu.cfs_quota_us": str(quota)}),
    (Path("/sys/fs/cgroup"), lambda quota, period: {"cpu.max": f"{quota} {period}"})]


class Cores:
    """Equal shares of the cores that this process may use, until the end of a with block."""

    def __init__(self, ranks: int) -> None:
        self.share = len(os.sched_getaffinity(0)) / ranks
        self.ranks = ranks
        self._groups: list[Path] = []
        self._path: Path | None = None

    def __enter__(self) -> Cores:
        for root, limits in ROOTS:
            try:
                self._make(root / f"neuroshard{os.getpid()}", limits)
                return self
            except OSError:
                self.close()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make(self, path: Path, limits: Limits) -> None:
        period = max(2 * LEAST_US, round(LEAST_US / self.share))
        for rank in range(self.ranks):
            group = Path(f"{path}-{rank}")
            group.mkdir()
            self._groups.append(group)
            for name, value in limits(round(self.share * period), period).items():
                # Opened for writing alone: a hierarchy without the file makes none.
                with open(group / name, "r+") as file:
                    file.write(value)
        self._path = path

    @property
    def are_apart(self) -> bool:
        """Whether each rank has its own share; control groups may not be there, or not allowed."""
        return self._path is not None

    def environment(self) -> dict[str, str]:
        """Variables of the ranks' processes."""
        return {RANK_GROUPS: str(self._path)} if self._path else {}

    def close(self) -> None:
        """Removes the groups. Their processes have been ended, and may take a moment to go."""
        limit = time.monotonic() + PATIENCE_S
        while self._groups:
            try:
                self._groups[-1].rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                if time.monotonic() < limit:
                    time.sleep(0.02)
                    continue
            self._groups.pop()


def join() -> None:
    """Moves this process, a rank that torchrun has started, into its group."""
    if path := os.environ.get(RANK_GROUPS):
        (Path(f"{path}-{os.environ['RANK']}") / "cgroup.procs").write_text(str(os.getpid()))
