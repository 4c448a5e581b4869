"""neuroshard compare."""

from __future__ import annotations

import json
from typing import Any

import click

from neuroshard.cli._input import options, search_options, workload


@click.command("compare")
@workload.options
@click.argument("plans", nargs=-1, type=click.Path())
@search_options.model_options
@search_options.search_options
@search_options.algorithm_option(
    multiple=True, help="Plan with this one; several times for several. Without plans and "
                        "algorithms: all of them.")
@click.option("--html", type=click.Path(), metavar="FILE",
              help="Of two PLANS: write a report of the second, with what changing from the first moves, costs "
                   "and saves.")
@click.option("--torchrec", is_flag=True,
              help="TorchRec's own planner beside ours, each plan priced by both ratings: for WORKLOAD "
                   "model.py:Model, with --topology and --batch.")
@click.option("--profiled", type=click.Path(), metavar="WORKLOAD",
              help="With --torchrec: take the ids per sample of this workload, which `neuroshard profile` made of "
                   "the model.")
@options.json_option
def command(plans: tuple[str, ...], algorithm: tuple[str, ...], html: str | None, torchrec: bool,
            profiled: str | None, as_json: bool, **values: Any) -> None:
    """Costs the files PLANS, and plans that algorithms make for WORKLOAD, under one cost
    model."""
    if torchrec:
        if plans or algorithm or html is not None:
            raise click.UsageError("--torchrec compares two planners: leave out PLANS, --algorithm and --html")
        return beside_torchrec(values, profiled, as_json)
    if profiled is not None:
        raise click.UsageError("--profiled is for --torchrec; other comparisons take WORKLOAD's own ids per sample")
    import neuroshard as ns
    from neuroshard.cli._analysis import comparison
    from neuroshard.cli._input import input_files
    from neuroshard.cli._input.user_code import code_files
    from neuroshard.cli._output import terminal

    if html is not None and len(plans) != 2:
        raise click.UsageError(f"--html is of two plans, one before and one after, got: {len(plans)}")
    if html is not None and input_files.same_file(*plans):
        raise click.UsageError(f"--html is of two plans, one before and one after, got the file {plans[0]} twice")
    input_files.check_outputs({"--html": html}, (values["workload"], *code_files([values["workload"]]),
                                                 values["constraints"], *plans))
    loaded = {path: input_files.load_plan(path) for path in plans}
    problem = workload.take(values)
    names = algorithm or (() if plans else ns.algorithms())
    model, search = search_options.take_model(values), search_options.take_search(values, *names)
    if search and not names:
        raise click.UsageError("without --algorithm nothing is searched beside PLANS: "
                               f"--{next(iter(search)).replace('_', '-')} has no effect")
    entries = [comparison.of_plan(problem, path, plan, model) for path, plan in loaded.items()]
    for name in names:
        with terminal.searching(f"planning ({name})") as progress:
            entries.append(comparison.of_algorithm(problem, name, model, search, progress))
    entries = comparison.ranked(entries)
    if html is not None:
        write_report(html, problem, loaded, entries, model)
    if as_json:
        terminal.print_json(as_plain(entries))
    else:
        print_entries(problem, entries)
    if entries and not any(one.result for one in entries):
        raise click.exceptions.Exit(1)
    if html is not None:
        terminal.messages().print(f"wrote the report to {html}", markup=False)


def write_report(path: str, problem: Any, loaded: dict[str, Any], entries: list[Any], model: dict[str, Any]) -> None:
    """Of the last plan, beside the first. Raises InvalidPlan if the last does not serve the problem."""
    import neuroshard as ns
    from neuroshard.cli._analysis import comparison
    from neuroshard.cli._output import report

    before, *_, after = loaded
    result = ns.inspect(problem, loaded[after], previous=loaded[before], **model)
    others = [comparison.Entry(one.name, one.made, result) if one.name == after else one for one in entries]
    report.write(path, problem, result, others, report.reasons(problem, result, model),
                 previous=report.Previous(before, next(one.result for one in entries if one.name == before)))


def beside_torchrec(values: dict[str, Any], profiled: str | None, as_json: bool) -> None:
    from neuroshard.cli._analysis import planners
    from neuroshard.cli._output import json_results, terminal

    found = planners.compare(values, profiled)
    if as_json:
        terminal.print_json({"planners": [{**json_results.whole(one.replace(plan=None)),
                                           "plan": one.plan and json.loads(one.plan.to_json())}
                                          for one in found.entries], "notes": list(found.notes)})
    else:
        terminal.console().print(str(found), markup=False, soft_wrap=True)
    if all(one.plan is None for one in found.entries):
        raise click.exceptions.Exit(1)


def as_plain(entries: list[Any]) -> dict[str, Any]:
    from neuroshard.cli._analysis import comparison
    from neuroshard.cli._output import json_results

    rows = []
    for one in entries:
        row: dict[str, Any] = {"name": one.name, "planned_here": one.made}
        if one.result is not None:
            row |= {**json_results.summary(one.result),
                    "breakdown": json_results.whole(one.result.breakdown)}
        else:
            row["error"] = one.message
        rows.append(row)
    return {"lower_bound_ms": comparison.best_bound(entries), "plans": rows}


def print_entries(problem: Any, entries: list[Any]) -> None:
    from rich.markup import escape

    from neuroshard.cli._analysis import comparison
    from neuroshard.cli._output import terminal

    out = terminal.console()
    fetches = any(one.result.breakdown.fetch_ms for one in entries if one.result)
    made = terminal.table(f"{len(problem.tables)} tables on {problem.topology}", "plan", "step, ms",
                          "to the best", "forward", "backward", "exchange",
                          *(["fetched rows"] if fetches else []), "fullest device",
                          "shards", "planned in, s")
    best = next((one.result.cost_ms for one in entries if one.result), 0)
    for one in entries:
        if one.result is None:
            continue
        parts = one.result.breakdown
        made.add_row(escape(comparison.title(one)), terminal.ms(one.result.cost_ms),
                     terminal.percent(one.result.cost_ms / best - 1) if best else "",
                     terminal.ms(parts.max_forward_ms), terminal.ms(parts.max_backward_ms),
                     terminal.ms(parts.exchange_ms),
                     *([terminal.ms(parts.fetch_ms)] if fetches else []),
                     terminal.size(one.result.memory.peak_bytes),
                     str(len(one.result.plan.shards)),
                     f"{one.result.seconds:.2f}" if one.made else "")
    if made.row_count:
        out.print(made)
    for one in entries:
        if one.result is None:
            out.print(f"{comparison.title(one)}: no plan: {one.message}", markup=False, soft_wrap=True)
    bound = comparison.best_bound(entries)
    out.print(f"No plan is below {bound:.3f} ms." if bound is not None else "No lower bound is known.")
