"""The argument WORKLOAD, the options that complete it, and the problem that they describe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

import neuroshard as ns
from neuroshard.cli._failures import InputError
from neuroshard.cli._input.input_files import existing
from neuroshard.cli._input.options import combined
from neuroshard.cli._input.user_code import call, names_function

ns.Optimizer  # Before the planner's modules: its error says what is missing.
from neuroshard._vocabulary import MODES, OPTIMIZERS  # noqa: E402


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
    click.option("--mode", type=click.Choice(MODES),
                 help="inference: a step has lookups alone, as of tables that are served; in place of the "
                      "workload's own."),
    click.option("--batch", type=click.IntRange(min=1),
                 help="Samples per step over all devices; in place of the workload's own."),
    click.option("--optimizer", type=click.Choice(OPTIMIZERS),
                 help="Of the tables of a torch module (sgd)."),
    click.option("--mean-pooling", type=Pooling(), multiple=True,
                 help="Ids per sample of the features of a torch module (1)."),
    click.option("--constraints", type=click.Path(), metavar="FILE",
                 help="Pins, forbidden devices, kinds of cuts and other rules: a JSON object as \"constraints\" of a "
                      "workload; in place of the workload's own."))


def take(values: dict[str, Any], needs_devices: bool = True) -> Any:
    """The problem that the options describe, taken out of the values."""
    source = values.pop("workload")
    problem = load_workload(
        source, topology=values.pop("topology"), batch=values.pop("batch"),
        optimizer=values.pop("optimizer"), mean_pooling=values.pop("mean_pooling"),
        needs_devices=needs_devices)
    mode = values.pop("mode")
    if mode and mode != problem.mode:
        problem = problem.served() if mode == "inference" else problem.replace(mode=mode)
    if target := values.pop("target", None):
        problem = problem.replace(target=target)
    if (rules := values.pop("constraints")) is not None:
        problem = problem.replace(constraints=load_constraints(rules, problem))
    return with_topology(problem, source) if needs_devices else problem


def load_workload(source: str, *, topology: str | None = None, batch: int | None = None,
                  optimizer: str | None = None,
                  mean_pooling: Sequence[tuple[str, float]] = (),
                  needs_devices: bool = True) -> ns.ShardingProblem:
    """The problem of workload.json or model.py:function. topology and batch replace its own;
    optimizer and mean_pooling complete a torch module, which does not have them."""
    if names_function(source):
        made = call(source)
        if not isinstance(made, ns.ShardingProblem):
            made = of_module(made, source, topology, batch, optimizer, mean_pooling, needs_devices)
        elif optimizer or mean_pooling:
            raise InputError(f"{source} gives a whole problem: --optimizer and --mean-pooling are "
                             "for torch modules; set them there")
    elif optimizer or mean_pooling:
        raise InputError(f"{source} says optimizers and pooling itself: --optimizer and "
                         "--mean-pooling are for torch modules")
    else:
        made = ns.ShardingProblem.load(existing(source, "a workload"))
    if topology is not None:
        made = made.replace(topology=topology)
    if batch is not None and batch != made.batch.global_size:
        made = made.replace(batch=made.batch.replace(global_size=batch))
    return made


def load_tables(source: str) -> ns.ShardingProblem:
    """As load_workload(), for what reads tables and features alone: of a torch module for any batch and devices."""
    if not names_function(source):
        return load_workload(source)
    made = call(source)
    if isinstance(made, ns.ShardingProblem):
        return made
    return of_module(made, source, None, 1, None, (), needs_devices=False)


def load_constraints(path: str, problem: ns.ShardingProblem) -> ns.Constraints:
    """Those of a file, on the tables and devices of a problem."""
    try:
        with open(existing(path, "constraints"), encoding="utf-8-sig") as file:
            text = file.read()
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    if not isinstance(given, dict):
        raise InputError(f"{path}: expected an object with some of pins, forbids, co_locate, separate, tables, "
                         "reserves and fixed_shards")
    plain = json.loads(problem.replace(constraints=ns.Constraints()).to_json())
    plain.pop("constraints", None)
    # The text itself, so that the reader of workloads sees what json.loads() hides, as a key that stands twice.
    whole = f'{json.dumps(plain)[:-1]}, "constraints": {text}}}'
    try:
        return ns.ShardingProblem.from_json(whole).constraints
    except ns.InvalidProblem as error:
        raise ns.InvalidProblem([(_place(path, one.where), one.message) for one in error.diagnostics]) from None


def _place(path: str, where: str) -> str:
    """Of an error of the problem, in the file of its constraints if it is there."""
    if where != "constraints" and not where.startswith(("constraints.", "constraints[")):
        return where or path
    inner = where.removeprefix("constraints").removeprefix(".")
    return f"{path}: {inner}" if inner else path


def pooling_of(given: Sequence[tuple[str, float]]) -> float | Mapping[str, float] | None:
    """The ids per sample of options --mean-pooling, of all features (named "") or by feature; None without such."""
    pooling: dict[str, float] = {}
    for feature, number in given:
        if feature in pooling:
            raise InputError(f"--mean-pooling: expected one number for {f'feature {feature!r}' if feature else 'all'}, "
                             f"found {pooling[feature]:g} and {number:g}")
        pooling[feature] = number
    if "" not in pooling:
        return pooling or None
    if len(pooling) > 1:
        raise InputError("--mean-pooling: expected either one number for all features, or feature=number for some, "
                         "found both")
    return pooling[""]


def with_topology(problem: ns.ShardingProblem, source: str) -> ns.ShardingProblem:
    if problem.topology is None:
        raise InputError(f"{source} names no devices: add --topology, for instance "
                         "--topology 8xH200")
    return problem


def of_module(made: object, source: str, topology: str | None, batch: int | None,
              optimizer: str | None, mean_pooling: Sequence[tuple[str, float]],
              needs_devices: bool) -> ns.ShardingProblem:
    if not isinstance(made, Mapping) and not hasattr(made, "named_modules"):
        raise InputError(f"{source} gives a {type(made).__name__}; expected a ShardingProblem, a "
                         "torch module, or a dict of nn.EmbeddingBag or nn.Embedding by feature")
    try:
        from neuroshard.distributed import problem_of
    except ImportError as error:
        raise InputError(f"{source} gives a {type(made).__name__}, and reading its tables needs "
                         f"torch: {error}") from error
    if batch is None:
        raise InputError(f"{source} gives a {type(made).__name__}, which names no batch: add "
                         "--batch, the samples over all devices")
    if topology is None and needs_devices:
        raise InputError(f"{source} gives a {type(made).__name__}, which names no devices: add "
                         "--topology, for instance --topology 8xH200")
    pooling = pooling_of(mean_pooling)
    try:
        return problem_of(made, batch=batch, topology=topology, optimizer=optimizer,
                          mean_pooling=1 if pooling is None else pooling)
    except TypeError as error:
        raise InputError(f"{source}: {error}") from None
