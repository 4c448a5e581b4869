"""The group of commands, and how each of their failures ends."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from neuroshard._printable import of_error
from neuroshard.cli._failures import fail, is_of_output
from neuroshard.cli._process import drop_unwritten, forget_output

NAME = "neuroshard"
# A command's module is imported when it runs, so that shell completion is quick.
COMMANDS = {
    "plan": "Decides where every piece of every table lives.",
    "compare": "Costs plans and algorithms side by side.",
    "explain": "Says, table by table, why a plan is as it is.",
    "what-if": "Plans a workload for several clusters.",
    "devices": "Lists device classes, their figures, and nodes of clouds.",
    "profile": "Puts the statistics of real batches into a workload.",
    "calibrate": "Measures steps and memory on this machine, for plans that fit it.",
    "freeze": "Makes tables for serving of a checkpoint.",
    "doctor": "Says what is installed, what works, and what to do about the rest.",
    "completion": "Prints what makes a shell complete commands and options.",
}
INTERRUPTED = 130


class Group(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"neuroshard.cli._commands.{name.replace('-', '_')}")
        return module.command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def print_version(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from neuroshard.cli._analysis.installation_checks import own_version

        click.echo(f"{NAME} {own_version()}")
        context.exit()


@click.group(NAME, cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False,
              callback=print_version, help="Print the version.")
def cli() -> None:
    """Plans the sharding of embedding tables.

    Exit codes: 0; 1 for wrong input, or when there is no plan; 2 for wrong usage; 130 after
    Ctrl-C. With NEUROSHARD_TRACEBACK=1 failures show where in the code they come from.
    """


def run(arguments: Sequence[str]) -> int:
    try:
        code = cli.main(list(arguments), NAME, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.UsageError as error:
        said = of_error(error.format_message())
        error.format_message = lambda: said  # type: ignore[method-assign]
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return forget_output()
    except Exception as error:
        code = fail(error, "--json" in arguments and not is_of_output(error))
        drop_unwritten()
        return code
