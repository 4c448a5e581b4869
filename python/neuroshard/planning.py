"""plan(), inspect(), evaluate() and others, and the classes of their options."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Union, get_args

from neuroshard import _fields, _planner
from neuroshard._html import in_notebook, progress_bar
from neuroshard.constraints import Constraints
from neuroshard.costs import ModelChoice, model_for
from neuroshard.errors import InvalidProblem
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem, Target
from neuroshard.results import Breakdown, PlanResult, breakdown_of_plain, result_of_plain

ObjectiveKind = Literal["step", "published"]
# More bytes than any plan needs.
ROOM = 2**55

# Of every option of a search: kind, default, range, help.
OPTIONS = {row["key"]: row for row in _planner.search_options()}


def default_of(key: str) -> Any:
    row = OPTIONS[key]
    return row["default"] if row["kind"] == "text" else (
        int if row["kind"] == "whole" else float)(row["default"])


def checked(key: str, value: Any, where: str | None = None) -> Any:
    """The value of an option that is a number, in its range."""
    row, where = OPTIONS[key], where or key
    value = (_fields.whole if row["kind"] == "whole" else _fields.number)(value, where)
    low, high = json.loads(row["range"][row["range"].index("["):])  # Exact, unlike floats.
    if not low <= value <= high:
        raise ValueError(f"{where}: {row['range']}, got: {value}")
    return value


class Settings(_fields.Record):
    """A dataclass whose numbers are options of the search."""

    def _check_options(self, *names: str) -> None:
        for name in names:
            self._set(name, checked(name, getattr(self, name), f"{type(self).__name__}.{name}"))

    def _options(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}


class Progress(NamedTuple):
    """How far a search is. seconds: since the start. share: of the search, in [0, 1], an estimate. best_cost_ms:
    of the best plan so far, per step. phase: what is being done."""

    seconds: float
    share: float
    best_cost_ms: float
    phase: str


@dataclass(frozen=True)
class Objective(Settings):
    """How compute and communication times combine to one cost, in milliseconds.

    kind: "step", the time of a training step, or "published", the paper's. dense_bottom_ms:
    dense work that needs no embeddings, behind which the forward exchange hides. dense_rest_ms:
    all other dense work. pipeline_depth: batches in flight; from 2 on the ids of the next
    batch travel behind the step.
    """

    kind: ObjectiveKind = "step"
    dense_bottom_ms: float = default_of("dense_bottom_ms")
    dense_rest_ms: float = default_of("dense_rest_ms")
    pipeline_depth: int = default_of("pipeline_depth")

    def __post_init__(self) -> None:
        self._choice("kind", get_args(ObjectiveKind))
        self._check_options(*STEP)
        for key in STEP if self.kind != "step" else ():
            if getattr(self, key) != default_of(key):
                raise ValueError(f"Objective.{key}: only the objective 'step' reads it, and the "
                                 f"objective is '{self.kind}'")


@dataclass(frozen=True, kw_only=True)
class PublishedSettings(Settings):
    """Settings of algorithm="published"; the defaults are the paper's.

    candidates: tables that a step tries to cut. beam_width: partial solutions that are kept. depth: most rounds of
    cuts. grid_points: limits of a device's columns that are tried, from grid_begin to grid_end times the mean.
    """

    candidates: int = default_of("candidates")
    beam_width: int = default_of("beam_width")
    depth: int = default_of("depth")
    grid_points: int = default_of("grid_points")
    grid_begin: float = default_of("grid_begin")
    grid_end: float = default_of("grid_end")

    def __post_init__(self) -> None:
        self._check_options(*PUBLISHED)
        if self.grid_end < self.grid_begin:
            raise ValueError("PublishedSettings.grid_end: expected at least grid_begin, "
                             f"{self.grid_begin}, got: {self.grid_end}")


# What only the objective "step" reads.
STEP = ("dense_bottom_ms", "dense_rest_ms", "pipeline_depth")
PUBLISHED = ("candidates", "beam_width", "depth", "grid_points", "grid_begin", "grid_end")


@dataclass(frozen=True)
class WarmStart(Settings):
    """A plan in use, previous. horizon_steps: steps for which the new plan will be used; a change pays
    when it saves more time over them than moving its bytes takes. tolerance: plans whose costs
    differ by less than this share are equally good, and the one that moves least is taken."""

    previous: Plan
    horizon_steps: float = default_of("horizon_steps")
    tolerance: float = default_of("tolerance")

    def __post_init__(self) -> None:
        self._record("previous", Plan)
        self._check_options("horizon_steps", "tolerance")


def plan(problem: ShardingProblem, *, cost_model: ModelChoice = default_of("cost_model"),
         objective: Union[ObjectiveKind, Objective] = default_of("objective"),
         algorithm: str = default_of("algorithm"), target: Target | None = None,
         deadline_s: float | None = None, seed: int = default_of("seed"),
         threads: int = default_of("threads"),
         warm_start: Union[Plan, WarmStart, None] = None,
         published: PublishedSettings | None = None,
         policy: str | os.PathLike[str] | None = None,
         policy_samples: int = default_of("policy_samples"),
         evaluation_budget: int = default_of("evaluation_budget"),
         wire_types: Union[str, Sequence[str]] = default_of("wire_types"),
         tiers: str = default_of("tiers"),
         progress: Callable[[Progress], object] | bool = True) -> PlanResult:
    """Decides where every shard of every table of a problem lies.

    cost_model: "auto" (the measured models of the devices, else the roofline), "roofline",
    "reference" (of the published tasks), a path of a .safetensors model file or a list of
    them, the name that an installed package or a library gives a model (docs/cost-models.md), or
    an object derived from CostModel. objective: "step", "published" or an Objective.
    algorithm: one of neuroshard.algorithms(). target: in place of the problem's. deadline_s:
    seconds after which the best plan so far is returned; without it the result depends on
    nothing but the arguments. seed: of random choices. threads: 0 for as many as the machine runs at once; the plan does
    not depend on it. warm_start: yesterday's plan, changed only where that pays.
    published: PublishedSettings, for algorithm="published". policy, policy_samples: for
    algorithm="dreamshard", the file of a placement policy (None: the shipped one) and the
    episodes it plays by chance.
    evaluation_budget: candidate plans the local search may evaluate; 0 for a default. wire_types: the
    types in which results and gradients may travel, in place of the batch's wire_type, the one that
    is liked best first, or "auto" for ("f32", "f32/bf16", "bf16/f32", "bf16"), where f32/bf16 is f32 for
    results and bf16 for gradients: the first whose step is at most 1 % longer than the shortest. int8 and
    fp8 are taken only if they are named. The plan keeps it, and all that take plan and problem go by it.
    tiers: "hbm,dram,ssd" lets tables lie in host memory of GPUs and on disk, with caches of their rows
    in device memory, as far as that does not hold all ("hbm,dram" and "hbm,ssd": in one of them). The
    explanation of the result names them; a plan with tables on disk needs a tier_directory.
    progress: called with a Progress several times a second, and ends the search by returning
    False; True shows a line on stderr after a second, when that is a terminal, and in notebooks with tqdm
    a bar; False nothing.

    Raises PlanningError with the binding limit when there is no plan. Ctrl-C ends the search.
    """
    problem = _ready(problem, "plan")
    if target is not None:
        problem = problem.replace(target=target)
    options = _options(objective, algorithm)
    numbers = {"deadline_s": deadline_s, "seed": seed, "threads": threads,
               "evaluation_budget": evaluation_budget, "policy_samples": policy_samples}
    options |= {key: checked(key, value) for key, value in numbers.items() if value is not None}
    options |= _wire_types(wire_types) | {"tiers": _fields.text(tiers, "tiers")}
    if policy is not None:
        options["policy"] = _fields.path(policy, "policy")
    options |= _published(algorithm, published) | _warm_start(warm_start)
    for key in ("policy", "policy_samples"):
        if options.get(key):
            _only_for(algorithm, key, "dreamshard")
    model = model_for(cost_model, problem)
    with _report(progress) as report:
        answer = _planner.search(problem._native, model, json.dumps(options), report)
    return result_of_plain(json.loads(answer))


def inspect(problem: ShardingProblem, plan: Plan, *, cost_model: ModelChoice = "auto",
            objective: Union[ObjectiveKind, Objective] = "step",
            previous: Plan | None = None) -> PlanResult:
    """The PlanResult of a given plan for a problem: cost, memory, lower bound and remarks.

    cost_model, objective: as for plan(). previous: a plan in use; the result's migration then says what
    changing from it moves. explanation and tried are empty, as nothing was decided. Raises InvalidPlan for an
    invalid plan; previous may be one for other tables or devices.
    """
    return _inspected(problem, plan, cost_model, objective, previous)


def inspect_as_if_allowed(problem: ShardingProblem, plan: Plan, *, cost_model: ModelChoice = "auto") -> PlanResult:
    """inspect() of a plan that may break the problem's constraints, the rules of its target and the sizes of its
    memories: all is counted as the problem says. The plan must be one of the problem's tables and devices and have
    its optimizer_semantics; else raises InvalidPlan."""
    assert problem.topology is not None
    roomy = problem.topology.replace(devices=[one.replace(memory_bytes=ROOM) for one in problem.topology.devices],
                                     hosts=[one.replace(memory_bytes=ROOM) for one in problem.topology.hosts])
    rules = problem.replace(topology=roomy, target="native",
                            constraints=Constraints(reserves=problem.constraints.reserves))
    return _inspected(problem, plan, cost_model, "step", None, rules)


def _inspected(problem: ShardingProblem, plan: Plan, cost_model: ModelChoice,
               objective: Union[ObjectiveKind, Objective], previous: Plan | None,
               rules: ShardingProblem | None = None) -> PlanResult:
    """rules: what the plan is verified against; None: the problem."""
    started = time.perf_counter()
    native, planned, model, options = _given(problem, plan, "inspect", cost_model, objective)
    if previous is not None and not isinstance(previous, Plan):
        raise TypeError(f"inspect: previous: expected a Plan, got: {_fields.shown(previous)}")
    options = json.dumps({**json.loads(options), **_warm_start(previous)})
    answer = json.loads(_planner.inspect(native, planned, model, options, rules._native if rules else None))
    answer["remarks"] = [*answer.get("remarks", ()), *_wire_remarks(problem, plan)]
    return result_of_plain({**answer, "seconds": time.perf_counter() - started})


def _wire_remarks(problem: ShardingProblem, plan: Plan) -> list[str]:
    """On a plan that was made for another wire type than the problem's."""
    settings = plan.provenance.settings if plan.provenance else ()
    own = problem.batch.wire_type
    made = next((one.value for one in settings if one.name == "wire_type"), own)
    if made == own:
        return []
    used = (f"{made}, which its search chose" if plan.chosen_wire_type
            else f"{own}, as the problem says")
    return [f"the plan was made for results and gradients that travel as {made}, and the problem "
            f"has wire_type {own}: its costs are those of {used}"]


