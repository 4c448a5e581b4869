"""The process of a command: the packages it needs, and how its output ends."""

import os
import sys

# Modules that the commands need, and the packages they come in.
NEEDED = {"click": "click", "rich": "rich", "jinja2": "Jinja2"}
READER_LEFT = 141


def drop_unwritten() -> None:
    """Forgets what standard output does not take, as on a full disk."""
    try:
        sys.stdout.flush()
    except OSError:
        forget_output()


def forget_output() -> int:
    """Redirects stdout to /dev/null after its reader has closed it, so that Python's last flush
    does not fail again. Returns the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_LEFT
