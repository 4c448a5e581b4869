"""Which suites ./dev check runs, what it builds for them, and what a preset that does not build counts."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tools" / "dev"))
import check  # noqa: E402


def context_in(folder, environment=None):
    return check.Context(folder, folder / "results", "", environment or {})


def test_long_suites_run_with_all(tmp_path):
    every = check.suites_of(context_in(tmp_path, {"NEUROSHARD_ALL": "1"}))
    assert every == list(check.SUITES)
    assert set(every) - set(check.suites_of(context_in(tmp_path))) == {"sanitizers"}


@pytest.mark.parametrize(("suites", "targets"), [
    (["format"], ()),
    (["sanitizers", "structure"], ()),
    (["unit"], ("all",)),
    (["format", "lit"], ("all",)),
])
def test_suites_build_what_they_need(tmp_path, suites, targets):
    assert check.targets_of(Namespace(suite=suites), context_in(tmp_path)) == targets


def test_a_preset_that_does_not_build_fails_and_the_next_one_runs(tmp_path, monkeypatch):
    commands = []

    def run(command, context, extra_environment=None):
        commands.append([str(part) for part in command])
        return int(commands[-1][1] == "--build" and "first" in commands[-1][2])

    def suite(context):
        assert context.build == ROOT / "build" / "second"
        assert context.environment["NEUROSHARD_BUILD_DIR"] == str(context.build)
        assert "NEUROSHARD_ALL" not in context.environment
        return check.Tally(passed=3)

    monkeypatch.setenv("NEUROSHARD_ALL", "1")
    monkeypatch.setattr(check, "run", run)
    monkeypatch.setattr(check, "SANITIZED", {"first": (suite,), "second": (suite, suite)})
    tally = check.run_sanitizers(context_in(tmp_path))
    assert (tally.passed, tally.failed) == (6, 1)
    assert tally.problem == "the preset first does not build"
    assert ["cmake", "--preset", "second"] in commands