def evaluate(problem: ShardingProblem, plan: Plan, *,
             cost_model: ModelChoice = "auto",
             objective: Union[ObjectiveKind, Objective] = "step") -> Breakdown:
    """The predicted cost of a plan for a problem. cost_model, objective: as for plan(). Raises InvalidPlan for an
    invalid plan."""
    arguments = _given(problem, plan, "evaluate", cost_model, objective)
    return breakdown_of_plain(json.loads(_planner.evaluate(*arguments)))


class OtherPlacement(NamedTuple):
    """A plan with one table placed otherwise. cost_ms, device: None if there is no such plan. text:
    how it compares, or why there is none."""

    cost_ms: float | None
    device: int | None
    text: str


def other_placements(problem: ShardingProblem, plan: Plan, tables: Iterable[str], *,
                     cost_model: ModelChoice = "auto",
                     objective: Union[ObjectiveKind, Objective] = "step"
                     ) -> Iterator[OtherPlacement]:
    """Of each of these tables the plan in which it is whole on the device where a step is then
    shortest, or if it is whole now, on another device. All else, but tables co-located with it,
    is as it was. Raises InvalidPlan for an invalid plan."""
    prices = _planner.OtherPlacements(*_given(problem, plan, "other_placements", cost_model,
                                              objective))
    for table in tables:
        cost, device, text = prices.whole(table)
        yield OtherPlacement(cost, None if cost is None else device, text)


