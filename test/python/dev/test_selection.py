"""./dev test builds what the tests of its filter need, and no more."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tools" / "dev"))
import selection  # noqa: E402

PYTHON = ("unit", "lit", "python", "docs", "consumer")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A few tests of each kind; the build has two test programs."""
    for name, text in {
            "Dialect/shapes.mlir": "// RUN: neuroshard-opt %s | FileCheck %s",
            "Dialect/plans.mlir": "// RUN: neuroshard-opt-raw %s --neuroshard-plan -o %t.txt\n"
                                  "// RUN: neuroshard-translate --plan-to-json %t.txt",
            "Types/jagged.mlir": "// RUN: neuroshard-dialect-opt-raw %s --cse | FileCheck %s",
            "Compile/run.mlir": "// RUN: neuroshard-compile %s -o %t && neuroshard-run %t",
            "Native/jit.mlir": "// RUN: neuroshard-opt %s | mlir-runner -shared %neuroshard_lib/x",
            "Plugin/passes.mlir": "// DEFINE: %{load} = --load=%neuroshard_lib/plugin.so\n"
                                  "// RUN: neuroshard-opt %{load} %s",
            "Inputs/shapes.mlir": "// RUN: neuroshard-run",
            "python/cli/test_cli.py": "def test_plan():\n    pass\n"}.items():
        file = tmp_path / "test" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(selection, "unit_programs", lambda _, pattern: [
        name for name in ("ModelTests", "PlannerTests") if selection.re.search(pattern, name)])
    return tmp_path


@pytest.mark.parametrize(("pattern", "suites", "targets"), [
    ("ModelTests", ("unit",), ("ModelTests",)),
    ("shapes", ("lit",), ("neuroshard-opt",)),
    ("dialect/", ("lit",), ("neuroshard-opt", "neuroshard-translate")),
    ("Model|shapes", ("unit", "lit"), ("ModelTests", "neuroshard-opt")),
    ("jagged", ("lit",), ("neuroshard-dialect-opt",)),
    ("Compile", ("lit",), ("all",)),
    ("jit", ("lit",), ("all",)),
    ("passes", ("lit",), ("all",)),
    ("test_plan", PYTHON, ("all",)),
    ("test_cli.py", PYTHON, ("all",)),
    ("a parameter", PYTHON, ("all",)),
    (".", PYTHON, ("all",)),
])
def test_targets_are_those_of_the_tests(checkout, pattern, suites, targets):
    assert selection.select(checkout, None, pattern) == selection.Selection(suites, targets)


def test_programs_of_this_build():
    build = Path(os.environ["NEUROSHARD_BUILD_DIR"])
    assert selection.unit_programs(build, "^PlannerTests$") == ["PlannerTests"]
