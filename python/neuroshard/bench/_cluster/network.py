"""Hosts as network namespaces of Linux: each has one card, of limited rate, on a common switch. The
processes of a host reach each other by its loopback, without a limit. Needs root, ip, tc and nsenter."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from neuroshard.bench._cluster.shape import Shape

CARD = "card"
NETWORK = "10.213"  # the hosts' own, which nothing outside reaches
# A bucket of two milliseconds lets one segment pass at any rate, and hides no burst.
BURST_MS, LEAST_BURST = 2, 20_000
TOOLS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux"}
LATENCY = "200ms"  # what a queue may hold before it drops


class NetworkError(RuntimeError):
    """The network cannot be made; the text says what is missing."""


class Network:
    """The hosts of a cluster, until the end of a with block."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._prefix = f"neuroshard{os.getpid()}"
        self._made: list[str] = []

    def __enter__(self) -> Network:
        if os.geteuid() != 0:
            raise NetworkError("an emulated cluster needs root, to make network namespaces; run it "
                               "as root or in a container that may (--privileged)")
        for tool, package in TOOLS.items():
            if not shutil.which(tool):
                raise NetworkError(f"an emulated cluster needs {tool}, which was not found; install "
                                   f"{package}")
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        while self._made:
            name = self._made.pop()
            kill_all_in(name)
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def _make(self) -> None:
        switch = self._add("switch")
        self._in(switch, "ip", "link", "add", "bridge", "type", "bridge")
        self._in(switch, "ip", "link", "set", "bridge", "up")
        for host in range(self.shape.hosts):
            name, port = self._add(f"host{host}"), f"port{host}"
            run("ip", "link", "add", CARD, "netns", name, "type", "veth",
                "peer", "name", port, "netns", switch)
            self._in(name, "ip", "addr", "add", f"{address(host)}/16", "dev", CARD)
            self._in(switch, "ip", "link", "set", port, "master", "bridge")
            # What a host sends, and what it is sent.
            for space, device in ((name, CARD), (switch, port)):
                self._in(space, "ip", "link", "set", device, "up")
                self._in(space, "tc", "qdisc", "add", "dev", device, "root", "tbf",
                         "rate", f"{self.shape.megabits:g}mbit", "burst", str(self._burst()),
                         "latency", LATENCY)

    def _burst(self) -> int:
        return max(LEAST_BURST, int(self.shape.megabits * 1e6 / 8 * BURST_MS / 1000))

    def _add(self, name: str) -> str:
        full = f"{self._prefix}{name}"
        run("ip", "netns", "add", full)
        self._made.append(full)
        self._in(full, "ip", "link", "set", "lo", "up")
        return full

    @staticmethod
    def _in(space: str, *command: str) -> str:
        return run("ip", "netns", "exec", space, *command)

    def command_on(self, host: int, *command: str) -> list[str]:
        """The command line that runs a command on a host. It still sees the machine's /sys, where
        `ip netns exec` would put one without control groups."""
        return ["nsenter", f"--net=/run/netns/{self._prefix}host{host}", *command]

    def sent_bytes(self) -> list[int]:
        """Bytes that each host has sent to others so far, with all headers."""
        return [int(self._in(f"{self._prefix}host{host}", "cat",
                             f"/sys/class/net/{CARD}/statistics/tx_bytes"))
                for host in range(self.shape.hosts)]


def kill_all_in(space: str) -> None:
    """Kills the processes of a host: those of a launcher that was killed itself stay, else."""
    listing = subprocess.run(["ip", "netns", "pids", space], check=False, capture_output=True,
                             text=True)
    for pid in listing.stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def address(host: int) -> str:
    return f"{NETWORK}.{host // 250}.{host % 250 + 1}"


def run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def is_possible() -> bool:
    """Whether this process may make network namespaces."""
    if os.geteuid() != 0 or not all(map(shutil.which, TOOLS)):
        return False
    name = f"neuroshard{os.getpid()}try"
    made = subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True)
    subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
    return made.returncode == 0 and Path("/proc/self/ns/net").exists()
