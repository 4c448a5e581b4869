"""The installed package alone: the contents of a wheel, used by a Python without other packages;
and artifacts compiled elsewhere, run where torch is installed."""

import importlib
import os
import re
import subprocess
import sys

import pytest

import neuroshard as ns
from neuroshard._native import binaries, torch_version
from support.planning import ROOT
from support.ports import port_of, reserve_port

ELF = b"\x7fELF"

# Of each rank: trains a step of the artifact; every number is known.
RUN = """
import sys
import torch
import torch.distributed as dist
import neuroshard as ns

dist.init_process_group("gloo")
rank, folder = dist.get_rank(), sys.argv[1]
plan, problem = ns.Plan.load(folder + "/plan.json"), ns.ShardingProblem.load(sys.argv[2])
tables = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.5, artifact=folder)
whole = torch.arange(40 * 8.).reshape(40, 8)
for shard in tables.local_shards():
    shard.weights.copy_(whole[slice(*shard.rows), slice(*shard.cols)])
batches = [torch.arange(12).reshape(6, 2) * (other + 3) % 40 for other in (0, 1)]
found = tables({"clicked": batches[rank]})["clicked"]
assert torch.equal(found, whole[batches[rank]].sum(1)), found
found.sum().backward()
times = torch.bincount(torch.cat(batches).flatten(), minlength=40)
whole -= 0.5 / 2 * times[:, None]  # gradients are divided by the number of ranks
for shard in tables.local_shards():
    assert torch.equal(shard.weights, whole[slice(*shard.rows), slice(*shard.cols)])
print(ns.__file__)
"""

# What a package without the parts says.
MISSING = """
from neuroshard._native import compiler, torch_library
for look in (torch_library.load_library, compiler.compiler_path):
    try:
        look()
    except ImportError as error:
        print(error)
"""


def install(prefix, *components):
    """The folder that `import neuroshard` looks in; components of the build installed."""
    for component in components:
        subprocess.run(["cmake", "--install", os.environ["NEUROSHARD_BUILD_DIR"], "--component",
                        component, "--prefix", prefix], check=True, capture_output=True)
    place, = prefix.glob("lib/python3.*/site-packages")
    return place


def small():
    return ns.ShardingProblem(tables=[ns.Table("item", 40, 8, optimizer="sgd")],
                              features=[ns.Feature("clicked", "item", mean_pooling=2)],
                              batch=12, topology="2xCPU")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The least that a wheel contains."""
    return install(tmp_path_factory.mktemp("installed"), "python")


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """The contents of a wheel that is built with torch and the compiler."""
    return install(tmp_path_factory.mktemp("complete"), "python", "python_parts")


def python(installed, code):
    """Runs Python without this interpreter's site-packages."""
    return subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True,
                          env={"PYTHONPATH": str(installed), "PATH": ""}, timeout=600)


def test_it_has_types_models_and_the_report(installed):
    package = installed / "neuroshard"
    for name in ("py.typed", "_planner.pyi", "__main__.py", "cli/_output/report.html", "glossary.md",
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


def test_a_wheel_may_have_libraries_and_tools_that_name_no_other_folder(complete):
    package = complete / "neuroshard"
    held = [file for file in package.rglob("*") if file.is_file()
            and file.open("rb").read(4) == ELF]
    assert {file.relative_to(package).as_posix() for file in held} >= {
        "lib/libneuroshard_torch.so", "lib/libneuroshard_runtime.so", "lib/libneuroshard_cuda.so",
        "bin/neuroshard-compile", "bin/neuroshard-lsp-server", "bin/neuroshard-opt",
        "bin/neuroshard-reduce", "bin/neuroshard-translate"}
    for file in held:
        dynamic = subprocess.run(["readelf", "-d", file], capture_output=True, text=True,
                                 check=True).stdout
        for folder in ":".join(re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic)).split(":"):
            # Tools need the machine's LLVM.
            assert folder == "" or folder.startswith("$ORIGIN") or "llvm" in folder, (file, folder)


