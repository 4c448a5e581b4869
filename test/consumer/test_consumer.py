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


def build_consumer(name, prefix, folder, *options):
    run("cmake", "-G", "Ninja", "-S", HERE / name, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={prefix}", *options)
    run("cmake", "--build", folder)
    return folder / "consumer"


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
