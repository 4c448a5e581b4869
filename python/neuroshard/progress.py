"""How far a search is, told to a function or shown on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

SHOW_AFTER_S = 1.0


class Progress(NamedTuple):
    """seconds since the start; share in [0, 1], an estimate; the best cost so far, in
    milliseconds per step (0: none yet); what is being done."""

    seconds: float
    share: float
    best_cost_ms: float
    phase: str


class Terminal:
    """Gives plan() what to call, and wipes the line it wrote at the end."""

    def __init__(self, progress: Callable[[Progress], object] | bool | None) -> None:
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            raise TypeError(f"progress: expected a function, True, False or None, "
                            f"got: {progress!r}")
        self._function = progress if callable(progress) else None
        shown = progress is True or (progress is None and _is_terminal())
        self._stream = sys.stderr if shown and self._function is None else None
        self._wrote = False

    def __enter__(self) -> Callable[[float, float, float, str], object] | None:
        if self._function is not None:
            function = self._function
            return lambda *values: function(Progress(*values))
        return self._show if self._stream is not None else None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._wrote and self._stream is not None:
            self._stream.write("\r\033[K")
            self._stream.flush()

    def _show(self, seconds: float, share: float, best_cost_ms: float, phase: str) -> None:
        if seconds < SHOW_AFTER_S or self._stream is None:
            return
        best = f", best {best_cost_ms:.3f} ms" if best_cost_ms > 0 else ""
        self._stream.write(f"\r\033[Kplanning: {100 * share:3.0f} % {phase}{best}, "
                           f"{seconds:.0f} s")
        self._stream.flush()
        self._wrote = True


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
