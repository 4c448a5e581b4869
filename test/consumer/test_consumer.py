"""Other CMake projects can use an installed NeuroShard: the planner alone, without LLVM,
the dialect, and both from C. Each project in a folder beside this file is built against an
install tree; its program checks what it computes and exits non-zero if that is wrong. So can
Python programs, and the distribution's mlir-opt."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])


def run(*command):
    """Runs a command that has to succeed; returns all that it prints."""
    command = [str(part) for part in command]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    if result.returncode != 0:
        pytest.fail(f"{' '.join(command)}\nexit code {result.returncode}:\n{result.stdout}",
                    pytrace=False)
    return result.stdout


def cached(variable):
    """The value of a variable in the build's cache; "" when it has none."""
    found = re.search(rf"^{variable}:\w+=(.*)$", CACHE, re.M)
    return found[1] if found else ""


CACHE = (BUILD / "CMakeCache.txt").read_text()
SANITIZED = cached("NEUROSHARD_SANITIZE")


def llvm_tools():
    return Path(cached("MLIR_DIR")).parents[2] / "bin"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An install tree of the build, in a folder of its own."""
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", folder)
    return folder


# What programs on the planner do not need.
WITHOUT_COMPILER = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON"
                    for name in ("MLIR", "LLVM", "nlohmann_json")]


def build_consumer(name, prefix, folder, *options, target="consumer"):
    run("cmake", "-G", "Ninja", "-S", HERE / name, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={prefix}", *options)
    run("cmake", "--build", folder)
    return folder / target


def test_planner_needs_no_llvm(prefix, tmp_path):
    program = build_consumer("planner", prefix, tmp_path, *WITHOUT_COMPILER)
    assert run(program) == "2 shards on 2 devices\n"
    libraries = run("ldd", program)
    assert "libMLIR" not in libraries and "libLLVM" not in libraries


def test_dialect(prefix, tmp_path):
    program = build_consumer("dialect", prefix, tmp_path)
    assert run(program) == "@user has 1000 rows of 16\n"


def test_planner_in_c(prefix, tmp_path):
    program = build_consumer("c_planner", prefix, tmp_path, *WITHOUT_COMPILER)
    assert run(program) == "planned by the shipped models\n"
    libraries = run("ldd", program)
    assert str(prefix) in libraries
    assert "libMLIR" not in libraries and "libLLVM" not in libraries


def test_dialect_in_c(prefix, tmp_path):
    program = build_consumer("c_dialect", prefix, tmp_path)
    printed = run(program)
    assert 'neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU">]' in printed
    assert 'neuroshard.shard "user_0" of @user' in printed


def test_installed_plugin(prefix, tmp_path):
    plugin = prefix / "lib" / "libneuroshard_plugin.so"
    if SANITIZED:
        assert not plugin.exists()
        pytest.skip("a program without sanitizers cannot load a library with them")
    module = tmp_path / "model.mlir"
    module.write_text("module attributes {neuroshard.batch = 64 : i64} {\n"
                      "  neuroshard.table @user : 1000 x 16 x f32\n}\n")
    printed = run(llvm_tools() / "mlir-opt", module, f"--load-dialect-plugin={plugin}",
                  f"--load-pass-plugin={plugin}",
                  "--pass-pipeline=builtin.module(neuroshard-plan{topology=2xCPU})")
    # The installed models are found from the plugin.
    assert 'cost_model = "cpu_compute' in printed


MODEL = """
!ids = !neuroshard.jagged<["user", "item"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @user : 1000 x 16 x f32
  neuroshard.table private @item : 500 x 8 x f32
  func.func @forward(%ids: !ids) -> (tensor<?x16xf32>, tensor<?x8xf32>) {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x16xf32>
    %i = neuroshard.lookup sum @item[%ids, "item"] : !ids -> tensor<?x8xf32>
    return %u, %i : tensor<?x16xf32>, tensor<?x8xf32>
  }
}
"""


def refusal(*command, **variables):
    """What a command that has to fail prints."""
    result = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
                            env={**os.environ, **variables})
    assert result.returncode == 1, result.stdout
    return result.stdout


def test_opt_tool_of_others(prefix, tmp_path):
    """Our passes, a pass that reads the plan, and a cost model, in another project's tool."""
    program = build_consumer("opt", prefix, tmp_path)
    module = tmp_path / "model.mlir"
    module.write_text(MODEL)
    plan = "--neuroshard-plan=topology=2xCPU algorithm=size cost-model=mine"
    printed = run(program, module, plan, "--my-count-numbers")
    assert "device 0 holds 16000 numbers" in printed
    assert "device 1 holds 4000 numbers" in printed
    assert 'cost_model = "mine"' in printed
    assert "no plan" in refusal(program, module, "--my-count-numbers")


@pytest.fixture(scope="module")
def cost_models(prefix, tmp_path_factory):
    """A library with cost models, which only unsanitized programs can load."""
    if SANITIZED:
        pytest.skip("a library without sanitizers has other symbols than a program with them")
    return build_consumer("cost_model", prefix, tmp_path_factory.mktemp("cost_model"),
                          *WITHOUT_COMPILER, target="libcost_model.so")


