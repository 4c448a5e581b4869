"""How tables are frozen: the command, and what is left of freezes that were killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import neuroshard as ns
from neuroshard.serving import served
from neuroshard.serving._scratch import scratch_beside
from support.commands import make_runner

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])


def test_the_command_freezes(small, tmp_path, capsys, monkeypatch):
    """The folder is that of ns.freeze, also under a plan for several devices; wrong input is one line."""
    problem, weights, _ = small
    monkeypatch.chdir(tmp_path)
    problem.save("problem.json")
    torch.save(weights, "weights.pt")
    run = make_runner(capsys, tmp_path)
    done = run("freeze", "weights.pt", "problem.json", "-o", "made", "--dtype", "user=int4", "--dtype", "f16")
    assert done.code == 0 and "to made" in done.out
    types = {table.name: "int4" if table.name == "user" else "f16" for table in problem.tables}
    expected = ns.freeze(weights, problem, tmp_path / "expected", dtype=types)
    for path in expected.glob("weights*.bin"):
        assert (tmp_path / "made" / path.name).read_bytes() == path.read_bytes()
    served(problem.replace(topology="2xCPU")).save("served.json")
    assert run("plan", "problem.json", "--topology", "2xCPU", "--mode", "inference", "-o", "plan.json").code == 0
    ns.Plan.load("plan.json").replace(table_fingerprint="").save("plan.json")
    found = run("freeze", "weights.pt", "problem.json", "-o", "two", "--plan", "plan.json", "--json").json
    assert found["folder"].endswith("two") and "manifest.json" in found["files"]
    for arguments, text in (
            (["nothing.pt", "problem.json"], "there is no file or folder nothing.pt"),
            (["weights.pt", "nothing.json"], "there is no file nothing.json"),
            (["weights.pt", "problem.json", "--dtype", "int3"], "expected one of"),
            (["weights.pt", "problem.json", "--dtype", "nobody=int8"],
             "there is no table 'nobody' in the problem; it has user, item")):
        done = run("freeze", *arguments, "-o", "wrong")
        assert done.code == 1 and text in done.err and not (tmp_path / "wrong").exists(), done.err
    assert run("freeze", "weights.pt", "problem.json", "-o", "wrong", "--dtype", "int8", "--dtype", "f16").code == 2


def test_a_folder_that_cannot_be_written_is_named(small, tmp_path):
    """Rather than files in the hidden folder beside it; and so is a plan for other devices."""
    problem, weights, _ = small
    (tmp_path / "file").write_text("")
    for folder in (Path("/proc/frozen"), tmp_path / "file" / "frozen"):
        with pytest.raises(OSError, match=f"freeze: cannot write {folder}: [A-Z]") as caught:
            ns.freeze(weights, problem, folder)
        assert ".freeze." not in str(caught.value)
    plan = ns.plan(served(problem.replace(topology="3xCPU"))).plan
    with pytest.raises(ns.InvalidPlan, match="made for 3 devices, the topology has 2"):
        ns.freeze(weights, problem.replace(topology="2xCPU"), tmp_path / "frozen", plan=plan)


def test_rows_in_an_order_of_their_own_are_frozen_by_id(small, tmp_path):
    """A state dict with an order beside a table's rows; an order that is none, or for a frozen folder, is refused."""
    problem, weights, expected = small
    order = torch.randperm(40, generator=torch.Generator().manual_seed(2))
    by_row = torch.empty_like(weights["user"])
    by_row[order] = weights["user"]
    state = {"tables.user.weight": by_row, "tables.user.order": order, "tables.item.weight": weights["item"]}
    made = ns.freeze(state, problem, tmp_path / "frozen")
    for path in expected.glob("weights*.bin"):
        assert (made / path.name).read_bytes() == path.read_bytes()
    for wrong in (order[1:], order.clamp(max=38), order.float(), order[None]):
        with pytest.raises(ns.TensorError, match=r"tables.user.order: expected a tensor of int64 \[40\]"):
            ns.freeze(state | {"tables.user.order": wrong}, problem, tmp_path / "wrong")


KILLED = """
import os, signal, sys, torch, neuroshard as ns
from neuroshard.serving import _freeze, _scratch
problem = ns.ShardingProblem.load(sys.argv[1] + "/problem.json")
weights = torch.load(sys.argv[1] + "/weights.pt")
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "writing":
    _freeze._write_weights = die
else:
    def put(scratch, folder):
        folder.rename(scratch / _scratch.BEFORE)
        die()
    _freeze.put = put
ns.freeze(weights, problem, sys.argv[1] + "/frozen")
"""


@pytest.mark.parametrize("place", ("writing", "moving"))
def test_what_killed_freezes_leave(small, tmp_path, place):
    """The next one removes it, and puts back what was there; not the folder of one that runs."""
    problem, weights, _ = small
    folder = ns.freeze(weights, problem, tmp_path / "frozen")
    problem.save(tmp_path / "problem.json")
    torch.save(weights, tmp_path / "weights.pt")
    (tmp_path / "killed.py").write_text(KILLED)
    done = subprocess.run([sys.executable, tmp_path / "killed.py", tmp_path, place], check=False, timeout=200,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert done.returncode == -9
    left = list(tmp_path.glob(".freeze.*"))
    assert len(left) == 1 and folder.exists() == (place == "writing")
    with scratch_beside(tmp_path / "other") as running:
        assert not left[0].exists() and running.exists() and folder.exists()
        ns.serve(folder).close()
        ns.freeze(weights, problem, tmp_path / "another")
        assert running.exists()
    assert not list(tmp_path.glob(".freeze.*"))
