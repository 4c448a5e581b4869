"""The planner's C interface gives what plan() gives: the same plan for the same seed, the same
figures, the same errors."""

import ctypes
import json
from pathlib import Path

import pytest

import neuroshard as ns
from neuroshard.cli._output import json_results
from support.planner_c import BAD_INPUT, NO_PLAN, OK, load_library, plan_in_c

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def library():
    return load_library()


def workload(topology, **changes):
    problem = ns.ShardingProblem.load(ROOT / "workloads" / "criteo_kaggle.json")
    return problem.replace(topology=topology, **changes)


@pytest.mark.parametrize("options", [
    {"seed": 5},
    {"seed": 5, "algorithm": "random"},
    {"cost_model": "roofline", "target": "torchrec-1.9", "threads": 2, "evaluation_budget": 2000},
    {"dense_bottom_ms": 1.5, "dense_rest_ms": 2, "pipeline_depth": 2},
    {"algorithm": "published", "objective": "published", "cost_model": "reference",
     "candidates": 3, "beam_width": 2, "depth": 2},
    {"algorithm": "dreamshard", "policy_samples": 2, "seed": 9},
], ids=lambda options: options.get("algorithm", "default") + "-" + "-".join(options))
def test_same_result(library, options):
    problem = workload("4xCPU@8GiB")
    status, found = plan_in_c(library, problem.to_json(), **options)
    assert status == OK, found
    arguments = dict(options)
    dense = {name: arguments.pop(name) for name in options
             if name.startswith("dense_") or name == "pipeline_depth"}
    arguments["objective"] = ns.Objective(options.get("objective", "step"), **dense)
    published = {name: arguments.pop(name) for name in ("candidates", "beam_width", "depth")
                 if name in options}
    if published:
        arguments["published"] = ns.PublishedSettings(**published)
    expected = json_results.result(ns.plan(problem, progress=False, **arguments))
    del expected["seconds"], found["seconds"]
    assert found == expected


def test_same_plan_from_a_warm_start(library):
    problem = workload("4xCPU@8GiB")
    previous = ns.plan(problem, algorithm="size", progress=False).plan
    status, found = plan_in_c(library, problem.to_json(),
                              previous=json.loads(previous.to_json()), horizon_steps=1000.0,
                              tolerance=0.0)
    assert status == OK, found
    expected = json_results.result(ns.plan(problem, progress=False, warm_start=ns.WarmStart(
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
    assert error == json_results.error(raised.value)
    status, error = plan_in_c(library, '{"schema": "neuroshard.workload.v1"}')
    with pytest.raises(ns.PlanningError) as raised:
        ns.ShardingProblem.from_json('{"schema": "neuroshard.workload.v1"}')
    assert status == BAD_INPUT
    assert error == json_results.error(raised.value)


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
