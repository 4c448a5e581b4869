"""Merges files of measured exchanges, such as those of several numbers of devices.

usage: python -m neuroshard.collect.merge FILE... -o FILE"""

import argparse
import sys

from neuroshard.collect._samples import samples
from neuroshard.collect._errors import CollectError


def main():
    parser = argparse.ArgumentParser(prog="neuroshard.collect.merge",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", help="files of neuroshard.collect.communication")
    parser.add_argument("-o", "--out", required=True, help="the file to write")
    arguments = parser.parse_args()
    try:
        merged = samples.merge([(path, samples.read(path)) for path in arguments.files])
        merged.write(arguments.out)
    except CollectError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.out}: {len(merged.samples)} samples, {len(merged.topologies)} topologies")
    return 0


if __name__ == "__main__":
    sys.exit(main())
