"""Runs neuroshard.collect.communication on this machine for several numbers of devices.

usage: python -m neuroshard.collect.sweep --devices 2,3,4,6,8 --out FILE [OPTION...]

Further options go to each run. All of them add to one file; started again, it goes on
where it was."""

import argparse
import re
import subprocess
import sys

from neuroshard.collect.communication import Parser


def device_counts(text):
    counts = text.split(",")
    if not all(re.fullmatch("[0-9]{1,5}", count) and 2 <= int(count) <= 65536
               for count in counts):
        raise argparse.ArgumentTypeError(
            f"expected numbers in [2, 65536], such as 2,3,4, got: {text!r}")
    return [int(count) for count in counts]


def run_one(devices, options):
    """The exit code of one collection; Ctrl-C reaches it as well, so it is waited for."""
    process = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone",
         f"--nproc-per-node={devices}", "-m", "neuroshard.collect.communication", "--resume",
         *options])
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass


def main():
    parser = Parser(prog="neuroshard.collect.sweep", description=__doc__.split("\n")[0])
    parser.add_argument("--devices", type=device_counts, required=True,
                        help="numbers of ranks, one collection for each, such as 2,3,4,6,8")
    parser.add_argument("--out", required=True, help="the safetensors file to write or add to")
    arguments, options = parser.parse_known_args()
    for devices in arguments.devices:
        print(f"== {devices} devices", flush=True)
        code = run_one(devices, ["--out", arguments.out, *options])
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