def test_cost_model_plugin(prefix, cost_models, tmp_path):
    """Each of our programs takes the library's models by name."""
    module = tmp_path / "model.mlir"
    module.write_text(MODEL)
    load = f"--load-cost-model-plugin={cost_models}"
    plan = "--neuroshard-plan=topology=2xCPU cost-model=bytes"
    expected = 'cost_model = "bytes"'
    assert expected in run(prefix / "bin" / "neuroshard-opt", module, load, plan)
    run(prefix / "bin" / "neuroshard-compile", module, load, "--topology", "2xCPU",
        "--cost-model", "bytes", "-o", tmp_path / "artifact")
    assert '"bytes"' in (tmp_path / "artifact" / "plan.json").read_text()
    plugin = prefix / "lib" / "libneuroshard_plugin.so"
    by_environment = ("env", f"NEUROSHARD_COST_MODEL_PLUGINS={cost_models}")
    assert expected in run(*by_environment, llvm_tools() / "mlir-opt", module,
                           f"--load-dialect-plugin={plugin}", f"--load-pass-plugin={plugin}",
                           "--pass-pipeline=builtin.module("
                           "neuroshard-plan{topology=2xCPU cost-model=bytes})")
    folder, = prefix.glob("lib/python3.*/site-packages")
    script = ("import neuroshard as ns\n"
              "problem = ns.ShardingProblem(tables=[ns.Table('t', 1000, 64)], batch=64,\n"
              "    features=[ns.Feature('f', 't')], topology='2xCPU')\n"
              "print(ns.plan(problem, cost_model='bytes').plan.provenance.cost_model)\n"
              "try:\n"
              "    ns.plan(problem, cost_model='wrong.nan')\n"
              "except ns.CostModelError as error:\n"
              "    print(error)\n")
    printed = run(*by_environment, f"PYTHONPATH={folder}", sys.executable, "-c", script)
    assert printed.startswith("bytes\n'wrong.nan': computeMs: time[0] forward: expected")


@pytest.mark.parametrize("model, message", [
    ("wrong.nan", "computeMs: time[0] forward: expected a finite number of milliseconds, at "
                  "least 0, got none, or nan"),
    ("wrong.negative", "computeMs: time[0] backward: expected a finite number of milliseconds, "
                       "at least 0, got: -1.5"),
    ("wrong.missing", "computeMs: time[0] forward: expected a finite number"),
    ("wrong.devices", "communicationMs: expected 2 times, one per device, got: 1"),
    ("wrong.throws", "computeMs threw: no licence"),
])
def test_wrong_answers_of_a_plugin_are_one_error(prefix, cost_models, tmp_path, model, message):
    module = tmp_path / "model.mlir"
    module.write_text(MODEL)
    opt = prefix / "bin" / "neuroshard-opt"
    load = f"--load-cost-model-plugin={cost_models}"
    printed = refusal(opt, module, load,
                      f"--neuroshard-plan=topology=2xCPU cost-model={model}")
    assert f"cost_model: '{model}': {message}" in printed
    assert printed.count("error:") == 1
    planned = tmp_path / "planned.mlir"
    run(opt, module, "--neuroshard-plan=topology=2xCPU", "-o", planned)
    printed = refusal(opt, planned, load, f"--neuroshard-price=cost-model={model}")
    assert f"cost model '{model}': {message}" in printed


def test_what_is_no_cost_model_plugin(prefix, cost_models, tmp_path):
    module = tmp_path / "model.mlir"
    module.write_text(MODEL)
    opt = prefix / "bin" / "neuroshard-opt"
    plan = "--neuroshard-plan=topology=2xCPU cost-model=bits"
    other = prefix / "lib" / "libneuroshard_emulator.so"
    assert "expected the function neuroshardCostModelPlugin" in refusal(
        opt, module, f"--load-cost-model-plugin={other}", plan)
    assert "none.so: cannot be loaded as a library with cost models" in refusal(
        opt, module, "--load-cost-model-plugin=none.so", plan)
    assert "NEUROSHARD_COST_MODEL_PLUGINS: none.so: cannot be loaded" in refusal(
        opt, module, plan, NEUROSHARD_COST_MODEL_PLUGINS="none.so")
    # Twice the same library has no effect, and an unknown name lists the known ones.
    load = f"--load-cost-model-plugin={cost_models}"
    assert "or a registered model (bytes, wrong.devices" in refusal(opt, module, load, load, plan)
    many = "--neuroshard-plan=topology=65xCPU cost-model=bytes"
    assert "cost model 'bytes': topology: expected at most 64 devices" in refusal(
        opt, module, load, many)


def test_unknown_component_is_named(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(unknown LANGUAGES CXX)\n"
        "find_package(NeuroShard REQUIRED COMPONENTS Nonsense)\n")
    result = subprocess.run(
        ["cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build",
         f"-DCMAKE_PREFIX_PATH={prefix}"],
        text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    assert result.returncode != 0
    message = " ".join(result.stderr.split())
    assert "NeuroShard has no component Nonsense; there are:" in message


def test_installed_tools_run_where_they_are_put(prefix):
    dialects = run(prefix / "bin" / "neuroshard-opt", "--show-dialects")
    assert "neuroshard" in re.split(r"[,\s]+", dialects)


def test_python_package(prefix):
    if SANITIZED:
        pytest.skip("a build with sanitizers has no Python module")
    folder, = prefix.glob("lib/python3.*/site-packages")
    script = ("import neuroshard as ns\n"
              "problem = ns.ShardingProblem(tables=[ns.Table('t', 1000, 64)], batch=64,\n"
              "    features=[ns.Feature('f', 't')], topology='2xCPU@4GiB')\n"
              "result = ns.plan(problem)\n"
              "result.plan.verify(problem)\n"
              "print(ns.__file__, result.plan.provenance.cost_model)\n")
    printed = run("env", f"PYTHONPATH={folder}", sys.executable, "-c", script)
    file, model = printed.split()
    assert Path(file) == folder / "neuroshard" / "__init__.py"
    # The shipped models of the class CPU come along.
    assert model.startswith("cpu_compute")
