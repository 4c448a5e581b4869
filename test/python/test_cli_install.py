"""The installed package alone: what a wheel has, used by a Python without other packages."""

import os
import subprocess
import sys

import pytest

from support.planning import ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that `import neuroshard` looks in; its component of the build installed."""
    prefix = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", os.environ["NEUROSHARD_BUILD_DIR"], "--component",
                    "python", "--prefix", prefix], check=True, capture_output=True)
    place, = prefix.glob("lib/python3.*/site-packages")
    return place


def python(installed, code):
    """Without the site-packages of this one."""
    return subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True,
                          env={"PYTHONPATH": str(installed), "PATH": ""}, timeout=100)


def test_it_has_types_models_and_the_report(installed):
    package = installed / "neuroshard"
    for name in ("py.typed", "_planner.pyi", "__main__.py", "cli/report.html",
                 "models/cpu_compute.safetensors"):
        assert (package / name).is_file(), name
    size = sum(one.stat().st_size for one in package.rglob("*") if one.is_file())
    assert size < 20 * 2**20


def test_it_plans_and_explains(installed):
    done = python(installed, (
        "import neuroshard as ns\n"
        f"problem = ns.ShardingProblem.load({str(ROOT / 'workloads/criteo_kaggle.json')!r})\n"
        "result = ns.plan(problem.replace(topology='8xH200'), evaluation_budget=500)\n"
        "assert result.explanation\n"
        "cpu = problem.replace(topology='4xCPU@16GiB')\n"
        "print(ns.plan(cpu, evaluation_budget=500).plan.provenance.cost_model)\n"))
    assert (done.returncode, done.stdout, done.stderr) == (
        0, "cpu_compute+gloo_communication\n", "")


def test_import_alone_loads_little(installed):
    done = python(installed, "import sys, neuroshard\n"
                             "heavy = {'dataclasses', 'inspect', 'json', 'neuroshard._planner'}\n"
                             "print(sorted(heavy & set(sys.modules)))")
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", ["ShardedEmbeddingBagCollection", "distributed"])
def test_what_needs_torch_says_so_in_one_line(installed, name):
    done = python(installed, f"import neuroshard\nneuroshard.{name}")
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: neuroshard.{name} needs torch, which is not installed: pip install "
        "\"neuroshard[torch]\"")


def test_the_command_names_what_is_missing(installed):
    main = "import sys; from neuroshard.cli import main; sys.exit(main({}))"
    doctor = python(installed, main.format(["doctor"]))
    lines = dict(line.split(": ", 1) for line in doctor.stdout.splitlines())
    assert doctor.returncode == 0 and doctor.stderr == ""
    assert lines["planner"] == "ok: plans and verifies"
    assert lines["cost models"].startswith("ok: cpu_compute.safetensors")
    for part in ("torch", "torchrec", "command line"):
        assert lines[part].startswith("missing: ") and "pip install" in lines[part], part
    other = python(installed, main.format(["plan", "workload.json"]))
    assert other.returncode == 1 and other.stderr.count("\n") == 1
    assert "needs click, rich, Jinja2: pip install" in other.stderr
