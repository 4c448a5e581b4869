"""Merges files of measured exchanges, such as those of several numbers of devices.

usage: python -m neuroshard.collect.merge FILE... -o FILE"""

import sys

from neuroshard._arguments import Parser
from neuroshard.collect._errors import CollectError
from neuroshard.collect._samples import samples
from neuroshard.collect._samples.output import check_output


def merge(files):
    """One file of the rows of several, `files` as (path, SampleFile)."""
    first_path, first = files[0]
    merged = samples.SampleFile(dict(first.identity), [], [])
    for path, file in files:
        samples.check_same(path, file.identity, first.identity)
        offset = len(merged.samples)
        seen = set(map(merged.key, merged.samples))
        for sample in file.samples:
            topology = file.topologies[sample.topology]
            if file.key(sample) in seen:
                raise CollectError(f"{path}: has draw {sample.draw} of {sample.devices} devices, "
                                   "which a file before it has as well")
            sample.topology = merged.topology_index(topology)
            sample.repeat_of += offset if sample.repeat_of >= 0 else 0
            merged.samples.append(sample)
    return merged


def main():
    parser = Parser(prog="neuroshard.collect.merge",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", help="files of neuroshard.collect.communication")
    parser.add_argument("-o", "--out", required=True, help="the file to write")
    arguments = parser.parse_args()
    try:
        check_output(arguments.out)
        merged = merge([(path, samples.read(path)) for path in arguments.files])
        merged.write(arguments.out)
    except CollectError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.out}: {len(merged.samples)} samples, {len(merged.topologies)} topologies")
    return 0


if __name__ == "__main__":
    sys.exit(main())
