"""The FileCheck tests: every .mlir file under test/.

Substitutions beside lit's own:
  neuroshard-opt      with --verify-roundtrip, so that every test also shows that its IR
                      survives printing, parsing and bytecode
  neuroshard-test-opt the same with the passes of test/TestPasses
  neuroshard-dialect-opt
                      the same without our passes, for tests of the dialect
  neuroshard-compile  in a build with the address sanitizer with --address-sanitizer
  neuroshard-opt-raw, neuroshard-dialect-opt-raw
                      without --verify-roundtrip, for input that it cannot be used on
  %neuroshard_lib     the folder of our libraries (libneuroshard_runtime.so)
  %mlir_lib           the folder of MLIR's libraries (libmlir_c_runner_utils.so)
  %python             the Python that runs lit
"""

import os
import sys

import lit.formats
import lit.llvm
from lit.llvm.subst import FindTool, ToolSubst

config.name = "neuroshard"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Unit", "python", "docs", "consumer", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.neuroshard_test_dir
if config.neuroshard_sanitize:
    config.available_features.add("sanitizers")
    config.environment["NEUROSHARD_SANITIZE"] = config.neuroshard_sanitize
# Compiled models run in tools that have the sanitizer.
compile_flags = ["--address-sanitizer"] if "address" in config.neuroshard_sanitize else []

lit.llvm.initialize(lit_config, config)
llvm_config = lit.llvm.llvm_config
for variable in ("NEUROSHARD_ALL", "NEUROSHARD_SEED"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

llvm_config.add_tool_substitutions(
    [
        ToolSubst("neuroshard-opt", extra_args=["--verify-roundtrip"]),
        ToolSubst("neuroshard-test-opt", extra_args=["--verify-roundtrip"]),
        ToolSubst("neuroshard-dialect-opt", extra_args=["--verify-roundtrip"]),
        ToolSubst("neuroshard-opt-raw", command=FindTool("neuroshard-opt")),
        ToolSubst("neuroshard-dialect-opt-raw", command=FindTool("neuroshard-dialect-opt")),
        "neuroshard-bench",
        "neuroshard-translate",
        ToolSubst("neuroshard-compile", extra_args=compile_flags),
        "neuroshard-run",
    ],
    [config.neuroshard_tools_dir],
)
llvm_config.add_tool_substitutions(
    ["FileCheck", "not", "split-file", "count", "mlir-opt", "mlir-runner", "mlir-translate", "llc",
     "llvm-nm", "llvm-objdump"],
    [config.llvm_tools_dir],
)
config.substitutions += [
    ("%neuroshard_lib", config.neuroshard_lib_dir),
    ("%mlir_lib", config.llvm_lib_dir),
    ("%python", sys.executable),
]
