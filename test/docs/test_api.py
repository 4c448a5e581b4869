"""Every public name of the Python packages is on one page of docs/api, and its docstring says what each of its
arguments is and, of functions, how it fails."""

import importlib
import inspect
import os
import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
LISTED = re.compile(r"^::: neuroshard\.(\S+)$", re.MULTILINE)
PACKAGES = ("", "distributed.", "serving.", "export.", "torchrec.")
FAILS = re.compile(r"[Rr]aises|Error\b|InvalidPlan|InvalidProblem|\berror")
# Of a class that is not for users to make, or whose arguments another class describes.
MADE_BY = re.compile(r"\bMade by ")
AS_THOSE_OF = re.compile(r"Arguments and\s+methods are those of (\w+)")
# torch calls these.
HOOKS = {"forward", "get_extra_state", "set_extra_state", "extra_repr"}

sys.path.insert(0, str(BUILD / "python"))
if not list((BUILD / "python" / "neuroshard").glob("_planner.*.so")):
    pytest.skip("a build with sanitizers has no Python module", allow_module_level=True)


def public():
    """Every public object once, by its name below neuroshard: the first package that has it."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(f"neuroshard.{package}".rstrip("."))
        for name in module.__all__:
            value = getattr(module, name)
            # neuroshard.export is the package, which is called like its function.
            if not isinstance(value, types.ModuleType) and value not in found.values():
                found[package + name] = value
    return found


PUBLIC = public()


def text_of(value):
    text = inspect.getdoc(value) or ""
    if inspect.isclass(value):
        text += " " + (inspect.getdoc(value.__init__) or "")
        other = AS_THOSE_OF.search(text)
        text += " " + text_of(PUBLIC[other[1]]) if other else ""
    return text


def arguments_of(value):
    try:
        return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]
    except (TypeError, ValueError):  # compiled
        return []


def undescribed(value):
    if inspect.isclass(value) and (issubclass(value, BaseException) or MADE_BY.search(text_of(value))):
        return []
    return [name for name in arguments_of(value) if not re.search(rf"\b{re.escape(name)}\b", text_of(value))]


def members_of(value):
    """The public functions and properties that a class defines or has from a private base."""
    found = {}
    for one in reversed(value.__mro__):
        if one.__module__.startswith("neuroshard"):
            found.update(vars(one))
    for name, member in found.items():
        function = (member.__func__ if isinstance(member, (classmethod, staticmethod)) else
                    member.fget if isinstance(member, property) else member)
        if not name.startswith("_") and name not in HOOKS and inspect.isfunction(function):
            yield name, function


def listed():
    return [name.removeprefix("_planner.") for page in sorted((ROOT / "docs/api").glob("*.md"))
            for name in LISTED.findall(page.read_text(encoding="utf-8"))]


def test_every_public_name_is_on_one_page():
    names = listed()
    assert len(names) == len(set(names))
    shown = [value_of(name) for name in names]
    assert [name for name, value in PUBLIC.items() if value not in shown] == []
    assert [name for name, value in zip(names, shown) if value not in PUBLIC.values()] == []


def value_of(name):
    package, _, last = f"neuroshard.{name}".rpartition(".")
    return getattr(importlib.import_module(package), last)


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_describe_arguments_and_errors(name):
    value = PUBLIC[name]
    assert inspect.getdoc(value), "has no docstring"
    assert undescribed(value) == []
    if inspect.isfunction(value) and arguments_of(value):
        assert FAILS.search(text_of(value)), "does not say how it fails"
    members = dict(members_of(value)) if inspect.isclass(value) else {}
    assert [one for one, member in members.items() if not inspect.getdoc(member)] == []
    assert {one: undescribed(member) for one, member in members.items() if undescribed(member)} == {}
