"""neuroshard plan."""

from __future__ import annotations

from typing import Any

import click

from neuroshard.cli import options


@click.command("plan")
@options.workload_options
@options.model_options
@options.search_options
@click.option("-a", "--algorithm", type=options.Algorithm(), default="default",
              show_default=True, help="How the plan is made.")
@click.option("--previous", type=click.Path(), metavar="PLAN",
              help="The plan in use: changed only where that pays.")
@click.option("--horizon-steps", type=float, default=1e5, show_default=True,
              help="With --previous: steps for which the new plan will be used.")
@click.option("-o", "--output", type=click.Path(), metavar="PLAN", help="Write the plan here.")
@click.option("--html", type=click.Path(), metavar="FILE",
              help="Write a report, one file that opens offline; it also plans with the other "
                   "algorithms, for comparison.")
@options.json_option
def command(previous: str | None, horizon_steps: float, output: str | None, html: str | None,
            as_json: bool, algorithm: str, **values: Any) -> None:
    """Plans WORKLOAD: a file workload.json, or model.py:function that gives a ShardingProblem
    or a torch module."""
    import neuroshard as ns
    from neuroshard.cli import plain, show, sources, views

    warm = None
    if previous is not None:
        warm = ns.WarmStart(sources.load_plan(previous), horizon_steps)
    problem = options.take_workload(values)
    model, search = options.take_model(values), options.take_search(values)
    with show.searching("planning") as progress:
        result = ns.plan(problem, algorithm=algorithm, warm_start=warm, progress=progress,
                         **model, **search)
    if output:
        result.save(output)
    if html:
        from neuroshard.cli import report

        others = report.baselines(problem, result, algorithm, model, search)
        report.write(html, problem, result, others)
    if as_json:
        show.print_json(plain.result(result))
        return
    views.print_result(show.console(), problem, result)
    for what, path in (("the plan", output), ("the report", html)):
        if path:
            show.messages().print(f"wrote {what} to {path}", markup=False)
