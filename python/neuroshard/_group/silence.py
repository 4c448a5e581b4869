"""Time without a heartbeat after which a rank of a watched group counts as lost."""

from __future__ import annotations

import os

SILENCE_S = 20.0


def silence() -> float:
    """Seconds without a heartbeat after which a process counts as gone; at least 5."""
    text = os.environ.get("NEUROSHARD_SILENCE_S", "")
    try:
        seconds = float(text) if text else SILENCE_S
    except ValueError:
        seconds = 0
    if not 5 <= seconds <= 1e6:
        raise ValueError("NEUROSHARD_SILENCE_S: expected a number of seconds from 5, found "
                         f"{text!r}")
    return seconds
