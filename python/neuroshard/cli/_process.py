"""The process of a command: needed packages, standard streams, and how its output ends."""

import io
import os
import sys

# Modules that the commands need, and the packages they come in.
NEEDED = {"click": "click", "rich": "rich", "jinja2": "Jinja2"}
READER_LEFT = 141


def open_closed_streams() -> None:
    """Replaces the standard streams that the caller has closed, which Python has as None, so that
    no file that a command opens gets their numbers. stdin is at its end, stderr drops everything,
    and stdout fails as a closed descriptor does."""
    for name, mode, access in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY),
                               ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, access), mode, encoding="utf-8"))


def escape_what_stdout_lacks() -> None:
    """Characters that the encoding of standard output does not have, as ASCII lacks those of names,
    are shown as escapes: output that stops there is half lost. Python does the same for stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


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
