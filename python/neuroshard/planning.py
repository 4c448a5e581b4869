"""plan() and evaluate()."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Union

from neuroshard import _planner, fields
from neuroshard.costs import ModelChoice, model_for
from neuroshard.errors import InvalidProblem
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem, Target
from neuroshard.results import Breakdown, PlanResult, breakdown_of_plain, result_of_plain

ObjectiveKind = Literal["step", "published"]

MAX_THREADS = 1024
MAX_COUNT = 10**6
MAX_HORIZON = 1e15
MAX_DENSE_MS = 10**11


class Progress(NamedTuple):
    """seconds since the start; share of the search in [0, 1], an estimate; the best cost so
    far, in milliseconds per step; what is being done."""

    seconds: float
    share: float
    best_cost_ms: float
    phase: str


@dataclass(frozen=True)
class Objective(fields.Record):
    """From compute and communication to one number, in milliseconds.

    kind: "step", the time of a training step, or "published", the paper's. dense_bottom_ms:
    dense work that needs no embeddings, behind which the forward exchange hides. dense_rest_ms:
    all other dense work. pipeline_depth: batches in flight; from 2 on the ids of the next
    batch travel behind the step.
    """

    kind: ObjectiveKind = "step"
    dense_bottom_ms: float = 0
    dense_rest_ms: float = 0
    pipeline_depth: int = 1

    def __post_init__(self) -> None:
        self._choice("kind", ("step", "published"))
        self._number("dense_bottom_ms", "dense_rest_ms")
        self._whole("pipeline_depth")
        _at_least("Objective.dense_bottom_ms", self.dense_bottom_ms, 0, MAX_DENSE_MS)
        _at_least("Objective.dense_rest_ms", self.dense_rest_ms, 0, MAX_DENSE_MS)
        _at_least("Objective.pipeline_depth", self.pipeline_depth, 1, MAX_COUNT)


@dataclass(frozen=True, kw_only=True)
class PublishedSettings(fields.Record):
    """Settings of algorithm="published"; the defaults are the paper's."""

    candidates: int = 10
    beam_width: int = 3
    depth: int = 10
    grid_points: int = 11
    grid_begin: float = 1.0
    grid_end: float = 1.5

    def __post_init__(self) -> None:
        self._whole("candidates", "beam_width", "depth", "grid_points")
        self._number("grid_begin", "grid_end")
        for name, low in (("candidates", 1), ("beam_width", 1), ("depth", 0),
                          ("grid_points", 1)):
            _at_least(f"PublishedSettings.{name}", getattr(self, name), low, MAX_COUNT)
        _at_least("PublishedSettings.grid_begin", self.grid_begin, 0)
        _at_least("PublishedSettings.grid_end", self.grid_end, self.grid_begin)


@dataclass(frozen=True)
class WarmStart(fields.Record):
    """A plan in use. horizon_steps: steps for which the new plan will be used; a change pays
    when it saves more time over them than moving its bytes takes. tolerance: plans whose costs
    differ by less than this share are equally good, and the one that moves least is taken."""

    previous: Plan
    horizon_steps: float = 1e5
    tolerance: float = 0.02

    def __post_init__(self) -> None:
        self._record("previous", Plan)
        self._number("horizon_steps", "tolerance")
        if not 0 < self.horizon_steps <= MAX_HORIZON:
            raise ValueError("WarmStart.horizon_steps: expected a number above 0 and at most "
                             f"{MAX_HORIZON:g}, got: {self.horizon_steps}")
        if not 0 <= self.tolerance <= 1:
            raise ValueError("WarmStart.tolerance: expected a number in [0, 1], got: "
                             f"{self.tolerance}")


def plan(problem: ShardingProblem, *, cost_model: ModelChoice = "auto",
         objective: Union[ObjectiveKind, Objective] = "step", algorithm: str = "default",
         target: Target | None = None, deadline_s: float | None = None, seed: int = 0,
         threads: int = 0, warm_start: Union[Plan, WarmStart, None] = None,
         published: PublishedSettings | None = None,
         policy: str | os.PathLike[str] | None = None, policy_samples: int = 0,
         evaluation_budget: int = 0,
         progress: Callable[[Progress], object] | bool = True) -> PlanResult:
    """Decides where every piece of every table lives.

    cost_model: "auto" (the measured models of the devices, else the roofline), "roofline",
    "reference" (of the published tasks), a path of a .safetensors model file or a list of
    them, or an object derived from CostModel. objective: "step", "published" or an Objective.
    algorithm: one of neuroshard.algorithms(). target: in place of the problem's. deadline_s:
    seconds after which the best plan so far is returned; without it the result depends on
    nothing but the arguments. threads: 0 for as many as the machine runs at once; the plan does
    not depend on it. warm_start: yesterday's plan, changed only where that pays.
    published: for algorithm="published". policy, policy_samples: for algorithm="dreamshard", the
    file of a placement policy (None: the shipped one) and the episodes it plays by chance.
    evaluation_budget: candidate plans the local search may evaluate; 0 for a default.
    progress: called with a Progress several times a second, and ends the search by returning
    False; True shows a line on stderr after a second, when that is a terminal; False nothing.

    Raises PlanningError with the binding limit when there is no plan. Ctrl-C ends the search.
    """
    problem = _ready(problem, "plan")
    if target is not None:
        problem = problem.replace(target=target)
    options = _options(objective, algorithm)
    if deadline_s is not None:
        options.deadline_s = _at_least("deadline_s", fields.number(deadline_s, "deadline_s"), 0)
    options.seed = _at_least("seed", fields.whole(seed, "seed"), 0, 2**64 - 1)
    options.threads = _at_least("threads", fields.whole(threads, "threads"), 0, MAX_THREADS)
    options.evaluation_budget = _at_least(
        "evaluation_budget", fields.whole(evaluation_budget, "evaluation_budget"), 0, 2**62)
    _set_published(options, published)
    _set_warm_start(options, warm_start)
    _set_policy(options, policy, policy_samples)
    model = model_for(cost_model, problem)
    return result_of_plain(_planner.search(problem._native, model, options, _report(progress)))


