"""The options of a search on the command line, from the planner's table."""

from __future__ import annotations

from typing import Any, get_args

import click

import neuroshard as ns
from neuroshard.cli._failures import InputError
from neuroshard.cli._input.options import combined

algorithms = ns.algorithms  # Before the planner's modules: its error says what is missing.
from neuroshard._vocabulary import TARGETS  # noqa: E402
from neuroshard.planning import OPTIONS, PUBLISHED, ObjectiveKind, checked  # noqa: E402

TYPES = {"text": str, "whole": int, "number": float}
MODEL = ("cost_model", "objective", "dense_bottom_ms", "dense_rest_ms", "pipeline_depth")
WARM = ("previous", "horizon_steps", "tolerance")


def option(key: str, *names: str, **settings: Any) -> Any:
    """A flag with the name, type and help of a row of the table; its value is None if not given."""
    row = OPTIONS[key]

    def in_range(_: click.Context, __: click.Parameter, value: Any) -> Any:
        return None if value is None else checked(key, value, f"--{row['flag']}")

    settings = {"type": TYPES[row["kind"]], "help": row["help"], "default": None,
                "callback": None if row["kind"] == "text" else in_range, **settings}
    return click.option(*names, f"--{row['flag']}", key, **settings)


def algorithm_option(**settings: Any) -> Any:
    return option("algorithm", "-a", type=click.Choice(algorithms()), **settings)


model_options = combined(
    option("cost_model", "-m", multiple=True),
    option("objective", type=click.Choice(get_args(ObjectiveKind))),
    *(option(key) for key in MODEL[2:]))

# The options of a search without a previous plan, except the algorithm and the model's.
search_options = combined(
    *(option(key) for key in OPTIONS if key not in ("algorithm", *MODEL, *WARM)),
    click.option("--target", type=click.Choice(TARGETS),
                 help="What runs the plan; in place of the workload's own."))

warm_options = combined(option("previous", type=click.Path(), metavar="PLAN"),
                        *(option(key) for key in WARM[1:]))


def take(values: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Removes the options from the values; returns those that were given."""
    taken = {key: values.pop(key, None) for key in keys}
    return {key: value for key, value in taken.items() if value is not None}


def take_model(values: dict[str, Any]) -> dict[str, Any]:
    """The arguments of neuroshard.plan and inspect that model_options describe."""
    given = take(values, *MODEL)
    names = list(given.pop("cost_model", ()))
    kind = given.pop("objective", OPTIONS["objective"]["default"])
    for key in given if kind != "step" else ():
        raise InputError(f"--{OPTIONS[key]['flag']}: only the objective 'step' reads it, and the "
                         f"objective is '{kind}'")
    chosen = names[0] if len(names) == 1 else names or OPTIONS["cost_model"]["default"]
    return {"cost_model": chosen, "objective": ns.Objective(kind, **given)}


def take_search(values: dict[str, Any], *algorithms: str) -> dict[str, Any]:
    """The arguments of neuroshard.plan that search_options describe. algorithms: raises for
    options that only other ones read; without any, for none."""
    search = take(values, *(key for key in OPTIONS if key not in ("algorithm", *MODEL, *WARM)))
    for row in map(OPTIONS.__getitem__, search if algorithms else ()):
        if row["scope"] not in ("", *algorithms):
            verb = "algorithm is" if len(algorithms) == 1 else "algorithms are"
            names = ", ".join(f"'{one}'" for one in algorithms)
            raise InputError(f"--{row['flag']}: only the algorithm '{row['scope']}' reads it, "
                             f"and the {verb} {names}")
    published = take(search, *PUBLISHED)
    return search | ({"published": ns.PublishedSettings(**published)} if published else {})


def take_warm_start(values: dict[str, Any]) -> dict[str, Any]:
    """The argument of neuroshard.plan that warm_options describe."""
    from neuroshard.cli._input.input_files import load_plan

    given = take(values, *WARM)
    if not given:
        return {}
    if "previous" not in given:
        raise click.UsageError(f"--{OPTIONS[next(iter(given))]['flag']} needs --previous")
    return {"warm_start": ns.WarmStart(load_plan(given.pop("previous")), **given)}


def for_algorithm(search: dict[str, Any], algorithm: str) -> dict[str, Any]:
    """The options without those that only other algorithms read."""
    scopes = {key: row["scope"] for key, row in OPTIONS.items()} | {"published": "published"}
    return {key: value for key, value in search.items() if scopes[key] in ("", algorithm)}
