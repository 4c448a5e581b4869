"""Plans are compiled under the problem's constraints, and only code of the user's own is kept."""

import os
import subprocess

import pytest

import neuroshard as ns
from neuroshard.distributed._compile_cache import compile_plan, make_artifact
from neuroshard.errors import CompileError
from support import artifact


def ruled_problem():
    """A problem that fits only with its own reserves: those of the class CPU are 512 MiB."""
    return ns.ShardingProblem(
        tables=[ns.Table("a", 1000, 16, optimizer="sgd"), ns.Table("b", 1000, 16, optimizer="sgd")],
        features=[ns.Feature("a_id", "a"), ns.Feature("b_id", "b")], batch=64,
        topology="2xCPU@300MiB",
        constraints=ns.Constraints(
            pins={"a": [0]}, forbids={"b": [0]}, separate=[["a", "b"]],
            reserves=ns.Reserves(dense_bytes="1MiB", fragmentation_bytes=0,
                                 communicator_bytes=0)))


def test_constraints_reach_the_compiler(tmp_path):
    problem = ruled_problem()
    plan = ns.plan(problem, cost_model="roofline", progress=False).plan
    compile_plan(plan, problem, tmp_path / "artifact", ["--emit-ir"])
    planned = (tmp_path / "artifact" / "ir" / "2-planned.mlir").read_text()
    for rule in ("dense_reserve_bytes = 1048576", "forbid = [", "separate = ["):
        assert rule in planned, planned
    done = subprocess.run([artifact.tool("neuroshard-opt"), "--neuroshard-verify-planned",
                           tmp_path / "artifact" / "ir" / "2-planned.mlir"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Makes the artifact of a plan, in a cache of its own."""
    monkeypatch.setenv("NEUROSHARD_CACHE", str(tmp_path / "cache"))
    problem = ruled_problem()
    plan = ns.plan(problem, cost_model="roofline", progress=False).plan
    return lambda: make_artifact(plan, problem, ["-O", "0"])


def contents(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_an_artifact_is_compiled_once(cached):
    folder = cached()
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    before = contents(folder)
    assert cached() == folder and contents(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize("damage", [
    lambda folder: os.truncate(folder / "program0.so", 4096),
    lambda folder: (folder / "program0.so").unlink(),
    lambda folder: (folder / "manifest.json").write_text("{}"),
    lambda folder: (folder / "manifest.json").unlink(),
    lambda folder: (folder / "plan.json").write_text("{}")])
def test_a_damaged_artifact_is_compiled_again(cached, damage):
    folder = cached()
    before = {name: data for name, (data, _) in contents(folder).items()}
    damage(folder)
    assert cached() == folder
    assert {name: data for name, (data, _) in contents(folder).items()} == before


@pytest.mark.parametrize("shared", [lambda folder: folder, lambda folder: folder.parent])
def test_what_others_may_write_is_not_run(cached, shared):
    folder = cached()
    shared(folder).chmod(0o770)
    with pytest.raises(CompileError, match=f"{shared(folder)} may be written by other users"):
        cached()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_what_others_own_is_not_run(cached):
    folder = cached()
    os.chown(folder, 12345, -1)
    with pytest.raises(CompileError, match=f"{folder} belongs to user 12345"):
        cached()
