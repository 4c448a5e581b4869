"""neuroshard calibrate-memory."""

from __future__ import annotations

from typing import Any

import click

from neuroshard.cli._input import options, workload


@click.command("calibrate-memory")
@workload.options
@click.argument("plan", type=click.Path())
@click.argument("statistics", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", type=click.Path(), metavar="WORKLOAD",
              help="Write the workload with these reserves here.")
@options.json_option
def command(plan: str, statistics: tuple[str, ...], output: str | None, as_json: bool,
            **values: Any) -> None:
    """Fits the memory reserves to the JSON files STATISTICS: what torch.cuda.memory_stats()
    gave on every rank after some steps of WORKLOAD under PLAN."""
    from neuroshard.cli._analysis import calibration
    from neuroshard.cli._input.input_files import check_outputs, load_plan
    from neuroshard.cli._input.user_code import code_files, names_function
    from neuroshard.cli._output import json_results, terminal

    source = values["workload"]
    check_outputs({"--output": output}, (plan, *statistics, *code_files([source])))
    problem = workload.take(values)
    brought = load_plan(plan)
    uses = calibration.read_uses(statistics, problem.topology.device_count)
    found = calibration.fit(problem, brought, uses)
    if output:
        # Written from the workload as it was given, so that options do not change its devices.
        own = problem if names_function(source) else workload.load_workload(source)
        own.replace(constraints=own.constraints.replace(reserves=found.reserves)).save(output)
    if as_json:
        terminal.print_json({"reserves": json_results.whole(found.reserves),
                         "ranks": [{**one._asdict(), "use": one.use._asdict()}
                                   for one in found.ranks],
                         "remarks": list(found.remarks)})
    else:
        print_fit(found, output)


def print_fit(found: Any, output: str | None) -> None:
    from neuroshard.cli._output import terminal

    def sized(count: int | None) -> str:
        if count is None:
            return "not measured"
        return ("-" if count < 0 else "") + terminal.size(abs(count))

    out = terminal.console()
    made = terminal.table("Peaks", "rank", "tables, predicted", "allocated", "beside the tables",
                          "reserved", "fragmentation", "used", "outside the allocator")
    for rank, one in enumerate(found.ranks):
        made.add_row(str(rank), sized(one.tables), sized(one.use.allocated), sized(one.rest),
                     sized(one.use.reserved), sized(one.fragmentation), sized(one.use.used),
                     sized(one.beyond))
    out.print(made)
    reserves = found.reserves
    for name, count in (("dense", reserves.dense_bytes),
                        ("fragmentation", reserves.fragmentation_bytes),
                        ("communicator", reserves.communicator_bytes)):
        text = "the default of the device's class" if count is None else sized(count)
        out.print(f"{name} reserve: {text}")
    terminal.sentences(out, found.remarks)
    if output:
        terminal.messages().print(f"wrote the workload to {output}", markup=False)
