"""Functions of the user, named as file.py:function: they are imported and called, and their errors
told with a place in their code."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import neuroshard as ns
from neuroshard.cli._failures import InputError, UserCodeError, place_of
from neuroshard.cli._input.input_files import existing


def names_function(source: str) -> bool:
    return ".py:" in source or source.endswith(".py")


def code_files(sources: Iterable[str]) -> list[str]:
    """The files of those sources that name functions."""
    return [one.rpartition(":")[0] for one in sources if names_function(one)]


def function_of(source: str) -> Callable[..., Any]:
    """The function that file.py:name names."""
    path, _, name = source.rpartition(":")
    if not path or not name.isidentifier():
        raise InputError(f"{source}: expected file.py:function, for instance model.py:build")
    path = os.path.abspath(existing(path, "Python code"))
    spec = importlib.util.spec_from_file_location("neuroshard_user_code", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # As with `python file.py`, it may import modules beside it.
    sys.path.insert(0, os.path.dirname(path))
    run_user_code(source, path, lambda: spec.loader.exec_module(module))
    found = getattr(module, name, None)
    if not callable(found):
        there = [key for key, value in vars(module).items()
                 if callable(value) and getattr(value, "__module__", "") == spec.name]
        raise InputError(f"{path} has no function {name}; it has {', '.join(there) or 'none'}")
    return found


def call(source: str) -> Any:
    """The result of the function that file.py:name names."""
    function = function_of(source)
    return run_user_code(source, os.path.abspath(source.rpartition(":")[0]), function)


def run_user_code(source: str, path: str, code: Callable[[], Any]) -> Any:
    try:
        return code()
    except SyntaxError as error:
        raise InputError(f"{source}: line {error.lineno}: {error.msg}") from error
    except ns.Error as error:
        raise InputError(f"{source}: {error} ({place_of(error, path)})") from error
    except (Exception, SystemExit) as error:
        raise UserCodeError(f"{source}: {type(error).__name__}: {error} "
                            f"({place_of(error, path)})") from error
