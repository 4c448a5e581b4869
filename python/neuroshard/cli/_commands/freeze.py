"""neuroshard freeze."""

from __future__ import annotations

from typing import Any

import click

from neuroshard.cli._input import options


class Type(click.ParamType):
    """int8 for all tables, or table=int8."""

    name = "[table=]type"

    def convert(self, value: Any, option: Any, context: Any) -> tuple[str, str]:
        table, _, kind = value.rpartition("=")
        return table, kind


@click.command("freeze")
@click.argument("source", type=click.Path())
@click.argument("workload", type=click.Path())
@click.option("-o", "--output", type=click.Path(), required=True, metavar="FOLDER",
              help="Write the tables here, in place of those of an earlier freeze.")
@click.option("--dtype", "types", type=Type(), multiple=True,
              help="int8, int4, fp8, f16, bf16 or f32, of all tables or of one (int8).")
@click.option("--plan", type=click.Path(), metavar="PLAN",
              help="Of several devices that serve the tables; without it, one CPU has all.")
@click.option("--target-cpu", default="host", show_default=True, metavar="CPU",
              help="LLVM's name of the CPU that will serve.")
@options.json_option
def command(source: str, workload: str, output: str, types: tuple[tuple[str, str], ...], plan: str | None,
            target_cpu: str, as_json: bool) -> None:
    """Makes a folder for serving of SOURCE, a checkpoint or a file of a state dict, whose tables WORKLOAD describes.

    WORKLOAD is a file workload.json, or model.py:function that gives a ShardingProblem or a torch
    module. ns.serve() and the C interface answer from the folder."""
    import os

    import neuroshard as ns
    from neuroshard.cli._input import input_files
    from neuroshard.cli._input.workload import load_tables
    from neuroshard.cli._output import terminal

    if not os.path.exists(source):
        raise input_files.InputError(f"there is no file or folder {source}; expected a checkpoint or a state dict")
    problem = load_tables(workload)
    brought = input_files.load_plan(plan) if plan is not None else None
    if brought is not None and (problem.topology is None or problem.topology.device_count != brought.device_count):
        problem = problem.replace(topology=f"{brought.device_count}xCPU")
    folder = ns.freeze(source, problem, output, dtype=types_of(types, problem), plan=brought, target_cpu=target_cpu)
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    if as_json:
        terminal.print_json({"folder": os.fspath(folder), "bytes": sum(sizes.values()), "files": sizes})
    else:
        click.echo(f"wrote {len(problem.tables)} tables, {terminal.size(sum(sizes.values()))}, to {output}")


def types_of(given: tuple[tuple[str, str], ...], problem: Any) -> dict[str, str]:
    """By table. The one without a table is of all others."""
    types = dict(given)
    if len(types) < len(given):
        raise click.UsageError("--dtype names a table, or all, twice")
    rest = types.pop("", "int8")
    return {**{table.name: rest for table in problem.tables}, **types}