def inspect(problem: ShardingProblem, plan: Plan, *, cost_model: ModelChoice = "auto",
            objective: Union[ObjectiveKind, Objective] = "step") -> PlanResult:
    """What plan() would say of a plan one brings, which must be valid (else InvalidPlan).

    Cost, memory, lower bound and remarks; explanation and tried are empty, as nothing was
    decided.
    """
    started = time.perf_counter()
    arguments = _given(problem, plan, "inspect", cost_model, objective)
    answer = _planner.inspect(*arguments)
    return result_of_plain({**answer, "seconds": time.perf_counter() - started})


def evaluate(problem: ShardingProblem, plan: Plan, *,
             cost_model: ModelChoice = "auto",
             objective: Union[ObjectiveKind, Objective] = "step") -> Breakdown:
    """The predicted cost of a plan, which must be valid (else InvalidPlan)."""
    return breakdown_of_plain(_planner.evaluate(
        *_given(problem, plan, "evaluate", cost_model, objective)))


def algorithms() -> tuple[str, ...]:
    """What plan(algorithm=...) may be, the default first."""
    return tuple(_planner.algorithms())


def _report(progress: Callable[[Progress], object] | bool) -> object:
    if isinstance(progress, bool):
        return progress
    if not callable(progress):
        raise TypeError("progress: expected a function, True or False, "
                        f"got: {fields.shown(progress)}")
    return lambda *values: progress(Progress(*values))


def _given(problem: ShardingProblem, plan: Plan, caller: str, cost_model: ModelChoice,
           objective: Union[ObjectiveKind, Objective]
           ) -> tuple[_planner.Problem, _planner.Plan, _planner.Model, _planner.SearchOptions]:
    """What a function for a given plan passes on."""
    problem = _ready(problem, caller)
    if not isinstance(plan, Plan):
        raise TypeError(f"{caller}: plan: expected a Plan, got: {fields.shown(plan)}")
    options = _options(objective, "default")
    return problem._native, plan._native, model_for(cost_model, problem), options


def _ready(problem: ShardingProblem, caller: str) -> ShardingProblem:
    if not isinstance(problem, ShardingProblem):
        raise TypeError(f"{caller}: problem: expected a ShardingProblem, "
                        f"got: {fields.shown(problem)}")
    if problem.topology is None:
        raise InvalidProblem([("topology", "the problem has none; give it one with "
                               "problem.replace(topology='8xH200')")])
    return problem


def _options(objective: Union[ObjectiveKind, Objective], algorithm: str) -> _planner.SearchOptions:
    if isinstance(objective, str):
        objective = Objective(objective)
    if not isinstance(objective, Objective):
        raise TypeError("objective: expected 'step', 'published' or an Objective, "
                        f"got: {fields.shown(objective)}")
    fields.text(algorithm, "algorithm")
    if algorithm not in algorithms():
        raise ValueError(f"algorithm: expected {', '.join(algorithms())}, "
                         f"got: {fields.shown(algorithm)}")
    options = _planner.SearchOptions()
    options.objective = objective.kind
    options.algorithm = algorithm
    options.set_dense(objective.dense_bottom_ms, objective.dense_rest_ms,
                      objective.pipeline_depth)
    return options


def _set_published(options: _planner.SearchOptions, settings: PublishedSettings | None) -> None:
    if settings is None:
        return
    if not isinstance(settings, PublishedSettings):
        raise TypeError(f"published: expected PublishedSettings, got: {fields.shown(settings)}")
    _only_for(options, "published", "published")
    options.set_published(settings.candidates, settings.beam_width, settings.depth,
                          settings.grid_points, settings.grid_begin, settings.grid_end)


def _set_policy(options: _planner.SearchOptions, policy: str | os.PathLike[str] | None,
                samples: int) -> None:
    samples = _at_least("policy_samples", fields.whole(samples, "policy_samples"), 0, MAX_COUNT)
    file = "" if policy is None else fields.path(policy, "policy")
    if policy is not None:
        _only_for(options, "policy", "dreamshard")
    if samples:
        _only_for(options, "policy_samples", "dreamshard")
    if options.algorithm == "dreamshard":
        options.set_policy(file, samples)


def _only_for(options: _planner.SearchOptions, setting: str, algorithm: str) -> None:
    if options.algorithm != algorithm:
        raise ValueError(f"{setting}: only algorithm='{algorithm}' has this setting, "
                         f"algorithm: '{options.algorithm}'")


def _set_warm_start(options: _planner.SearchOptions,
                    warm_start: Union[Plan, WarmStart, None]) -> None:
    if warm_start is None:
        return
    if isinstance(warm_start, Plan):
        warm_start = WarmStart(warm_start)
    if not isinstance(warm_start, WarmStart):
        raise TypeError("warm_start: expected a Plan or a WarmStart, "
                        f"got: {fields.shown(warm_start)}")
    options.set_warm_start(warm_start.previous._native, warm_start.horizon_steps,
                               warm_start.tolerance)


def _at_least(where: str, value: Any, low: float, high: float | None = None) -> Any:
    if value < low or (high is not None and value > high):
        most = "" if high is None else f" and at most {high}"
        raise ValueError(f"{where}: expected at least {low}{most}, got: {value}")
    return value
