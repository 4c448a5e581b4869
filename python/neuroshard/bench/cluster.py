"""Runs a torchrun job on hosts that are emulated on this machine.

    python -m neuroshard.bench.cluster 2x4@200mbit train.py --epochs 1
    python -m neuroshard.bench.cluster 2x2@1gbit -m neuroshard.bench.plans -o plans.json

Each host is a network namespace with one card of this rate, each way, on a common switch, which its
ranks share. Each rank has its share of the machine's cores to itself, where control groups allow it.
What follows the cluster is as torchrun takes it. In the end it tells how many bytes each host has
sent to others. Needs root, ip, tc and nsenter."""

from __future__ import annotations

import argparse
import signal
import sys

from neuroshard._arguments import Parser
from neuroshard.bench._cluster.cores import Cores
from neuroshard.bench._cluster.launch import launch
from neuroshard.bench._cluster.network import Network, NetworkError
from neuroshard.bench._cluster.shape import Shape, parse_shape


def shape_argument(text: str) -> Shape:
    try:
        return parse_shape(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run_on(shape: Shape, program: list[str]) -> int:
    """Exit code of the job; tells what it sent on stderr."""
    try:
        with Cores(shape.hosts * shape.ranks) as cores, Network(shape) as network:
            if not cores.are_apart:
                print("ranks share all cores: control groups of Linux may not be made here",
                      file=sys.stderr)
            code = launch(network, cores, program)
            for host, sent in enumerate(network.sent_bytes()):
                print(f"host {host} sent {sent / 1e6:.3f} MB to others", file=sys.stderr)
            return code
    except NetworkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def main() -> None:
    parser = Parser(prog="python -m neuroshard.bench.cluster", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cluster", type=shape_argument, metavar="HOSTSxRANKS@RATE")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM",
                        help="a script or -m MODULE, with its arguments")
    options = parser.parse_args()
    if not options.program:
        parser.error("expected a script or -m MODULE after the cluster")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # hosts and ranks must not stay
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    sys.exit(run_on(options.cluster, options.program))


if __name__ == "__main__":
    main()
