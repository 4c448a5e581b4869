"""The planner's C interface gives what plan() gives: the same plan for the same seed, the same
figures, the same errors."""

import ctypes
import json
import os
from pathlib import Path

import pytest

import neuroshard as ns
from neuroshard.cli import plain

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
ROOT = Path(__file__).resolve().parents[3]
OK, NO_PLAN, BAD_INPUT = 0, 1, 2


@pytest.fixture(scope="module")
def library():
    library = ctypes.CDLL(str(BUILD / "lib" / "libneuroshard_planner_c.so"))
    library.neuroshardStringFree.argtypes = [ctypes.c_void_p]
    library.neuroshardPlan.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p,
                                       ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
                                       ctypes.POINTER(ctypes.c_void_p)]
    return library


def plan_in_c(library, workload, **options):
    """The status, and the result or the error."""
    result, error = ctypes.c_void_p(), ctypes.c_void_p()
    status = library.neuroshardPlan(workload.encode(), json.dumps(options).encode(), None, None,
                                    ctypes.byref(result), ctypes.byref(error))
    assert bool(result) == (status == OK) and bool(error) == (status != OK)
    text = ctypes.string_at((result if status == OK else error).value)
    library.neuroshardStringFree(result)
    library.neuroshardStringFree(error)
    return status, json.loads(text)


def workload(topology, **changes):
    problem = ns.ShardingProblem.load(ROOT / "workloads" / "criteo_kaggle.json")
    return problem.replace(topology=topology, **changes)


@pytest.mark.parametrize("options", [
    {"seed": 5},
    {"seed": 5, "algorithm": "random"},
    {"cost_model": "roofline", "target": "torchrec-1.9", "threads": 2, "evaluation_budget": 2000},
    {"objective": {"kind": "step", "dense_bottom_ms": 1.5, "dense_rest_ms": 2,
                   "pipeline_depth": 2}},
    {"algorithm": "published", "objective": "published", "cost_model": "reference",
     "published": {"candidates": 3, "beam_width": 2, "depth": 2}},
    {"algorithm": "dreamshard", "policy_samples": 2, "seed": 9},
], ids=lambda options: options.get("algorithm", "default") + "-" + "-".join(options))
def test_same_result(library, options):
    problem = workload("4xCPU@8GiB")
    status, found = plan_in_c(library, problem.to_json(), **options)
    assert status == OK, found
    arguments = dict(options)
    if isinstance(options.get("objective"), dict):
        arguments["objective"] = ns.Objective(**options["objective"])
    if "published" in options:
        arguments["published"] = ns.PublishedSettings(**options["published"])
    expected = plain.result(ns.plan(problem, progress=False, **arguments))
    del expected["seconds"], found["seconds"]
    assert found == expected


def test_same_plan_from_a_warm_start(library):
    problem = workload("4xCPU@8GiB")
    previous = ns.plan(problem, algorithm="size", progress=False).plan
    status, found = plan_in_c(library, problem.to_json(), warm_start={
        "previous": json.loads(previous.to_json()), "horizon_steps": 1000.0, "tolerance": 0.0})
    assert status == OK, found
    expected = plain.result(ns.plan(problem, progress=False, warm_start=ns.WarmStart(
        previous, horizon_steps=1000.0, tolerance=0.0)))
    del expected["seconds"], found["seconds"]
    assert found["migration"] is not None
    assert found == expected


def test_same_error(library):
    problem = workload("1xCPU@600MiB")
    status, error = plan_in_c(library, problem.to_json())
    with pytest.raises(ns.PlanningError) as raised:
        ns.plan(problem, progress=False)
    assert status == NO_PLAN
    assert error == plain.error(raised.value)
    status, error = plan_in_c(library, '{"schema": "neuroshard.workload.v1"}')
    with pytest.raises(ns.PlanningError) as raised:
        ns.ShardingProblem.from_json('{"schema": "neuroshard.workload.v1"}')
    assert status == BAD_INPUT
    assert error == plain.error(raised.value)


def test_a_callback_ends_the_search(library):
    class Progress(ctypes.Structure):
        _fields_ = [("struct_bytes", ctypes.c_uint64), ("seconds", ctypes.c_double),
                    ("share", ctypes.c_double), ("best_cost_ms", ctypes.c_double),
                    ("phase", ctypes.c_char_p)]

    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(Progress), ctypes.c_void_p)
    def stop(progress, data):
        seen.append((progress[0].struct_bytes, progress[0].share, progress[0].phase, data))
        return 0

    result = ctypes.c_void_p()
    problem = ns.ShardingProblem.load(ROOT / "workloads" / "criteo_kaggle.json")
    status = library.neuroshardPlan(
        problem.replace(topology="16xH200").to_json().encode(), None,
        ctypes.cast(stop, ctypes.c_void_p), 42, ctypes.byref(result), None)
    assert status == OK
    found = json.loads(ctypes.string_at(result.value))
    library.neuroshardStringFree(result)
    ns.Plan.from_json(json.dumps(found["plan"])).verify(problem.replace(topology="16xH200"))
    assert seen and seen[0][0] == ctypes.sizeof(Progress) and seen[0][3] == 42
    assert 0 <= seen[0][1] <= 1 and seen[0][2]
