"""Measures all-to-all exchanges between the ranks of a torch.distributed job.

usage: torchrun --nproc-per-node N -m neuroshard.collect.communication --out FILE

Run it on the machines that will train, with as many ranks as devices. It draws exchanges
like those of sharded embedding tables (input, forward, backward; balanced and not; devices
that start late), times each several times and writes their medians. Ctrl-C keeps what is
measured; --resume goes on. Several numbers of devices can share a file: run once for each
with --resume, or put files together with neuroshard.collect.merge."""

import argparse
import os
import sys

from neuroshard._arguments import whole
from neuroshard._printable import printable
from neuroshard.collect._errors import CollectError
from neuroshard.collect._measuring.machine import DEVICE_CLASSES


class Parser(argparse.ArgumentParser):
    """Prints errors and help on rank 0 only, since every rank parses the same command line."""

    def error(self, message):
        if os.environ.get("RANK", "0") == "0":
            print(f"error: {printable(message)}; --help lists the options", file=sys.stderr)
        sys.exit(2)

    def print_help(self, file=None):
        if os.environ.get("RANK", "0") == "0":
            super().print_help(file)


def parse_arguments():
    parser = Parser(prog="neuroshard.collect.communication", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="the safetensors file to write")
    parser.add_argument("--samples", type=whole(1, 1000000), default=300,
                        help="exchanges to measure among this many devices (default 300)")
    parser.add_argument("--repeats", type=whole(0, 1000000),
                        help="how many of them to measure again at the end (default: a fifth)")
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), default=1,
                        help="seed of the drawn exchanges (default 1)")
    parser.add_argument("--resume", action="store_true",
                        help="add to FILE what it lacks; without this an existing file is an error")
    parser.add_argument("--backend", choices=("gloo", "nccl"),
                        help="default: nccl where there are GPUs, else gloo")
    parser.add_argument("--device-class", default="",
                        help="the planner's name for the devices (default: CPU for gloo, else "
                        "found from the GPU's name)")
    parser.add_argument("--timeout", type=whole(1, 1000000), default=120,
                        help="seconds after which a rank that does not answer ends the "
                        "collection (default 120)")
    arguments = parser.parse_args()
    if arguments.device_class not in ("", *DEVICE_CLASSES):
        parser.error(f"--device-class: unknown device class '{arguments.device_class}'; known: "
                     f"{', '.join(DEVICE_CLASSES)}")
    if arguments.repeats is None:
        arguments.repeats = arguments.samples // 5
    if arguments.repeats > arguments.samples:
        parser.error(f"--repeats ({arguments.repeats}) cannot be more than --samples "
                     f"({arguments.samples})")
    return arguments


def main():
    arguments = parse_arguments()
    rank = os.environ.get("RANK")
    if rank is None or "LOCAL_RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "0")) < 2:
        if rank in (None, "0"):
            print("error: needs at least 2 ranks; start it with torchrun --nproc-per-node N -m "
                  "neuroshard.collect.communication", file=sys.stderr)
        return 2
    try:
        # Imported late, as it takes seconds.
        from neuroshard.collect._measuring import job
    except ImportError as error:
        if rank == "0":
            print(f"error: {error}; install torch, numpy and safetensors", file=sys.stderr)
        return 1
    try:
        return job.run(arguments)
    except CollectError as error:
        if job.is_speaker():
            print(f"error: {error}", file=sys.stderr, flush=True)
    # Leaving the group in order could wait for a rank that is gone.
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
