"""The JSON file of a benchmark: checked before the measurements, written atomically after them."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from pathlib import Path

from neuroshard import _fields, _planner


def check_output(path: str, inputs: Iterable[str | Path]) -> None:
    """Raises an OSError if write_output() could not write there or would replace an input."""
    file = Path(os.path.realpath(_fields.path(path, "--output")))
    if file.exists() and not file.is_file():
        raise OSError(f"--output {path!r}: expected a file, found something else there")
    if not file.parent.is_dir():
        raise OSError(f"--output {path!r}: there is no folder {str(file.parent)!r}")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise OSError(f"--output {path!r}: the folder {str(file.parent)!r} cannot be written to")
    if any(Path(os.path.realpath(one)) == file for one in inputs):
        raise OSError(f"--output {path!r}: it is a workload to be read; expected another file")


def parsed(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """Of a parser with --output, which is None or can be written: else it ends with an error."""
    options = parser.parse_args(arguments)
    try:
        if options.output is not None:
            check_output(options.output, [])
    except OSError as error:
        parser.error(str(error))
    return options


def write_output(path: str, figures: dict) -> None:
    """Writes a temporary file beside it and renames it. Raises an OSError if that fails."""
    _planner.write_file(path, json.dumps(figures, indent=1) + "\n")
