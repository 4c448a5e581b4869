"""neuroshard explain."""

from __future__ import annotations

from typing import Any

import click

from neuroshard._printable import did_you_mean
from neuroshard.cli._input import options, search_options, workload


@click.command("explain")
@workload.options
@click.argument("plan", required=False, type=click.Path())
@search_options.model_options
@click.option("-t", "--table", "tables", multiple=True,
              help="Explain this one, cut or not; several times for several.")
@click.option("--run", type=click.Path(), metavar="FILE",
              help="Put what save_run() of the trained tables measured beside what is predicted.")
@options.json_option
def command(plan: str | None, tables: tuple[str, ...], run: str | None, as_json: bool,
            **values: Any) -> None:
    """Says why PLAN, or the plan that `neuroshard plan` makes, is as it is: for each table that
    is cut what a step would take if it were whole; for each --table that is whole what it would
    take elsewhere. All else stays as it is."""
    import neuroshard as ns
    from neuroshard.cli._analysis import wire
    from neuroshard.cli._analysis.cuts import cuts_of
    from neuroshard.cli._input import input_files
    from neuroshard.cli._output import run_tables, terminal
    from neuroshard.planning import other_placements

    brought = input_files.load_plan(plan) if plan is not None else None
    problem = workload.take(values)
    model = search_options.take_model(values)
    names = [table.name for table in problem.tables]
    unknown = set(tables) - set(names)
    if unknown:
        first = min(unknown)
        raise ns.InvalidProblem([("--table", f"there is no table '{first}'{did_you_mean(first, names)}")])
    if brought is not None:
        result = ns.inspect(problem, brought, **model)
    else:
        with terminal.searching("planning") as progress:
            result = ns.plan(problem, progress=progress, **model)
    compared = (run_tables.beside(result, run_tables.load_run(run, result.plan))
                if run is not None else None)
    cuts = [one for one in cuts_of(problem, result.plan)
            if (one.table.name in tables if tables else one.kind != "whole")]
    with terminal.searching("explaining") as progress:
        found = []
        for other in other_placements(problem, result.plan, [cut.table.name for cut in cuts],
                                      **model):
            found.append((cuts[len(found)], other))
            if progress:
                progress(ns.Progress(0, len(found) / len(cuts), result.cost_ms,
                                     found[-1][0].table.name))
    smaller_ms = wire.smaller_wire_ms(problem, result, model)
    if as_json:
        terminal.print_json({**as_plain(result, found), "wire_ms": smaller_ms,
                             "bf16_wire_ms": smaller_ms.get("bf16"),
                             **({} if compared is None else {"run": run_tables.as_plain(compared)})})
    else:
        notes = [wire.sentence(result, smaller_ms)] if smaller_ms else []
        print_reasons(problem, result, found, notes)
        if compared is not None:
            run_tables.print_comparison(terminal.console(), compared)


def as_plain(result: Any, found: list[Any]) -> dict[str, Any]:
    from neuroshard.cli._output import json_results

    return {**json_results.summary(result), "explanation": list(result.explanation),
            "remarks": list(result.remarks), "assumptions": json_results.whole(result.assumptions),
            "tables": [{"table": cut.table.name, "cut_by": cut.kind,
                        "shards": json_results.whole(cut.shards), "other_ms": other.cost_ms,
                        "other_device": other.device, "why": other.text}
                       for cut, other in found]}


def print_reasons(problem: Any, result: Any, found: list[Any], notes: list[str]) -> None:
    from rich.markup import escape

    from neuroshard.cli._output import result_tables, terminal

    out = terminal.console()
    result_tables.print_summary(out, problem, result)
    if found:
        made = terminal.table("Tables", "table", "cut by", "pieces", "devices", "why", left=5,
                              long=("pieces", "why"))
        for cut, other in found:
            made.add_row(escape(cut.table.name), cut.kind, cut.pieces, cut.devices,
                         escape(other.text))
        out.print(made)
    else:
        out.print("No table is cut; --table explains one that is whole.")
    result_tables.print_caches(out, result)
    rest = [line for line in (*result.explanation, *result.remarks)
            if not line.startswith("table '")]
    terminal.sentences(out, [*rest, *notes])
    result_tables.print_assumptions(out, result)
