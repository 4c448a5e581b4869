"""Fits latency and bandwidth of each level to measured exchanges.

usage: python -m neuroshard.collect.fit FILE [-o FIT.json]"""

import json
import sys
from pathlib import Path

import numpy as np

from neuroshard._arguments import Parser
from neuroshard.collect._errors import CollectError
from neuroshard.collect._samples import samples
from neuroshard.collect._samples.link_fit import fit_links
from neuroshard.collect._samples.output import check_output, write_beside
from neuroshard.collect._samples.rejection import rejections


def with_links(topology, links):
    """A topology's levels as a workload's JSON has them."""
    figures = {link.name: link.to_json() for link in links}
    return {"levels": [{**level, **figures[level["name"]]} for level in topology["levels"]]}


def attribute(topology):
    """The levels in the syntax of a neuroshard.topology in the IR."""
    levels = [f'#neuroshard.level<"{level["name"]}", groups = {level["groups"]}, bandwidth = '
              f'{level["bandwidth_gb_per_s"]}, latency = {level["latency_us"]}>'
              for level in topology["levels"]]
    return f"[{', '.join(levels)}]"


def repeat_error(file):
    """Mean over the repeats of |a - b| / their mean, per device; None without repeats."""
    rejected = rejections(file.samples)
    errors = []
    for row, sample in enumerate(file.samples):
        if sample.repeat_of < 0 or rejected[row] or rejected[sample.repeat_of]:
            continue
        first = file.samples[sample.repeat_of].times_ms
        errors.append(2 * np.abs(sample.times_ms - first) / (sample.times_ms + first))
    return float(np.concatenate(errors).mean()) if errors else None


def report(file, path):
    fitted = fit_links(file.accepted(), file.topologies)
    if not fitted:
        raise CollectError(f"{path}: too few accepted samples to fit anything; collect more")
    links, error = fitted
    print(f"{path}: {len(file.samples)} samples, {sum(rejections(file.samples))} rejected")
    for link in links:
        print(f"  {link.name:10} latency {link.latency_us:9.1f} us   bandwidth "
              f"{link.bandwidth_gb_per_s:8.3f} GB/s")
    for topology in file.topologies:
        print(f"  levels {attribute(with_links(topology, links))}")
    print(f"  mean relative error of the closed form {error:.1%}")
    floor = repeat_error(file)
    if floor is not None:
        print(f"  the same exchanges measured again differ by {floor:.1%}")
    return {"backend": file.identity["backend"], "device_class": file.identity["device_class"],
            "links": [link.to_json() for link in links], "mean_relative_error": error,
            "repeat_error": floor,
            "topologies": [with_links(topology, links) for topology in file.topologies]}


def main():
    parser = Parser(prog="neuroshard.collect.fit",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("file", help="a file of neuroshard.collect.communication")
    parser.add_argument("-o", "--out", help="also write the figures there, as JSON; "
                        "`topologies` has the levels that a workload's topology takes")
    arguments = parser.parse_args()
    try:
        if arguments.out is not None:
            check_output(arguments.out, [arguments.file])
        result = report(samples.read(arguments.file), arguments.file)
        if arguments.out is not None:
            text = json.dumps(result, indent=2) + "\n"
            write_beside(arguments.out, lambda one: Path(one).write_text(text, encoding="utf-8"))
    except CollectError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
