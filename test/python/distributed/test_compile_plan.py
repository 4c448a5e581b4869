"""compile_plan() compiles the plan of plan() under the same constraints."""

import subprocess

import neuroshard as ns
from neuroshard.distributed._compile_cache import compile_plan
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
