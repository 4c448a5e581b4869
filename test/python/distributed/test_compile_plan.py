"""Plans are compiled under the problem's constraints, only code of the user's own is kept, and an
artifact is taken for its own plan and problem alone."""

import os
import subprocess

import pytest

import neuroshard as ns
from distributed_models import kinds_of, make_plan, make_problem
from neuroshard.distributed._artifact_check import check_artifact
from neuroshard.distributed._compile_cache import compile_plan, make_artifact
from neuroshard.errors import CompileError, InvalidPlan
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


def test_what_cannot_be_compiled_is_told_without_the_compilers_own_files(tmp_path):
    problem = ruled_problem()
    plan = ns.plan(problem, cost_model="roofline", progress=False).plan
    with pytest.raises(InvalidPlan, match="made for 2 devices, the topology has 3"):
        compile_plan(plan, problem.replace(topology="3xCPU"), tmp_path / "artifact")
    with pytest.raises(TypeError, match="compile_plan: plan: expected a Plan, got: None"):
        compile_plan(None, problem, tmp_path / "artifact")
    wrong = (([], tmp_path, f"output '{tmp_path}' is a directory that is not an artifact; choose another, or remove it"),
             (["--target-cpu", "pentium99"], tmp_path / "artifact", "unknown target cpu 'pentium99'"))
    for options, folder, text in wrong:
        (tmp_path / "something").write_text("")
        with pytest.raises(CompileError) as caught:
            compile_plan(plan, problem, folder, options)
        assert str(caught.value).startswith(text) and "\n" not in str(caught.value)


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


# artifact=: what it was compiled for is compared with what is given

@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A problem, its plan, its artifact."""
    problem = ns.ShardingProblem(
        tables=[ns.Table("user", 500, 16, optimizer=ns.Optimizer("adagrad", eps=1e-6)),
                ns.Table("item", 500, 16, optimizer="rowwise_adagrad")],
        features=[ns.Feature("user_id", "user"), ns.Feature("clicked", "item", pooling="mean")],
        batch=ns.Batch(64, wire_type="bf16"), topology="2x2xCPU")
    plan = ns.plan(problem, algorithm="size", cost_model="roofline").plan
    folder = tmp_path_factory.mktemp("given") / "artifact"
    compile_plan(plan, problem, folder, ["-O", "0"])
    return problem, plan, folder


def with_table(problem, number, **changes):
    tables = list(problem.tables)
    tables[number] = tables[number].replace(**changes)
    return problem.replace(tables=tables)


def with_feature(problem, number, **changes):
    features = list(problem.features)
    features[number] = features[number].replace(**changes)
    return problem.replace(features=features)


def with_batch(problem, **changes):
    return problem.replace(batch=problem.batch.replace(**changes))


def with_weights(problem):
    return with_feature(with_feature(problem, 0, weighted=True), 1, weighted=True, pooling="sum")


DIFFERENCES = {
    "pooling": (lambda p: with_feature(p, 1, pooling="sum"), "feature \"clicked\", pooling: mean", "sum"),
    "wire type": (lambda p: with_batch(p, wire_type="f32"), "wire type: bf16", "f32"),
    "output type": (lambda p: with_batch(p, output_type="f16"),
                    "feature \"user_id\", output type: f32", "f16"),
    "id type": (lambda p: with_batch(p, id_type="i32"), "type of ids: i64", "i32"),
    "optimizer": (lambda p: with_table(p, 0, optimizer="sgd"),
                  "table \"user\", optimizer's kind: adagrad", "sgd"),
    "eps": (lambda p: with_table(p, 0, optimizer=ns.Optimizer("adagrad", eps=1e-3)),
            "table \"user\", optimizer's eps: 1e-06", "0.001"),
    "element type": (lambda p: with_table(p, 1, type="f16"), "table \"item\", type: f32", "f16"),
    "rows": (lambda p: with_table(p, 1, rows=501), "table \"item\", rows: 500", "501"),
    "mapping": (lambda p: with_feature(with_feature(p, 0, table="item"), 1, table="user"),
                "feature \"user_id\", table: user", "item"),
    "weights": (with_weights, "feature \"user_id\", weighted: False", "True"),
    "tables": (lambda p: p.replace(tables=p.tables[::-1]), "tables: [\"user\", \"item\"]",
               "[\"item\", \"user\"]"),
    "features": (lambda p: p.replace(features=p.features[::-1]),
                 "features: [\"user_id\", \"clicked\"]", "[\"clicked\", \"user_id\"]"),
    "semantics": (lambda p: p.replace(optimizer_semantics="per_shard"),
                  "optimizer semantics: exact", "per_shard"),
    "groups": (lambda p: p.replace(topology="1x4xCPU"), "groups of devices: [[0, 1], [2, 3]]", "[]"),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_an_artifact_of_another_problem_is_refused(model, name):
    problem, plan, folder = model
    change, compiled, given = DIFFERENCES[name]
    check_artifact(folder, plan, problem)
    with pytest.raises(ValueError) as raised:
        check_artifact(folder, plan, change(problem))
    text = str(raised.value)
    assert f"was compiled for another problem: {compiled} in the artifact, {given} in the problem" \
        in text, text
    assert text.endswith("; compile this one, or leave artifact= out")


def test_an_artifact_of_another_plan_is_refused(model):
    problem, plan, folder = model
    moved = [one.replace(devices=[(one.devices[0] + 1) % 4]) for one in plan.shards]
    with pytest.raises(ValueError, match="was compiled for another plan; compile this one, or leave"):
        check_artifact(folder, plan.replace(shards=moved), problem)


@pytest.mark.parametrize(("number", "unpooled"), [(0, False), (1, False), (5, False), (3, True)])
def test_an_artifact_of_the_same_problem_is_taken(tmp_path, number, unpooled):
    problem = make_problem(number, 2, unpooled=unpooled)
    plan = make_plan(problem, kinds_of(number), 2, 1)
    compile_plan(plan, problem, tmp_path / "artifact", ["-O", "0"])
    check_artifact(tmp_path / "artifact", plan, problem)
