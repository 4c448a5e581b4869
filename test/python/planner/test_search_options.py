"""Every option of the search can be given to the pass, the pipeline, the compiler, Python, C and the
command line, and means the same: the plans have the same provenance."""

import json
import subprocess

import pytest

import neuroshard as ns
from neuroshard.cli import main
from neuroshard.planning import OPTIONS, PUBLISHED
from support import artifact
from support.planner_c import OK, load_library, plan_in_c
from support.planning import ROOT, small_problem

POLICY = ROOT / "models" / "placement_policy.safetensors"

# Together all options of the table, none at its default.
CASES = {
    "step": {"cost_model": "roofline", "dense_bottom_ms": 0.25, "dense_rest_ms": 1.5,
             "pipeline_depth": 2, "deadline_s": 5000.5, "evaluation_budget": 300, "seed": 7,
             "threads": 1, "wire_types": "bf16,f16", "tiers": "hbm,ssd"},
    "published": {"algorithm": "published", "objective": "published", "cost_model": "reference",
                  "candidates": 4, "beam_width": 2, "depth": 3, "grid_points": 5,
                  "grid_begin": 1.1, "grid_end": 1.4, "seed": 2**64 - 1},
    "dreamshard": {"algorithm": "dreamshard", "policy": str(POLICY), "policy_samples": 2,
                   "seed": 9, "cost_model": "roofline"},
    "warm": {"previous": "previous.json", "horizon_steps": 1000.5, "tolerance": 0.125,
             "cost_model": "roofline", "evaluation_budget": 300},
}
# Not among the settings: entries of their own, files, and what does not change the plan.
ELSEWHERE = {"algorithm", "objective", "cost_model", "seed", "previous", "policy", "threads"}


def test_the_cases_have_every_option():
    assert set().union(*CASES.values()) == set(OPTIONS)
    for options in CASES.values():
        for key, value in options.items():
            assert str(value) != OPTIONS[key]["default"] or key == "algorithm", key


@pytest.fixture(scope="module")
def library():
    return load_library()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """With the problem as a workload and as IR, and a plan in use."""
    monkeypatch.chdir(tmp_path)
    problem = small_problem(batch=4096)
    problem.save("workload.json")
    ns.plan(problem, algorithm="size", cost_model="roofline", progress=False).save("previous.json")
    run("neuroshard-translate", "--workload-to-mlir", "workload.json", "-o", "model.mlir")
    return tmp_path


def run(tool, *arguments):
    done = subprocess.run([artifact.tool(tool), *arguments], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr


def by_pass(options, name="plan"):
    texts = [f"{OPTIONS[key]['flag']}={value}" for key, value in options.items()]
    run("neuroshard-opt", f"--neuroshard-{name}={' '.join(texts)}", "model.mlir", "-o", "out.mlir")
    run("neuroshard-translate", "--plan-to-json", "out.mlir", "-o", "out.json")
    return ns.Plan.load("out.json")


def by_pipeline(options):
    return by_pass(options, "to-planned")


def flags(options):
    return [text for key, value in options.items()
            for text in (f"--{OPTIONS[key]['flag']}", str(value))]


def by_compiler(options):
    run("neuroshard-compile", "model.mlir", *flags(options), "-o", "artifact")
    return ns.Plan.load("artifact/plan.json")


def by_command_line(options):
    assert main(["plan", "workload.json", *flags(options), "-o", "cli.json"]) == 0
    return ns.Plan.load("cli.json")


def by_python(options):
    options = dict(options)
    dense = {key: options.pop(key) for key in ("dense_bottom_ms", "dense_rest_ms",
                                               "pipeline_depth") if key in options}
    options["objective"] = ns.Objective(options.get("objective", "step"), **dense)
    published = {key: options.pop(key) for key in PUBLISHED if key in options}
    if published:
        options["published"] = ns.PublishedSettings(**published)
    if "previous" in options:
        options["warm_start"] = ns.WarmStart(ns.Plan.load(options.pop("previous")),
                                             options.pop("horizon_steps"),
                                             options.pop("tolerance"))
    return ns.plan(ns.ShardingProblem.load("workload.json"), progress=False, **options).plan


def by_c(options, library):
    options = dict(options)
    if "previous" in options:
        options["previous"] = json.loads(ns.Plan.load(options["previous"]).to_json())
    with open("workload.json", encoding="utf-8") as file:
        status, found = plan_in_c(library, file.read(), **options)
    assert status == OK, found
    return ns.Plan.from_json(json.dumps(found["plan"]))


@pytest.mark.parametrize("case", CASES)
def test_same_provenance_everywhere(case, folder, library):
    options = CASES[case]
    plans = {way.__name__: way(options) for way in (by_pass, by_pipeline, by_compiler,
                                                    by_command_line, by_python)}
    plans["by_c"] = by_c(options, library)
    expected = plans["by_python"].provenance
    settings = {one.name: one.value for one in expected.settings}
    for key, value in options.items():
        if key not in ELSEWHERE:
            assert type(value)(settings[key]) == value, key
    assert expected.seed == options.get("seed", 0)
    assert expected.algorithm == options.get("algorithm", "default")
    assert expected.objective == options.get("objective", "step")
    for name, plan in plans.items():
        costs = [plan.provenance.predicted_cost_ms, plan.provenance.lower_bound_ms]
        assert costs == pytest.approx([expected.predicted_cost_ms, expected.lower_bound_ms]), name
        assert plan.provenance.replace(predicted_cost_ms=None, lower_bound_ms=None) == (
            expected.replace(predicted_cost_ms=None, lower_bound_ms=None)), name


@pytest.mark.parametrize("options, message", [
    ({"threads": 1025}, "expected a whole number in [0, 1024], got: 1025"),
    ({"deadline_s": 2e9}, "expected a number in [0, 1e+09], got: "),
    ({"horizon_steps": 5.5}, "previous"),
    ({"beam_width": 4}, "published")])
def test_same_refusal_everywhere(options, message, folder, library, capsys):
    (key, value), = options.items()
    said = []
    for tool, texts in (
            ("neuroshard-opt", [f"--neuroshard-plan={OPTIONS[key]['flag']}={value}", "model.mlir"]),
            ("neuroshard-compile", ["model.mlir", *flags(options), "-o", "artifact"])):
        done = subprocess.run([artifact.tool(tool), *texts], capture_output=True, text=True,
                              check=False)
        assert done.returncode != 0
        said.append(done.stderr)
    assert main(["plan", "workload.json", *flags(options)]) != 0
    said.append(capsys.readouterr().err)
    with open("workload.json", encoding="utf-8") as file:
        said.append(plan_in_c(library, file.read(), **options)[1]["message"])
    assert all(message in text for text in said), said
