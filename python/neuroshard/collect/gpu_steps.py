"""Predicts whole training steps on GPUs that others have published, each left out of the fit.

usage: python -m neuroshard.collect.gpu_steps models/data/gpu_measurements.csv workloads"""

import sys

import numpy as np

from neuroshard._arguments import Parser
from neuroshard.collect._samples.published_steps import (FIGURES, HUGECTR, fit, left_out, parts_of,
                                                         predict, rank_correlation, read_steps)
from neuroshard.errors import Error

# Devices whose links inside a node we know from other kinds of machines than those of the steps.
# They are predicted by the fit to the others.
OTHER_LINKS = ("L40S", "H100-PCIe")


def groups_of(steps):
    """By name, the positions of steps that are fitted together: those of a model, or of an engine
    that has few of each."""
    groups = {}
    for at, step in enumerate(steps):
        key = step.model.name if step.model.form is HUGECTR else step.model.form.name
        groups.setdefault(key, []).append(at)
    return groups


def print_row(step, parts, predicted):
    own = parts.kernels_ms + parts.exchanges_ms
    print(f"{step.model.name:<19} {step.topology:<14} {step.batch:>7} "
          f"{'f16' if step.half else 'f32':>4} {own:>8.2f} {parts.dense_ms:>7.2f} "
          f"{step.published_ms:>10.2f} {predicted:>10.2f} {predicted / step.published_ms:>6.2f}")


def report(steps, parts):
    print(f"{'model':<19} {'devices':<14} {'batch':>7} {'type':>4} {'own, ms':>8} {'dense':>7} "
          f"{'published':>10} {'predicted':>10} {'ratio':>6}")
    for name, rows in groups_of(steps).items():
        fitted = [at for at in rows if steps[at].device_class not in OTHER_LINKS]
        ours, own = [steps[at] for at in fitted], [parts[at] for at in fitted]
        predicted = np.array(left_out(ours, own))
        published = np.array([one.published_ms for one in ours])
        for row in zip(ours, own, predicted):
            print_row(*row)
        figures = fit(ours[0].model.form, ours, own)
        for at in sorted(set(rows) - set(fitted)):
            print_row(steps[at], parts[at], predict(figures, parts[at]))
        factors = np.maximum(predicted / published, published / predicted)
        print(f"{name}: {', '.join(f'{one} {figures[one]:.2f}' for one in FIGURES if figures[one])}")
        print(f"{name}, left out: factor {np.median(factors):.2f} in the median, "
              f"{factors.max():.2f} at worst, rank correlation "
              f"{rank_correlation(predicted, published):.2f}\n")


def main():
    parser = Parser(prog="neuroshard.collect.gpu_steps", description=__doc__.split("\n")[0])
    parser.add_argument("file", help="models/data/gpu_measurements.csv")
    parser.add_argument("workloads", help="the folder of the models' workloads")
    given = parser.parse_args()
    try:
        steps = read_steps(given.file)
        report(steps, [parts_of(step, given.workloads) for step in steps])
    except (OSError, KeyError, ValueError, Error) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
