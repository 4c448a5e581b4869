"""The command neuroshard, for people: plans, compares and explains workloads; docs/cli.md.

It needs click, rich and Jinja2 (pip install "neuroshard[cli]"); `neuroshard doctor` needs
nothing. What the commands say comes from the Python API.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from neuroshard.cli import _process


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line; returns its exit code: 0, 1 for wrong input, 2 for wrong usage, 130
    after Ctrl-C, 141 when the reader of the output has closed it."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    _process.open_closed_streams()
    _process.escape_what_stdout_lacks()
    missing = [package for module, package in _process.NEEDED.items() if find_spec(module) is None]
    if not missing:
        from neuroshard.cli._app import run

        return run(arguments)
    if arguments[:1] == ["doctor"]:
        from neuroshard.cli._analysis.installation_checks import print_plain
        from neuroshard.cli._failures import fail

        try:
            return print_plain("--json" in arguments[1:])
        except BrokenPipeError:
            return _process.forget_output()
        except OSError as error:
            _process.drop_unwritten()
            return fail(error, as_json=False)
    print(f"neuroshard: the command line needs {', '.join(missing)}: pip install "
          "\"neuroshard[cli]\"; without them only `neuroshard doctor` runs", file=sys.stderr)
    return 1


def entry() -> None:
    """The command of the installed package."""
    raise SystemExit(main())
