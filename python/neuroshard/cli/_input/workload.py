"""The argument WORKLOAD, the options that complete it, and the problem that they describe."""

from __future__ import annotations

from typing import Any

import click

import neuroshard as ns
from neuroshard.cli._input.options import combined

ns.Optimizer  # Before the planner's modules: its error says what is missing.
from neuroshard._vocabulary import OPTIMIZERS  # noqa: E402


class Pooling(click.ParamType):
    """20 for all features, or feature=20."""

    name = "[feature=]number"

    def convert(self, value: Any, option: Any, context: Any) -> tuple[str, float]:
        feature, _, number = value.rpartition("=")
        try:
            return feature, float(number)
        except ValueError:
            self.fail(f"expected a number, or feature=number, got: {value}", option, context)


options = combined(
    click.argument("workload", type=click.Path()),
    click.option("--topology", metavar="TOPOLOGY",
                 help="8xH200, 2x8xA100-40GB, 4xCPU@2GiB; in place of the workload's own."),
    click.option("--batch", type=click.IntRange(min=1),
                 help="Samples per step over all devices; in place of the workload's own."),
    click.option("--optimizer", type=click.Choice(OPTIMIZERS),
                 help="Of the tables of a torch module (sgd)."),
    click.option("--mean-pooling", type=Pooling(), multiple=True,
                 help="Ids per sample of the features of a torch module (1)."))


def take(values: dict[str, Any], needs_devices: bool = True) -> Any:
    """The problem that the options describe, taken out of the values."""
    from neuroshard.cli._input.sources import load_workload, with_topology

    source = values.pop("workload")
    problem = load_workload(
        source, topology=values.pop("topology"), batch=values.pop("batch"),
        optimizer=values.pop("optimizer"), mean_pooling=dict(values.pop("mean_pooling")))
    if target := values.pop("target", None):
        problem = problem.replace(target=target)
    return with_topology(problem, source) if needs_devices else problem