def test_its_tools_plan_with_its_models_and_compile(complete, tmp_path):
    small().save(tmp_path / "workload.json")
    tool = "import sys; from neuroshard._native.binaries import run_tool; run_tool(sys.argv.pop(1))"
    for name, *options in (
            ("neuroshard-translate", "--workload-to-mlir", "workload.json", "-o", "model.mlir"),
            ("neuroshard-compile", "model.mlir", "-o", "artifact")):
        done = subprocess.run([sys.executable, "-S", "-c", tool, name, *options], cwd=tmp_path,
                              capture_output=True, text=True, timeout=600,
                              env={"PYTHONPATH": str(complete), "PATH": os.defpath})
        assert done.returncode == 0, done.stderr
    made = ns.Plan.load(tmp_path / "artifact" / "plan.json").provenance
    assert made.cost_model == "cpu_compute+gloo_communication"


def test_it_runs_what_was_compiled_elsewhere(complete, tmp_path):
    problem = small()
    plan = ns.Plan(device_count=2, shards=[
        ns.Shard(table="item", rows=rows, cols=(0, 8), devices=device)
        for device, rows in enumerate([(0, 16), (16, 40)])])
    problem.save(tmp_path / "problem.json")
    ns.distributed.compile_plan(plan, problem, tmp_path / "artifact")
    texts = run_ranks(complete, [tmp_path / "artifact", tmp_path / "problem.json"])
    assert texts == [f"{complete / 'neuroshard' / '__init__.py'}\n"] * 2


def run_ranks(place, arguments):
    held = reserve_port()
    common = {"PYTHONPATH": str(place), "PATH": "", "NEUROSHARD_COMPILE": "none",
              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port_of(held), "WORLD_SIZE": "2",
              "OMP_NUM_THREADS": "1"}
    ranks = [subprocess.Popen([sys.executable, "-c", RUN, *arguments], text=True,
                              env={**common, "RANK": str(rank)}, stdout=subprocess.PIPE)
             for rank in range(2)]
    try:
        return [rank.communicate(timeout=600)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
        held.close()


def test_without_them_it_names_what_brings_them(installed):
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True,
                          env={"PYTHONPATH": str(installed), "PATH": ""}, timeout=600)
    library, compiler = done.stdout.splitlines()
    assert library.startswith("libneuroshard_torch.so is neither in lib/ of this package")
    assert binaries.BUILD_WITH_TORCH in library
    assert compiler.startswith("neuroshard-compile is neither in bin/ of this package")
    assert "artifact=" in compiler and binaries.BUILD_WITH_COMPILER in compiler


def test_another_torch_is_refused_before_its_library_is_loaded(complete, tmp_path):
    import torch

    real = complete / "neuroshard" / "lib" / binaries.TORCH_LIBRARY
    assert torch_version.torch_of(real) == torch.__version__.split("+")[0]
    assert torch_version.torch_mismatch(real, torch.__version__) == ""
    other = tmp_path / binaries.TORCH_LIBRARY
    other.write_bytes(ELF + b" neuroshard built for torch 1.13.1\0 ")
    assert torch_version.torch_mismatch(other, "1.13.0+cpu") == ""
    assert torch_version.torch_mismatch(other, "2.14.1+cu130") == (
        f"{other} was built for PyTorch 1.13.1, but the one installed is 2.14.1+cu130: either pip "
        "install \"torch==1.13.*\", or build NeuroShard for yours "
        f"({binaries.BUILD_WITH_TORCH})")
    plain = tmp_path / "plain.so"
    plain.write_bytes(ELF)
    assert torch_version.torch_of(plain) is None


def test_the_cuda_toolkit_is_that_of_the_interpreter(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for name in [name for name in sys.modules if name.split(".")[0] == "nvidia"]:
        monkeypatch.delitem(sys.modules, name)
    assert binaries.cuda_toolkit() is None
    (tmp_path / "nvidia" / "cu13" / "bin").mkdir(parents=True)
    importlib.invalidate_caches()
    assert binaries.cuda_toolkit() is None
    (tmp_path / "nvidia" / "cu13" / "bin" / "ptxas").touch()
    assert binaries.cuda_toolkit() == tmp_path / "nvidia" / "cu13"
    monkeypatch.delitem(sys.modules, "nvidia")