def algorithms() -> tuple[str, ...]:
    """The names for plan(algorithm=...), the default first."""
    return tuple(_planner.algorithms())


@contextmanager
def _report(progress: Callable[[Progress], object] | bool) -> Iterator[object]:
    if progress is True and in_notebook():
        with progress_bar() as bar:
            yield bar or False
    elif isinstance(progress, bool):
        yield progress
    elif callable(progress):
        yield lambda *values: progress(Progress(*values))
    else:
        raise TypeError("progress: expected a function, True or False, "
                        f"got: {_fields.shown(progress)}")


def _given(problem: ShardingProblem, plan: Plan, caller: str, cost_model: ModelChoice,
           objective: Union[ObjectiveKind, Objective]
           ) -> tuple[_planner.Problem, _planner.Plan, _planner.Model, str]:
    """The arguments of the planner's functions for a given plan."""
    problem = _ready(problem, caller)
    if not isinstance(plan, Plan):
        raise TypeError(f"{caller}: plan: expected a Plan, got: {_fields.shown(plan)}")
    problem = plan.complete(problem)
    options = json.dumps(_options(objective, "default"))
    return problem._native, plan._native, model_for(cost_model, problem), options


def _ready(problem: ShardingProblem, caller: str) -> ShardingProblem:
    if not isinstance(problem, ShardingProblem):
        raise TypeError(f"{caller}: problem: expected a ShardingProblem, "
                        f"got: {_fields.shown(problem)}")
    if problem.topology is None:
        raise InvalidProblem([("topology", "the problem has none; give it one with "
                               "problem.replace(topology='8xH200')")])
    return problem


