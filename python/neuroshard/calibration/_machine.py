"""From predicted and measured steps to a machine file: a scale and a fixed part for each term of the
objective, and the fixed part of a step."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from neuroshard.calibration._measure import Steps
from neuroshard.results import Breakdown

SCHEMA = "neuroshard.machine.v1"
LEAST_SCALE = 1e-3
TERMS = ("input", "forward", "forward_communication", "backward_communication", "backward")
# A rank's kernels; what travels is timed on the rank that waits least for others.
KERNELS = {"forward": ("lookup",), "backward": ("sort", "update")}
EXCHANGES = {"input": ("ids_exchange",), "forward_communication": ("results_exchange",),
             "backward_communication": ("gradients_exchange", "norm_exchange")}


@dataclass(frozen=True)
class Run:
    """One plan: by term pairs of predicted and measured milliseconds (of each rank for kernels, else
    one), and its steps' median."""

    model: int
    plan: str
    pairs: dict[str, list[tuple[float, float]]]
    step_ms: float


@dataclass(frozen=True)
class Line:
    """measured = scale * predicted + fixed."""

    scale: float
    fixed: float

    def at(self, predicted: float) -> float:
        return self.scale * predicted + self.fixed if predicted > 0 else 0.0


@dataclass(frozen=True)
class Fit:
    terms: dict[str, Line]
    step_fixed: float

    def step(self, run: Run) -> float:
        """Predicted, corrected."""
        return self.step_fixed + sum(
            max((self.terms[term].at(predicted) for predicted, _ in run.pairs[term]), default=0.0)
            for term in TERMS)


def run_of(model: int, plan: str, predicted: Breakdown, steps: Steps) -> Run:
    def kernels(term: str) -> list[tuple[float, float]]:
        return [(getattr(device, f"{term}_ms"), sum(rank[phase] for phase in KERNELS[term]))
                for device, rank in zip(predicted.devices, steps.phases)]

    def exchange(term: str) -> list[tuple[float, float]]:
        measured = sum(min(rank[phase] for rank in steps.phases) for phase in EXCHANGES[term])
        return [(max(getattr(device, f"{term}_ms") for device in predicted.devices), measured)]

    pairs = {term: kernels(term) if term in KERNELS else exchange(term) for term in TERMS}
    return Run(model, plan, pairs, statistics.median(steps.step))


def fit_line(pairs: Iterable[tuple[float, float]]) -> Line:
    """The line with the least squares of relative errors; its fixed part is not negative."""
    pairs = [(p, m) for p, m in pairs if p > 0 and m > 0]
    if not pairs:
        return Line(1.0, 0.0)
    # Divided by the measured time: 1 = scale * a + fixed * b.
    a, b = [p / m for p, m in pairs], [1 / m for _, m in pairs]
    aa, bb, ab = (sum(x * y for x, y in zip(*both)) for both in ((a, a), (b, b), (a, b)))
    determinant = aa * bb - ab * ab
    if determinant > 1e-12 * aa * bb:
        scale = (sum(a) * bb - sum(b) * ab) / determinant
        fixed = (sum(b) * aa - sum(a) * ab) / determinant
        if scale >= LEAST_SCALE and fixed >= 0:
            return Line(scale, fixed)
        if scale < LEAST_SCALE:
            return Line(LEAST_SCALE, sum(b) / bb)
    return Line(sum(a) / aa, 0.0)


def fit(runs: Sequence[Run]) -> Fit:
    terms = {term: fit_line(pair for run in runs for pair in run.pairs[term]) for term in TERMS}
    without = Fit(terms, 0.0)
    rest = statistics.median(run.step_ms - without.step(run) for run in runs)
    return Fit(terms, max(0.0, rest))


def errors_of(fitted: Fit, runs: Sequence[Run]) -> list[float]:
    """Relative errors of the steps."""
    return [abs(fitted.step(run) / run.step_ms - 1) for run in runs]


UNCORRECTED = Fit({term: Line(1.0, 0.0) for term in TERMS}, 0.0)


def left_out(runs: Sequence[Run], judge: Callable[[Fit, Sequence[Run]], list[float]]) -> list[float]:
    """What judge() says of each model's runs and the fit to those of the others."""
    models = sorted({run.model for run in runs})
    return [value for model in models for value in judge(
        fit([run for run in runs if run.model != model]),
        [run for run in runs if run.model == model])]


def ratios_of(fitted: Fit, runs: Sequence[Run]) -> list[float]:
    """Measured over predicted steps."""
    return [run.step_ms / fitted.step(run) for run in runs]


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Between which nine of ten ratios lie, 1 included: their 5 % and 95 % quantiles; of fewer than
    19 the least and the largest."""
    ordered = sorted(ratios)
    left = int(0.05 * (len(ordered) + 1))
    low, high = (ordered[left - 1], ordered[-left]) if left else (ordered[0], ordered[-1])
    return min(low, 1.0), max(high, 1.0)


def machine_file(fitted: Fit, bounds: tuple[float, float], cost_model: str, device_class: str,
                 devices: int, groups: int, measured: dict[str, object]) -> dict[str, object]:
    return {"schema": SCHEMA, "cost_model": cost_model, "device_class": device_class,
            "devices": devices, "groups": groups,
            "terms": {term: {"scale": line.scale, "fixed_ms": line.fixed}
                      for term, line in fitted.terms.items()},
            "step_fixed_ms": fitted.step_fixed,
            "step_interval": {"low": bounds[0], "high": bounds[1]}, "measured": measured}
