"""Fits the links of GPUs to public sweeps of all-to-alls, and judges the fit by leaving GPUs out.

usage: python -m neuroshard.collect.gpu_links models/data/gpu_measurements.csv"""

import sys

import numpy as np

from neuroshard._arguments import Parser
from neuroshard.collect._samples.gpu_sweeps import (NOMINAL, errors, fit, left_out_errors,
                                                    read_sweep)


def report(sweep):
    figures, left_out = fit(sweep), left_out_errors(sweep)
    found = errors(sweep, figures)
    print(f"ramp {figures.ramp_us:.1f} us at {figures.ramp_at_us:.1f} us, own part at "
          f"{figures.own_gb_per_s:.0f} GB/s")
    print(f"{'GPU':<16} {'rows':>5} {'latency us':>11} {'GB/s':>6} {'of nominal':>11} "
          f"{'median error':>13} {'left out':>9}")
    for index, name in enumerate(figures.names):
        own = found[sweep.gpu == index]
        print(f"{name:<16} {len(own):>5} {figures.latency_us[index]:>11.1f} "
              f"{figures.gb_per_s[index]:>6.0f} {figures.gb_per_s[index] / NOMINAL[name]:>11.2f} "
              f"{np.median(own):>13.1%} {np.median(left_out[name]):>9.1%}")
    print(f"median error of all rows {np.median(found):.1%}, of GPUs left out "
          f"{np.median(np.concatenate(list(left_out.values()))):.1%}")


def main():
    parser = Parser(prog="neuroshard.collect.gpu_links", description=__doc__.split("\n")[0])
    parser.add_argument("file", help="models/data/gpu_measurements.csv")
    try:
        report(read_sweep(parser.parse_args().file))
    except (OSError, KeyError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
