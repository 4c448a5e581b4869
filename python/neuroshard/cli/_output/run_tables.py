"""What steps took, beside what was predicted for them."""

from __future__ import annotations

from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape

import neuroshard as ns
from neuroshard.cli._failures import InputError
from neuroshard.cli._output import terminal
from neuroshard.cli._output.result_tables import MAX_CACHES
from neuroshard.runs import TERMS, Run



class Term(NamedTuple):
    """A part of a step, of the device with the most, in ms."""

    name: str
    predicted: float
    measured: float


class Cache(NamedTuple):
    """The row cache of a shard: rows of a batch, and of those the share that was there."""

    shard: str
    predicted_rows: float
    predicted_hits: float
    measured_rows: float
    measured_hits: float
    wait_ms: float


class Comparison(NamedTuple):
    """steps: that were measured. step: all of a step but for its dense and its fixed part, which a run does not
    measure; predicted as its cost, measured as the sum of the terms on the device where that is largest."""

    steps: int
    terms: tuple[Term, ...]
    step: Term
    caches: tuple[Cache, ...]


def load_run(path: str, plan: ns.Plan) -> Run:
    """The run of a plan."""
    try:
        run = Run.load(path)
    except ValueError as error:
        raise InputError(str(error)) from error
    if len(run.devices) != plan.device_count:
        raise InputError(f"{path}: a run on {len(run.devices)} devices, but the plan is for "
                         f"{plan.device_count}")
    planned = {shard.table for shard in plan.shards}
    if run.tables and set(run.tables) != planned:
        odd = sorted(set(run.tables) ^ planned)[0]
        raise InputError(f"{path}: a run of other tables than the plan's: '{odd}' is in "
                         f"{'the plan' if odd in planned else 'the run'} only; expected a run of this plan (of a model "
                         "of shard_model: those of all its collections)")
    cached = {shard.name for shard in plan.shards if shard.cache_rows}
    if unknown := sorted(set(run.caches) - cached):
        raise InputError(f"{path}: a run with a cache of shard '{unknown[0]}', which the plan does "
                         "not have; expected a run of this plan")
    if missing := sorted(cached - set(run.caches)):
        raise InputError(f"{path}: a run without a cache of shard '{missing[0]}', which the plan has; "
                         "expected a run of this plan")
    return run


def beside(result: ns.PlanResult, run: Run) -> Comparison:
    terms = tuple(Term(term.replace("_", " "),
                       max(getattr(one, f"{term}_ms") for one in result.breakdown.devices),
                       max(one[term] for one in run.devices)) for term in TERMS)
    caches = [Cache(one.shard, one.rows, share(one.hits, one.rows), run.caches[one.shard].rows,
                    share(run.caches[one.shard].hits, run.caches[one.shard].rows),
                    run.caches[one.shard].wait_ms)
              for one in result.breakdown.caches if one.shard in run.caches]
    caches.sort(key=lambda one: one.measured_rows * (1 - one.measured_hits), reverse=True)
    return Comparison(run.steps, tuple(one for one in terms if one.predicted or one.measured),
                      step_of(result.breakdown, run), tuple(caches))


def step_of(predicted: ns.results.Breakdown, run: Run) -> Term:
    parts = dict(predicted.parts)
    unmeasured = [name for name in ("dense", "fixed") if parts.pop(name)]
    without = f" without its {' and '.join(unmeasured)} part" if unmeasured else ""
    return Term(f"step{without}", sum(parts.values()), max(sum(one.values()) for one in run.devices))


def share(hits: float, rows: float) -> float:
    return hits / rows if rows else 1.0


def print_comparison(out: Console, compared: Comparison) -> None:
    made = terminal.table(f"A step beside the mean of {compared.steps} measured", "part",
                          "predicted, ms", "measured, ms")
    for term in (*compared.terms, compared.step):
        made.add_row(term.name, terminal.ms(term.predicted), terminal.ms(term.measured))
    out.print(made)
    if not compared.caches:
        return
    made = terminal.table("Row caches", "shard", "rows predicted", "measured", "hits predicted",
                          "measured", "waited, ms")
    for one in compared.caches[:MAX_CACHES]:
        made.add_row(escape(one.shard), f"{one.predicted_rows:,.0f}", f"{one.measured_rows:,.0f}",
                     f"{one.predicted_hits:.1%}", f"{one.measured_hits:.1%}",
                     terminal.ms(one.wait_ms))
    out.print(made)
    if len(compared.caches) > MAX_CACHES:
        out.print(f"  ... the {MAX_CACHES} of {len(compared.caches)} that fetch most rows; --json "
                  "has all")


def as_plain(compared: Comparison) -> dict[str, Any]:
    return {"steps": compared.steps,
            "step": {"predicted_ms": compared.step.predicted, "measured_ms": compared.step.measured},
            "terms": [{"term": one.name.replace(" ", "_"), "predicted_ms": one.predicted,
                       "measured_ms": one.measured} for one in compared.terms],
            "caches": [one._asdict() for one in compared.caches]}
