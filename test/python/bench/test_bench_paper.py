"""neuroshard.bench.paper: its tasks, its settings, its tables."""

import json
import math

import pytest

import neuroshard as ns
from neuroshard.bench import paper
from neuroshard.bench._paper.experiments import (ABLATIONS, BASELINES, SWEEPS, Solved, best_of,
                                                 ratio, solve)
from neuroshard.bench._paper.tasks import make_task


def test_tasks_are_those_of_their_seed_and_fit():
    assert make_task(3, 4, 128) == make_task(3, 4, 128) != make_task(4, 4, 128)
    for seed in range(20):
        task = make_task(seed, 2, 32)
        assert {table.dim for table in task.tables} <= {4, 8, 16, 32}
        sizes = [table.rows * table.dim * 4 for table in task.tables]
        assert sum(sizes) <= 15 / 16 * 8 * 2**30 and max(sizes) <= 4 * 2**30
        assert len(task.topology.devices) == 2 and len(task.tables) == len(task.features) <= 59


def test_each_setting_changes_one_thing():
    for letter, key in zip("NKLM", ("candidates", "beam_width", "depth", "grid_points")):
        default = ns.PublishedSettings()
        values = [search["published"] for search in SWEEPS[letter].values()]
        assert values[0] == default
        assert all(one.replace(**{key: getattr(default, key)}) == default for one in values)
    both, beam, grid = (ABLATIONS[name]["published"]
                        for name in ("without both", "without beam", "without grid"))
    assert both == grid.replace(depth=0) and beam == ns.PublishedSettings(depth=0)


def test_parts_of_the_search_are_worth_something():
    tasks = [make_task(seed, 4, 128) for seed in range(1, 13)]
    solved = solve(tasks, {**ABLATIONS, **BASELINES}, "reference")
    base = solved["published"]
    assert None not in base.costs
    assert ratio(solved["default"], base) < 1
    assert 1 < ratio(solved["without grid"], base) < ratio(solved["without both"], base)
    assert 1 < ratio(solved["without beam"], base) < ratio(solved["without both"], base)


def test_means_are_of_tasks_that_both_solve():
    one, base = Solved([2.0, None, 8.0, 5.0], 0), Solved([1.0, 1.0, 1.0, None], 0)
    assert ratio(one, base) == pytest.approx(4)
    assert math.isnan(ratio(one, Solved([None] * 4, 0)))
    assert best_of({"a": one, "b": base}, ("a", "b")).costs == [1.0, 1.0, 1.0, 5.0]
    assert best_of({"a": one}, ("a",)).costs == one.costs


@pytest.mark.parametrize(("experiment", "row"), [
    ("ablations", "| without grid | "), ("sweeps", "| N = 20 | "), ("dims", "| 64 | 0.")])
def test_command(experiment, row, tmp_path, monkeypatch, capsys):
    out = tmp_path / "paper.json"
    monkeypatch.setattr("sys.argv", ["paper", experiment, "--tasks", "2", "-o", str(out)])
    assert paper.main() == 0
    assert row in capsys.readouterr().out
    costs = json.loads(out.read_text())["costs_ms"]
    assert all(len(one) == 2 for one in costs.values())


@pytest.mark.parametrize(("arguments", "text"), [
    ((), "the following arguments are required: experiment"),
    (("sweep",), "invalid choice: 'sweep'"),
    (("dims", "--tasks", "0"), "--tasks: expected a whole number in [1, 100000], got: '0'"),
    (("dims", "-o", "none/x.json"), "there is no folder")])
def test_refuses(arguments, text, capsys):
    with pytest.raises(SystemExit) as end:
        paper.parse(list(arguments))
    assert end.value.code != 0 and text in capsys.readouterr().err


def test_a_model_without_the_objective(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["paper", "dims", "--tasks", "1", "--cost-model", "best"])
    assert paper.main() == 1
    assert capsys.readouterr().err.startswith("error: ")
