"""neuroshard doctor."""

from __future__ import annotations

import click

from neuroshard.cli._input import options

STYLES = {"ok": "green", "missing": "yellow", "broken": "red"}


@click.command("doctor")
@options.json_option
def command(as_json: bool) -> None:
    """Says which parts of NeuroShard are installed and work, and what to do about the others.
    Exit code 1 when the planner itself does not work."""
    from neuroshard.cli._analysis import installation_checks

    if as_json:
        found = list(installation_checks.checks())
        click.echo(installation_checks.as_json(found))
    else:
        found = print_checks()
    if not installation_checks.works(found):
        raise click.exceptions.Exit(1)


def print_checks() -> list:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from neuroshard.cli._analysis import installation_checks

    out = Console(highlight=False)
    found = []
    with Console(stderr=True).status("looking") as status:
        for one in installation_checks.checks():
            status.update(f"looking: {one.part} is {one.state}")
            found.append(one)
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for one in found:
        what = escape(one.what) + (f"\n[dim]{escape(one.advice)}[/dim]" if one.advice else "")
        made.add_row(one.part, f"[{STYLES[one.state]}]{one.state}[/]", what)
    if not out.is_terminal:
        out.width = 200
    out.print(made)
    return found
