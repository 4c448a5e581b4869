"""What this host says of itself: its boot, its ranks, its processor."""

from __future__ import annotations

import os


def boot_id() -> str:
    """Is equal for all processes on this host, and tells hosts of the same name apart."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def local_ranks() -> int:
    """Ranks on this host, as torchrun says."""
    try:
        return max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    except ValueError:
        return 1


def processor_model() -> str:
    """The processor's name; "" if the system does not say."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return next((line.split(":", 1)[1].strip() for line in file
                         if line.startswith("model name")), "")
    except OSError:
        return ""
