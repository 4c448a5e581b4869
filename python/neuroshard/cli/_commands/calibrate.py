"""neuroshard calibrate."""

from __future__ import annotations

from typing import Any, Literal

import click

from neuroshard.cli._input.options import Number, json_option

BATCH = 2048
# Of the measurement, which a run that has been does without.
MEASURING = ("cost_model", "minutes", "seed", "engine", "tier_directory", "class_name")


@click.command("calibrate")
@click.argument("statistics", nargs=-1, type=click.Path())
@click.option("-o", "--output", type=click.Path(), required=True, metavar="MACHINE",
              help="Write the machine file here; --cost-model and --topology of the other commands "
                   "take it.")
@click.option("--topology", metavar="TEXT",
              help="What is measured, such as 2x4xCPU@10gbit; default: CPUs, the ranks of a host a node.")
@click.option("--cost-model", default="auto", show_default=True,
              help="Whose predictions are corrected.")
@click.option("--minutes", type=Number(0.05, 1440), default=4.0, show_default=True,
              help="Models are measured as long; at least four are.")
@click.option("--batch", type=click.IntRange(1, 2**31), show_default=str(BATCH),
              help="Samples over all ranks.")
@click.option("--seed", type=click.IntRange(0, 2**62), default=1, show_default=True,
              help="Of the first random model.")
@click.option("--engine", type=click.Choice(("neuroshard", "torchrec")), default="neuroshard",
              show_default=True,
              help="Whose steps are measured; torchrec for plans with --target torchrec-1.9.")
@click.option("--tier-directory", type=click.Path(), metavar="FOLDER",
              help="Measure the disk of this folder on each host, for tables in tier ssd.")
@click.option("--class-name", metavar="NAME", default="MEASURED", show_default=True,
              help="Name of the device class that the file defines; topologies name it as 2x8xNAME@MACHINE.")
@click.option("--workload", type=click.Path(), help="What the run of STATISTICS trained.")
@click.option("--plan", type=click.Path(), help="Under which plan it did.")
@json_option
@click.pass_context
def command(context: click.Context, statistics: tuple[str, ...], output: str,
            topology: str | None, cost_model: str, minutes: float, batch: int | None, seed: int,
            engine: Literal["neuroshard", "torchrec"], tier_directory: str | None, class_name: str,
            workload: str | None, plan: str | None, as_json: bool) -> None:
    """Measures on this machine how long training steps take and how much memory, beside the
    predictions.

    Run it where you train, with as many ranks: torchrun --nproc-per-node 4 -m neuroshard calibrate
    -o machine.json. It runs random models under plans of several algorithms on all ranks at once.

    With STATISTICS, --workload and --plan it measures nothing: JSON files of what
    torch.cuda.memory_stats() gave on every rank after some steps of a run tell what memory to
    reserve. A machine file that is there keeps all else."""
    if statistics or workload or plan:
        if not (statistics and workload and plan):
            raise click.UsageError("STATISTICS, --workload and --plan go together")
        for name in MEASURING:
            if context.get_parameter_source(name) != click.core.ParameterSource.DEFAULT:
                raise click.UsageError(f"--{name.replace('_', '-')} has no effect: STATISTICS are "
                                       "of a run that has been")
        memory_of_run(workload, plan, statistics, output, topology, batch, as_json)
        return
    if as_json:
        raise click.UsageError("--json goes with STATISTICS; MACHINE is JSON")
    from neuroshard import calibration
    from neuroshard.cli._input.input_files import check_outputs

    check_outputs({"--output": output}, [])
    calibration.calibrate(calibration.Settings(
        output, topology, cost_model, minutes, BATCH if batch is None else batch, seed, engine,
        tier_directory, class_name))


def memory_of_run(source: str, plan: str, statistics: tuple[str, ...], output: str,
                  topology: str | None, batch: int | None, as_json: bool) -> None:
    from neuroshard.cli._input import workload  # First: its error says if the planner is missing.
    from neuroshard import _machine_file
    from neuroshard.cli._analysis import run_memory
    from neuroshard.cli._input.input_files import check_outputs, load_plan
    from neuroshard.cli._input.user_code import code_files
    from neuroshard.cli._output import json_results, terminal

    check_outputs({"--output": output}, (plan, *statistics, *code_files([source])))
    problem = workload.with_topology(
        workload.load_workload(source, topology=topology, batch=batch), source)
    uses = run_memory.read_uses(statistics, problem.topology.device_count)
    found = run_memory.fit(problem, load_plan(plan), uses)
    _machine_file.write(output, run_memory.machine_file_with(output, problem, found.reserves))
    if as_json:
        terminal.print_json({"reserves": json_results.whole(found.reserves),
                             "ranks": [{**one._asdict(), "use": one.use._asdict()}
                                       for one in found.ranks],
                             "remarks": list(found.remarks)})
    else:
        print_fit(found, output)


def print_fit(found: Any, output: str) -> None:
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
        text = "as it was" if count is None else sized(count)
        out.print(f"{name} reserve: {text}")
    terminal.sentences(out, found.remarks)
    terminal.messages().print(f"wrote {output}; --topology {output} plans with it", markup=False)
