"""From predicted and measured steps to a machine file: a scale for each term of the objective, and the
fixed part of a step. What a step takes with scaled terms, the planner says."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from neuroshard._machine_file import TERMS
from neuroshard.calibration._measure import Steps
from neuroshard.results import Breakdown

LEAST_SCALE = 1e-3
RATIOS = [2.0 ** (power / 4) for power in range(-16, 17)]
KERNELS = {"forward": ("lookup",), "backward": ("sort", "update")}
EXCHANGES = {"input": ("ids_exchange",), "forward_communication": ("results_exchange",),
             "backward_communication": ("gradients_exchange", "norm_exchange")}


@dataclass(frozen=True)
class Run:
    """One plan: by term pairs of predicted and measured milliseconds (of each rank for kernels, else
    one; none if the engine does not tell its terms), and its steps' median. skew: how much later than the first its last rank starts to send
    results, over the time of their exchange. predict: milliseconds of a step, by the terms' scales."""

    model: int
    plan: str
    pairs: dict[str, list[tuple[float, float]]]
    step_ms: float
    skew: float
    predict: Callable[[Mapping[str, float]], float]


@dataclass(frozen=True)
class Fit:
    """A step is step_fixed and what it takes with each term's prediction times its scale."""

    scales: dict[str, float]
    step_fixed: float

    def step(self, run: Run) -> float:
        """Predicted, corrected."""
        return self.step_fixed + run.predict(self.scales)


def of_ranks(steps: Steps, term: str) -> list[float]:
    """Milliseconds of a step that each rank spends on a term."""
    phases = (KERNELS | EXCHANGES)[term]
    return [sum(rank[phase] for phase in phases) for rank in steps.phases]


def exchange_ms(steps: Steps, term: str) -> float:
    """Milliseconds of an exchange. Ids and gradients are timed on the slowest rank: all begin them
    together. To results ranks come from their kernels, and the first waits as much longer as the last
    waits less: the mean."""
    return (statistics.fmean if term == "forward_communication" else max)(of_ranks(steps, term))


def exposed_exchange_ms(steps: Steps) -> float:
    """What Breakdown.exchange_ms predicts: ids, and what the other exchanges add to the slowest
    kernels."""
    def added(kernels: str, exchange: str) -> float:
        alone, both = of_ranks(steps, kernels), of_ranks(steps, exchange)
        return max(map(sum, zip(alone, both))) - max(alone)

    return (exchange_ms(steps, "input") + added("forward", "forward_communication")
            + added("backward", "backward_communication"))


def skew_of(steps: Steps) -> float:
    lookups, waits = of_ranks(steps, "forward"), of_ranks(steps, "forward_communication")
    return (max(lookups) - min(lookups)) / max(statistics.fmean(waits), 1e-6)


def run_of(model: int, plan: str, predicted: Breakdown, steps: Steps,
           predict: Callable[[Mapping[str, float]], float]) -> Run:
    step_ms = statistics.median(steps.step)
    if not steps.phases[0]:
        return Run(model, plan, {}, step_ms, 0.0, remembered(predict))

    def kernels(term: str) -> list[tuple[float, float]]:
        times = [getattr(device, f"{term}_ms") for device in predicted.devices]
        return list(zip(times, of_ranks(steps, term)))

    def exchange(term: str) -> list[tuple[float, float]]:
        slowest = max(getattr(device, f"{term}_ms") for device in predicted.devices)
        return [(slowest, exchange_ms(steps, term))]

    pairs = {term: kernels(term) if term in KERNELS else exchange(term) for term in TERMS}
    return Run(model, plan, pairs, step_ms, skew_of(steps), predict)


def remembered(predict: Callable[[Mapping[str, float]], float]
               ) -> Callable[[Mapping[str, float]], float]:
    """The same, which asks once for the same scales."""
    known: dict[tuple[float, ...], float] = {}

    def ask(scales: Mapping[str, float]) -> float:
        key = tuple(scales[term] for term in TERMS)
        if key not in known:
            known[key] = predict(scales)
        return known[key]

    return ask


def fit_line(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """(scale, fixed part) of the line with the least squares of relative errors; its fixed part is not
    negative, its scale above 0."""
    pairs = [(p, m) for p, m in pairs if p > 0 and m > 0]
    if not pairs:
        return 1.0, 0.0
    # Divided by the measured time: 1 = scale * a + fixed * b.
    a, b = [p / m for p, m in pairs], [1 / m for _, m in pairs]
    aa, bb, ab = (sum(x * y for x, y in zip(*both)) for both in ((a, a), (b, b), (a, b)))
    determinant = aa * bb - ab * ab
    if determinant > 1e-12 * aa * bb:
        scale = (sum(a) * bb - sum(b) * ab) / determinant
        fixed = (sum(b) * aa - sum(a) * ab) / determinant
        if scale >= LEAST_SCALE and fixed >= 0:
            return scale, fixed
        if scale < LEAST_SCALE:
            return LEAST_SCALE, sum(b) / bb
    return sum(a) / aa, 0.0


def fit_scale(pairs: Iterable[tuple[float, float]]) -> float:
    """The median of measured over predicted. A fixed part as well would fit single terms better and
    steps worse: plans of a model differ little in a term beside what it is measured to spread, which
    makes lines too flat, and then differences between plans too small."""
    ratios = [measured / predicted for predicted, measured in pairs if predicted > 0 and measured > 0]
    return max(LEAST_SCALE, statistics.median(ratios)) if ratios else 1.0


def fit_steps(runs: Sequence[Run]) -> Fit:
    """For an engine that does not tell its terms: one scale for kernels, one for exchanges, and the
    fixed part, with the least squares of the relative errors of steps. The ratio of the two scales is
    one of RATIOS."""
    def fit_to(ratio: float) -> Fit:
        relative = {term: 1.0 if term in KERNELS else ratio for term in TERMS}
        apart = Fit(relative, 0.0)
        scale, fixed = fit_line((apart.step(run), run.step_ms) for run in runs)
        return Fit({term: scale * one for term, one in relative.items()}, fixed)

    def loss(fitted: Fit) -> float:
        return sum(error ** 2 for error in errors_of(fitted, runs))

    return min(map(fit_to, RATIOS), key=loss)


def fit(runs: Sequence[Run]) -> Fit:
    """Scales of the terms by themselves, then one line from what they give to the steps. Exchanges of
    results count in that half of the plans whose ranks come to them most together."""
    if not runs[0].pairs:
        return fit_steps(runs)
    together = sorted(runs, key=lambda run: run.skew)[:(len(runs) + 1) // 2]
    apart = Fit({term: fit_scale(
        pair for run in (together if term == "forward_communication" else runs)
        for pair in run.pairs[term]) for term in TERMS}, 0.0)
    scale, fixed = fit_line((apart.step(run), run.step_ms) for run in runs)
    return Fit({term: scale * one for term, one in apart.scales.items()}, fixed)


def errors_of(fitted: Fit, runs: Sequence[Run]) -> list[float]:
    """Relative errors of the steps."""
    return [abs(fitted.step(run) / run.step_ms - 1) for run in runs]


UNCORRECTED = Fit(dict.fromkeys(TERMS, 1.0), 0.0)


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
