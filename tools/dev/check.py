"""Runs the test suites of a build and prints, last, how many tests passed and failed.

Every suite writes a JUnit file; the closing line is the sum over the single tests in
those files. A suite that cannot run, or that runs no test, counts as one failed test.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace
from pathlib import Path

import selection

ROOT = Path(__file__).resolve().parents[2]
JOBS = "2"
# More than there are cores, since ranks wait for each other.
PYTEST_JOBS = "3"
SUITE_LIMIT_S = 7200
PROGRAM_LIMIT_S = 1800
PYTEST_COLLECTED_NOTHING = 5


@dataclass
class Tally:
    """Counts of tests, and why the suite as a whole failed; "" if it did not."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    problem: str = ""

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    @property
    def total(self):
        return self.passed + self.failed + self.skipped


@dataclass
class Context:
    build: Path
    results: Path
    filter: str
    environment: dict
    program_limit_s: int = PROGRAM_LIMIT_S  # of one GoogleTest program


def run(command, context, extra_environment=None):
    """Runs a command and shows its output. Returns its exit code, negative if a signal ended it;
    kills it after SUITE_LIMIT_S."""
    environment = {**context.environment, **(extra_environment or {})}
    process = subprocess.Popen(
        [str(part) for part in command], cwd=ROOT, env=environment,
        stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(timeout=SUITE_LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f"ended after {SUITE_LIMIT_S} s: {command[0]}", flush=True)
        return -signal.SIGKILL
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def tally_of_junit(path):
    """Sums the test cases of a JUnit file; a file that is missing or broken is a problem."""
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        return Tally(problem=f"no readable results: {error}")
    tally = Tally()
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            tally.skipped += 1
        else:
            tally.passed += 1
    return tally


def closed(tally, exit_code, context):
    """The tally with one failure more if the suite failed as a whole or ran no test."""
    if not tally.problem and exit_code != 0 and tally.failed == 0 and tally.total > 0:
        tally.problem = f"exit code {exit_code} although no test failed"
    if not tally.problem and tally.total == 0:
        if exit_code not in (0, PYTEST_COLLECTED_NOTHING):
            tally.problem = f"exit code {exit_code} without running a test"
        elif not context.filter:
            tally.problem = "ran no test"
    if tally.problem:
        tally.failed += 1
    return tally


def run_format(context):
    """clang-format on every tracked C++ file: one test."""
    tool = shutil.which("clang-format-22") or shutil.which("clang-format")
    if not tool:
        return Tally(failed=1, problem="clang-format-22 is not installed")
    listing = subprocess.run(["git", "ls-files", "-z", "--", "*.h", "*.cpp"], cwd=ROOT,
                             capture_output=True, text=True)
    if listing.returncode:
        return Tally(failed=1, problem=f"no list of files: {listing.stderr.strip()}")
    files = [name for name in listing.stdout.split("\0") if name and (ROOT / name).exists()]
    if not files:
        return Tally(failed=1, problem="found no file to check")
    exit_code = run([tool, "--dry-run", "-Werror", *files], context)
    return Tally(passed=1) if exit_code == 0 else Tally(failed=1)


def run_structure(context):
    """Includes, imports, sizes and headers of source files: a test for each rule."""
    results = context.results / "structure.xml"
    exit_code = run([sys.executable, ROOT / "tools/dev/check_structure.py", "--junit", results],
                    context)
    return closed(tally_of_junit(results), exit_code, context)


def tally_of_unit_programs(listing, gtest_results):
    """Replaces each program in ctest's results by the GoogleTest cases it ran."""
    try:
        programs = list(ElementTree.parse(listing).iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        return Tally(problem=f"no readable results: {error}")
    tally = Tally()
    for program in programs:
        succeeded = program.get("status") == "run"
        cases = tally_of_junit(gtest_results / f"{program.get('name')}.xml")
        if cases.problem or cases.total == 0 or (not succeeded and cases.failed == 0):
            print(f"{program.get('name')}: {cases.problem or 'failed outside its test cases'}")
            cases.failed += 1
        tally.add(cases)
    return tally


def run_unit(context):
    """The GoogleTest programs, through ctest."""
    listing = context.results / "unit.xml"
    gtest_results = context.results / "unit"
    command = ["ctest", "--test-dir", context.build, "-j", JOBS, "--output-on-failure",
               "--timeout", context.program_limit_s, "--output-junit", listing]
    if context.filter:
        command += ["-R", context.filter]
    exit_code = run(command, context, {"GTEST_OUTPUT": f"xml:{gtest_results}/"})
    return closed(tally_of_unit_programs(listing, gtest_results), exit_code, context)


def run_lit(context):
    """The FileCheck tests."""
    results = context.results / "lit.xml"
    command = [Path(sys.executable).parent / "lit", "-v", "-j", JOBS, "--xunit-xml-output", results]
    if context.filter:
        command += ["--filter", context.filter, "--allow-empty-runs"]
    exit_code = run([*command, context.build / "test"], context)
    if context.filter and exit_code == 0 and not results.exists():
        return Tally()
    return closed(tally_of_junit(results), exit_code, context)


def pytest_suite(folder, jobs=JOBS):
    """Python tests in `jobs` processes; test/conftest.py says which of them stay together."""
    def run_pytest(context):
        results = context.results / f"{folder.name}.xml"
        command = [sys.executable, "-m", "pytest", "-v", "--tb=short", "--durations=5",
                   f"--numprocesses={jobs}", f"--junitxml={results}", folder,
                   # Without the tests of a process that has crashed, xdist waits for ever.
                   "--max-worker-restart=0"]
        if context.filter:
            command.append(f"--name-regex={context.filter}")
        exit_code = run(command, context)
        return closed(tally_of_junit(results), exit_code, context)
    return run_pytest


def built(preset, context):
    """Configures a preset and builds its tests; says why not, "" if all is well."""
    for command in (["cmake", "--preset", preset],
                    ["cmake", "--build", ROOT / "build" / preset, "--target", "neuroshard-tests"]):
        if run(command, context) != 0:
            return f"the preset {preset} does not build"
    return ""


def run_sanitizers(context):
    """The unit tests and FileCheck tests that each preset with sanitizers has."""
    total = Tally()
    for preset, suites in SANITIZED.items():
        print(f"== {preset}", flush=True)
        build = ROOT / "build" / preset
        # Sanitized programs take ten times as long.
        inner = replace(context, build=build, results=context.results / "sanitizers" / preset,
                        environment=environment_of(build), program_limit_s=4 * PROGRAM_LIMIT_S)
        inner.environment.pop("NEUROSHARD_ALL", None)
        inner.results.mkdir(parents=True, exist_ok=True)
        problem = built(preset, inner)
        tallies = [Tally(failed=1, problem=problem)] if problem else [
            suite(inner) for suite in suites]
        for tally in tallies:
            total.add(tally)
            total.problem = total.problem or tally.problem
    return total


SUITES = {
    "format": run_format,
    "structure": run_structure,
    "unit": run_unit,
    "lit": run_lit,
    "python": pytest_suite(ROOT / "test" / "python", jobs=PYTEST_JOBS),
    "docs": pytest_suite(ROOT / "test" / "docs"),
    "consumer": pytest_suite(ROOT / "test" / "consumer", jobs="0"),
    "sanitizers": run_sanitizers,
}
# What the presets with sanitizers run; docs/testing.md says why not more.
SANITIZED = {"asan-ubsan": (run_unit, run_lit), "tsan": (run_unit,)}
LONG = {"sanitizers"}  # of --all, or by name
BUILDING_NOTHING = {"format", "structure", "sanitizers"}  # or a build of their own


def default_seed():
    """A seed from the commit: the same for a commit, another after the next change."""
    head = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=ROOT,
                          capture_output=True, text=True)
    return str(int(head.stdout.strip(), 16)) if head.returncode == 0 else "1"


def suites_of(context):
    """The suites to run: all but the long ones, or those that the filter needs."""
    if not context.filter:
        is_all = context.environment.get("NEUROSHARD_ALL")
        return [name for name in SUITES if is_all or name not in LONG]
    chosen = selection.select(ROOT, context.build, context.filter).suites
    return [name for name in SUITES if name in chosen]


def trust_checkout():
    """Lets git read a checkout that belongs to another user, as those of containers often do."""
    os.environ.update(GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory",
                      GIT_CONFIG_VALUE_0=str(ROOT))


def forget_results(context, suite):
    """Removes the results of an earlier run, so that they cannot pass for this one's."""
    (context.results / f"{suite}.xml").unlink(missing_ok=True)
    shutil.rmtree(context.results / suite, ignore_errors=True)


def environment_of(build):
    environment = dict(os.environ)
    environment["NEUROSHARD_BUILD_DIR"] = str(build)
    environment["PATH"] = f"{build / 'bin'}{os.pathsep}{environment.get('PATH', '')}"
    environment.setdefault("NEUROSHARD_SEED", default_seed())
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return environment


def make_context(arguments):
    build = arguments.build_dir.resolve()
    results = build / "test-results"
    results.mkdir(parents=True, exist_ok=True)
    return Context(build, results, arguments.filter, environment_of(build))


def targets_of(arguments, context):
    """What to build for the suites, or for the tests of the filter."""
    if arguments.suite:
        return () if BUILDING_NOTHING.issuperset(arguments.suite) else selection.EVERYTHING
    return selection.select(ROOT, context.build, context.filter).targets


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", type=Path, required=True)
    parser.add_argument("--filter", default="", help="regular expression on test names")
    parser.add_argument("--suite", action="append", choices=SUITES, help="run only this one")
    parser.add_argument("--list-targets", action="store_true",
                        help="print what to build for the suites or the filter, and end")
    arguments = parser.parse_args()
    trust_checkout()
    context = make_context(arguments)
    if arguments.list_targets:
        print(*targets_of(arguments, context))
        return 0

    seed = context.environment["NEUROSHARD_SEED"]
    scope = "all of them" if context.environment.get("NEUROSHARD_ALL") else "a sample"
    print(f"== check: {scope} (NEUROSHARD_SEED={seed})", flush=True)
    names = arguments.suite or suites_of(context)
    total = Tally()
    rows = []
    for name in names:
        print(f"== {name}", flush=True)
        forget_results(context, name)
        start = time.monotonic()
        tally = SUITES[name](context)
        rows.append((name, tally, time.monotonic() - start))
        total.add(tally)
    if total.total == 0:
        print(f"no test matches '{context.filter}'")
        total.failed += 1

    print("== summary")
    for name, tally, seconds in rows:
        print(f"{name:10} {tally.passed:6} passed {tally.failed:4} failed {tally.skipped:4} skipped"
              f" {seconds:7.1f} s  {tally.problem}")
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"{total.passed} passed, {total.failed} failed{skipped}", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
