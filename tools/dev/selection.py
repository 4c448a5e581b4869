"""Finds the suites whose tests a filter matches, and what has to be built for them, without
building or importing anything.

Unit test programs and FileCheck tests that use a tool or two need little of the build; all other
tests need all of it."""

import re
import subprocess
from dataclasses import dataclass

EVERYTHING = ("all",)
PYTHON_SUITES = ("python", "docs", "consumer")
# The targets of what RUN lines name. A test that names anything else of the build, or nothing that
# is known here, needs everything.
TOOLS = {"neuroshard-opt": "neuroshard-opt", "neuroshard-opt-raw": "neuroshard-opt",
         "neuroshard-dialect-opt": "neuroshard-dialect-opt",
         "neuroshard-dialect-opt-raw": "neuroshard-dialect-opt",
         "neuroshard-test-opt": "neuroshard-test-opt",
         "neuroshard-translate": "neuroshard-translate"}
NAMED = re.compile(r"(?<![\w-])neuroshard-(?:(?:dialect-)?opt(?:-raw)?|test-opt|translate|compile|run|bench|"
                   r"collect|train)(?![\w-])|%(?!s\b|t\b|S\b|T\b|python\b)\w\w+")
NO_FILECHECK = ("Unit", "python", "docs", "consumer", "Inputs")


@dataclass(frozen=True)
class Selection:
    suites: tuple
    targets: tuple


def select(root, build, pattern):
    """The suites with tests that match, and the targets that these need."""
    if has_python_test(root, pattern):
        return Selection(("unit", "lit", *PYTHON_SUITES), EVERYTHING)
    programs, files = unit_programs(build, pattern), filecheck_tests(root, pattern)
    if not programs and not files:  # perhaps parameters of Python tests
        return Selection(("unit", "lit", *PYTHON_SUITES), EVERYTHING)
    suites = (*(("unit",) if programs else ()), *(("lit",) if files else ()))
    targets = {*programs, *(target for file in files for target in tools_of(file))}
    return Selection(suites, EVERYTHING if "all" in targets else tuple(sorted(targets)))


def unit_programs(build, pattern):
    """The GoogleTest programs whose name matches."""
    listing = subprocess.run(["ctest", "--test-dir", str(build), "-N", "-R", pattern],
                             capture_output=True, text=True, check=True)
    return re.findall(r"^ *Test +#\d+: (\S+)$", listing.stdout, re.M)


def filecheck_tests(root, pattern):
    """The files of FileCheck tests whose name matches; lit ignores the case."""
    folder = root / "test"
    files = [file for file in sorted([*folder.rglob("*.mlir"), *folder.glob("CAPI/*.c")])
             if not set(file.relative_to(folder).parts) & set(NO_FILECHECK)]
    return [file for file in files
            if re.search(pattern, f"neuroshard :: {file.relative_to(folder)}", re.I)]


def tools_of(file):
    """The targets of the tools that a test names in its RUN lines, and in DEFINE lines for them."""
    lines = "\n".join(line for line in file.read_text().splitlines()
                      if "RUN:" in line or "DEFINE:" in line)
    return {TOOLS.get(name, "all") for name in NAMED.findall(lines)} or {"all"}


def has_python_test(root, pattern):
    """Whether a Python test matches by its file, class or function."""
    for suite in PYTHON_SUITES:
        for file in (root / "test" / suite).rglob("test_*.py"):
            name = file.relative_to(root).as_posix()
            tests = re.findall(r"^ *(?:def|class) ([Tt]est\w*)", file.read_text(), re.M)
            if any(re.search(pattern, f"{name}::{test}") for test in tests):
                return True
    return False
