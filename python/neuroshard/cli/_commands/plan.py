"""neuroshard plan."""

from __future__ import annotations

from typing import Any

import click

from neuroshard.cli._input import options, search_options, workload
from neuroshard.planning import OPTIONS


@click.command("plan")
@workload.options
@search_options.model_options
@search_options.search_options
@search_options.algorithm_option()
@search_options.warm_options
@click.option("--given", type=click.Path(), metavar="PLAN",
              help="Show this plan instead of making one; with --previous, also what changing to it "
                   "moves.")
@click.option("-o", "--output", type=click.Path(), metavar="PLAN", help="Write the plan here.")
@click.option("--html", type=click.Path(), metavar="FILE",
              help="Write a report, one file that opens offline; it also plans with the other "
                   "algorithms, for comparison.")
@click.option("--run", type=click.Path(), metavar="FILE",
              help="With --given: put what save_run() of the trained tables measured beside what is "
                   "predicted, here and in the report.")
@options.json_option
def command(given: str | None, output: str | None, html: str | None, run: str | None, as_json: bool,
            **values: Any) -> None:
    """Plans WORKLOAD: a file workload.json, or model.py:function that gives a ShardingProblem
    or a torch module."""
    import neuroshard as ns
    from neuroshard.cli._input import input_files
    from neuroshard.cli._input.user_code import code_files
    from neuroshard.cli._output import json_results, result_tables, run_tables, terminal

    input_files.check_outputs({"--output": output, "--html": html},
                              (values["workload"], *code_files([values["workload"]]), given,
                               values["previous"], values["constraints"], run))
    brought = input_files.load_plan(given) if given is not None else None
    previous_name = values["previous"]
    warm = search_options.take_warm_start(values)
    problem = workload.take(values)
    if run is not None and given is None:
        raise click.UsageError("--run is of steps under a plan; name that with --given")
    if given is not None and values["algorithm"]:
        raise click.UsageError("--given shows an existing plan without a search: --algorithm has "
                               "no effect")
    algorithm = values.pop("algorithm") or OPTIONS["algorithm"]["default"]
    model = search_options.take_model(values)
    search = search_options.take_search(values, *(() if given is not None else (algorithm,)))
    if brought is not None:
        check_given(warm, output, search, html)
        result = ns.inspect(problem, brought, **model,
                            previous=warm["warm_start"].previous if warm else None)
    else:
        with terminal.searching("planning") as progress:
            result = ns.plan(problem, algorithm=algorithm, progress=progress, **warm, **model,
                             **search)
    compared = (run_tables.beside(result, run_tables.load_run(run, result.plan))
                if run is not None else None)
    if output:
        result.save(output)
    if html:
        from neuroshard.cli._output import report

        left_out = "" if brought is not None else algorithm
        others = report.baselines(problem, result, left_out, model, search)
        start = warm.get("warm_start")
        before = (None if start is None else
                  report.previous_of(problem, previous_name, start.previous, model))
        report.write(html, problem, result, others, report.reasons(problem, result, model), compared, before)
    if as_json:
        measured = {} if compared is None else {"run": run_tables.as_plain(compared)}
        terminal.print_json({**json_results.result(result), **measured})
        return
    result_tables.print_result(terminal.console(), problem, result)
    if compared is not None:
        run_tables.print_comparison(terminal.console(), compared)
    for what, path in (("the plan", output), ("the report", html)):
        if path:
            terminal.messages().print(f"wrote {what} to {path}", markup=False)


def check_given(warm: Any, output: str | None, search: Any, html: str | None) -> None:
    """Raises where an option would have no effect on a plan that is shown."""
    import neuroshard as ns

    if output:
        raise click.UsageError("--given shows an existing plan: --output has no effect")
    start = warm.get("warm_start")
    if start is not None and start != ns.WarmStart(start.previous):
        raise click.UsageError("--given shows an existing plan without a search: --horizon-steps and "
                               "--tolerance have no effect")
    if search and not html:
        raise click.UsageError("--given shows an existing plan without a search: "
                               f"--{next(iter(search)).replace('_', '-')} has no effect")
