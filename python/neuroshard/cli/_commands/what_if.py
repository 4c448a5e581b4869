"""neuroshard what-if."""

from __future__ import annotations

from typing import Any

import click

from neuroshard.cli._input import options, search_options, workload
from neuroshard.planning import OPTIONS


@click.command("what-if")
@workload.options
@search_options.model_options
@search_options.search_options
@search_options.algorithm_option()
@click.option("-c", "--cluster", "topologies", multiple=True, metavar="TOPOLOGY",
              help="A cluster to plan for, as --topology; several times for several.")
@click.option("-n", "--count", "counts", type=click.IntRange(min=1), multiple=True,
              help="As many devices of the workload's own kind; several times for several.")
@options.json_option
def command(topologies: tuple[str, ...], counts: tuple[int, ...], as_json: bool,
            **values: Any) -> None:
    """Plans WORKLOAD for several clusters: more, fewer or other devices."""
    import neuroshard as ns
    from neuroshard.cli._output import terminal

    if not topologies and not counts:
        raise click.UsageError("give --cluster or --count, for instance -c 8xH200 -n 4 -n 16")
    # --count takes the workload's own devices; --cluster needs none.
    problem = workload.take(values, needs_devices=bool(counts))
    algorithm = values.pop("algorithm") or OPTIONS["algorithm"]["default"]
    arguments = {**search_options.take_model(values), "algorithm": algorithm,
                 **search_options.take_search(values, algorithm)}
    cases = []
    for asked in [*({"topologies": one} for one in topologies), *({"devices": n} for n in counts)]:
        with terminal.searching(f"planning for {next(iter(asked.values()))}") as progress:
            cases += ns.what_if(problem, **asked, progress=progress, **arguments)
    if as_json:
        terminal.print_json({"cases": [as_plain(case) for case in cases]})
    else:
        print_cases(cases)
    if not any(case.result for case in cases):
        raise click.exceptions.Exit(1)


def as_plain(case: Any) -> dict[str, Any]:
    from neuroshard.cli._output import json_results

    row = {"name": case.name, "topology": str(case.topology) if case.topology else None,
           "device_count": case.topology.device_count if case.topology else None}
    return row | (json_results.summary(case.result) if case.result else
                  {"error": json_results.error(case.error)})


def print_cases(cases: list[Any]) -> None:
    from rich.markup import escape

    from neuroshard.cli._output import terminal

    out = terminal.console()
    made = terminal.table("What if", "cluster", "devices", "step, ms", "bound, ms",
                          "fullest device", "of its memory", "shards", "planned in, s")
    for case in cases:
        if case.result is None:
            made.add_row(escape(case.name), *([str(case.topology.device_count), "no plan"] if case.topology
                                              else ["", "not known"]))
            continue
        result = case.result
        fullest = max(memory.peak_bytes / device.memory_bytes for memory, device in
                      zip(result.memory.devices, case.topology.devices, strict=True))
        made.add_row(escape(case.name), str(case.topology.device_count),
                     terminal.ms(result.cost_ms),
                     terminal.ms(result.lower_bound_ms) if result.lower_bound_ms is not None else "unknown",
                     terminal.size(result.memory.peak_bytes), f"{fullest:.0%}",
                     str(len(result.plan.shards)), f"{result.seconds:.2f}")
    out.print(made)
    for case in cases:
        if case.error is not None:
            what = f"no plan: {case.error.limit}: " if case.topology else ""
            out.print(f"{case.name}: {what}{case.error.message}",
                      markup=False, soft_wrap=True)
