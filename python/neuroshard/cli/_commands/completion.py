"""neuroshard completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Prints a script for SHELL. For bash: eval "$(neuroshard completion bash)" in ~/.bashrc."""
    from neuroshard.cli._app import NAME, cli

    made = get_completion_class(shell)(cli, {}, NAME, "_NEUROSHARD_COMPLETE")
    # Not source(), which starts bash to check its version.
    click.echo(made.source_template % made.source_vars())
