"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Algorithm(click.ParamType):
    """The planner is asked for its algorithms when one is given, not at every start."""

    name = "algorithm"

    def convert(self, value: Any, option: Any, context: Any) -> str:
        import neuroshard as ns

        if value not in ns.algorithms():
            self.fail(f"expected one of {', '.join(ns.algorithms())}, got: {value}", option,
                      context)
        return value

    def shell_complete(self, context: Any, option: Any, incomplete: str) -> list[Any]:
        import neuroshard as ns
        from click.shell_completion import CompletionItem

        return [CompletionItem(one) for one in ns.algorithms() if one.startswith(incomplete)]


class Pooling(click.ParamType):
    """20 for all features, or feature=20."""

    name = "[feature=]number"

    def convert(self, value: Any, option: Any, context: Any) -> tuple[str, float]:
        feature, _, number = value.rpartition("=")
        try:
            return feature, float(number)
        except ValueError:
            self.fail(f"expected a number, or feature=number, got: {value}", option, context)


def combined(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function
    return add


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

workload_options = combined(
    click.argument("workload", type=click.Path()),
    click.option("-d", "--devices", metavar="TOPOLOGY",
                 help="8xH200, 2x8xA100-40GB, 4xCPU@2GiB; in place of the workload's own."),
    click.option("--batch", type=click.IntRange(min=1),
                 help="Samples per step over all devices; in place of the workload's own."),
    click.option("--optimizer", type=click.Choice(["sgd", "adagrad", "rowwise_adagrad", "adam"]),
                 help="Of the tables of a torch module (sgd)."),
    click.option("--mean-pooling", type=Pooling(), multiple=True,
                 help="Ids per sample of the features of a torch module (1)."))

model_options = combined(
    click.option("-m", "--cost-model", multiple=True, default=["auto"], show_default=True,
                 help="auto, roofline, reference, or model files (.safetensors)."),
    click.option("--objective", type=click.Choice(["step", "published"]), default="step",
                 show_default=True, help="A training step's time, or the published cost."),
    click.option("--dense-bottom-ms", type=float, default=0,
                 help="Dense work behind which the forward exchange hides."),
    click.option("--dense-rest-ms", type=float, default=0, help="All other dense work."),
    click.option("--pipeline-depth", type=int, default=1, show_default=True,
                 help="Batches in flight; from 2 on ids travel behind the step."))

search_options = combined(
    click.option("--deadline", "deadline_s", type=float, metavar="SECONDS",
                 help="Take the best plan found by then."),
    click.option("--seed", type=int, default=0, show_default=True),
    click.option("--threads", type=int, default=0, help="0: as many as there are cores."),
    click.option("--budget", "evaluation_budget", type=int, default=0,
                 help="Plans that the local search may try; 0: a default."),
    click.option("--target", type=click.Choice(["native", "torchrec-1.9"]),
                 help="What runs the plan; in place of the workload's own."))


def take_workload(values: dict[str, Any], needs_devices: bool = True) -> Any:
    """The problem that workload_options describe, taken out of the values."""
    from neuroshard.cli.sources import load_workload, with_topology

    source = values.pop("workload")
    problem = load_workload(
        source, devices=values.pop("devices"), batch=values.pop("batch"),
        optimizer=values.pop("optimizer"), mean_pooling=dict(values.pop("mean_pooling")))
    if target := values.pop("target", None):
        problem = problem.replace(target=target)
    return with_topology(problem, source) if needs_devices else problem


def take_model(values: dict[str, Any]) -> dict[str, Any]:
    """The arguments of neuroshard.plan and inspect that model_options describe."""
    import neuroshard as ns

    names = list(values.pop("cost_model"))
    return {"cost_model": names[0] if len(names) == 1 else names,
            "objective": ns.Objective(values.pop("objective"), values.pop("dense_bottom_ms"),
                                      values.pop("dense_rest_ms"), values.pop("pipeline_depth"))}


def take_search(values: dict[str, Any]) -> dict[str, Any]:
    return {name: values.pop(name)
            for name in ("deadline_s", "seed", "threads", "evaluation_budget")}