def _options(objective: Union[ObjectiveKind, Objective], algorithm: str) -> dict[str, Any]:
    """The options, by key, that plan(), inspect() and evaluate() share."""
    if isinstance(objective, str):
        objective = Objective(objective)
    if not isinstance(objective, Objective):
        raise TypeError("objective: expected 'step', 'published' or an Objective, "
                        f"got: {_fields.shown(objective)}")
    _fields.text(algorithm, "algorithm")
    if algorithm not in algorithms():
        raise ValueError(f"algorithm: expected {', '.join(algorithms())}, "
                         f"got: {_fields.shown(algorithm)}")
    dense = objective._options(*STEP)
    return {"algorithm": algorithm, "objective": objective.kind,
            **(dense if objective.kind == "step" else {})}


def _published(algorithm: str, settings: PublishedSettings | None) -> dict[str, Any]:
    if settings is None:
        return {}
    if not isinstance(settings, PublishedSettings):
        raise TypeError(f"published: expected PublishedSettings, got: {_fields.shown(settings)}")
    _only_for(algorithm, "published", "published")
    return settings._options(*PUBLISHED)


def _only_for(chosen: str, setting: str, algorithm: str) -> None:
    if chosen != algorithm:
        raise ValueError(f"{setting}: only algorithm='{algorithm}' has this setting, "
                         f"algorithm: '{chosen}'")


def _wire_types(types: Union[str, Sequence[str]]) -> dict[str, Any]:
    if not isinstance(types, str):
        if not (isinstance(types, (tuple, list)) and all(isinstance(one, str) for one in types)):
            raise TypeError("wire_types: expected 'auto' or names of types such as ('f32', 'f32/bf16'), "
                            f"got: {_fields.shown(types)}")
        types = ",".join(types)
    return {"wire_types": types} if types else {}


def _warm_start(warm_start: Union[Plan, WarmStart, None]) -> dict[str, Any]:
    if warm_start is None:
        return {}
    if isinstance(warm_start, Plan):
        warm_start = WarmStart(warm_start)
    if not isinstance(warm_start, WarmStart):
        raise TypeError("warm_start: expected a Plan or a WarmStart, "
                        f"got: {_fields.shown(warm_start)}")
    return {"previous": json.loads(warm_start.previous.to_json()),
            **warm_start._options("horizon_steps", "tolerance")}
