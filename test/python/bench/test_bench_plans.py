"""neuroshard-bench plans: one small task on two ranks, its table and its file; the statistics."""

import json
import math
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from neuroshard.bench import plans as bench_plans
from neuroshard.bench._plans.report import (inside_of, losses, ordered_pairs, ranks_of,
                                                 spearman)
from neuroshard.calibration import draw_ids, make_task
from support.artifact import tool


def run(*arguments):
    return subprocess.run([tool("neuroshard-bench"), "plans", "--python", sys.executable,
                           *arguments], capture_output=True, text=True, timeout=1200, check=False)


def test_runs_plans_on_ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("NEUROSHARD_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "plans.json"
    done = run("--tasks", "1", "--rounds", "4", "--batch", "32", "--megabytes", "1",
               "--algorithms", "default,dim", "--wire-types", "bf16", "--no-copies", "-o",
               str(out))
    assert done.returncode == 0, done.stderr
    assert "1 tasks on 2 ranks" in done.stdout and "rank correlation" in done.stdout
    plans = json.loads(out.read_text())["plans"]
    assert [plan["algorithm"] for plan in plans] == ["default", "dim", "wire bf16", "no copies"]
    for plan in plans:
        assert set(plan["measured"]) == {"step", "forward", "backward", "exchange"}
        assert plan["measured"]["step"] > plan["measured"]["forward"] > 0
        assert plan["predicted"]["step"] > 0 and plan["memory_bytes"] > 0


def test_runs_torchrec_beside(tmp_path, monkeypatch):
    """Models 8 and 9: TorchRec has Adagrad on CPUs, but no Adam."""
    monkeypatch.setenv("NEUROSHARD_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "plans.json"
    done = run("--tasks", "2", "--seed", "8", "--rounds", "4", "--batch", "32", "--megabytes", "1",
               "--algorithms", "default", "--torchrec", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert "its planner's plan over ours for it" in done.stdout and "of 1 tasks" in done.stdout
    plans = json.loads(out.read_text())["plans"]
    assert [(plan["task"], plan["algorithm"]) for plan in plans] == [
        (0, "default"), (0, "dmp torchrec"), (0, "dmp default"), (1, "default"),
        (1, "dmp torchrec")]
    for plan in plans[1:3]:
        assert set(plan["measured"]) == {"step"} and plan["measured"]["step"] > 0
    assert "with the optimizers adam" in plans[4]["failure"] and not plans[4]["measured"]


@pytest.mark.parametrize(("arguments", "text"), [
    (("--algorithms", "best"), "unknown algorithm best; there are default"),
    (("--rounds", "1"), "--rounds: expected a whole number in [4, 1000000], got: '1'"),
    (("--wire-types", "bf16,int9"), "--wire-types: unknown wire type int9; there are auto, f32"),
    (("-o", "none/plans.json"), "--output 'none/plans.json': there is no folder"),
])
def test_refuses(arguments, text, capsys):
    with pytest.raises(SystemExit) as end:
        bench_plans.parse(list(arguments))
    assert end.value.code != 0 and text in capsys.readouterr().err


def test_a_refusal_ends_the_command():
    done = run("--rounds", "1")
    assert done.returncode != 0 and "--rounds: expected" in done.stderr


def test_statistics():
    assert ranks_of([5.0, 1.0, 5.0, 9.0]) == [1.5, 0, 1.5, 3]
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == -1
    assert spearman([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))


def test_tasks_are_seeded():
    task = make_task(3, "2xCPU", 64, 2)
    assert task == make_task(3, "2xCPU", 64, 2) != make_task(4, "2xCPU", 64, 2)
    assert max(feature.mean_pooling for feature in task.features) == 100
    ids = draw_ids(task, 5, 1)
    assert ids.offsets[-1] == len(ids.ids) == 5 * sum(int(one.mean_pooling)
                                                      for one in task.features)


def made_task(**steps):
    """Plans by name, of (predicted, measured) steps; no measured one: it did not run."""
    return {name: {"predicted": {"step": predicted},
                   "measured": {"step": measured} if measured else {}}
            for name, (predicted, measured) in steps.items()}


def test_steps_inside_their_intervals():
    def plan(low, high, step):
        return {"predicted": {"low": low, "high": high}, "measured": {"step": step}}
    assert inside_of([plan(1, 2, 1.5), plan(1, 2, 2.5), plan(0, 0, 1), plan(1, 2, 0.5)]) == [
        True, False, False]


def test_pairs_and_losses():
    tasks = [made_task(default=(10, 10), dim=(12, 11.5), random=(9, 13), lookup=(5, 0)),
             made_task(default=(10, 10.2), dim=(10, 10))]
    assert ordered_pairs(tasks, 0.1) == (1, 3)  # dim; not random, which is slower than both
    assert ordered_pairs(tasks, 0.2) == (0, 1)
    assert losses(tasks, "default", 0.01) == (1, 2)
    assert losses(tasks, "default", 0.03) == (0, 2)
    assert losses(tasks, "lookup", 0.03) == (0, 0)
