"""Runs a fuzz target of test/Fuzz on its seeds and on inputs made from them.

Inputs that reach something new are kept in build/PRESET/fuzz/TARGET/corpus, and are seeds the next
time; an input that breaks a promise is written to build/PRESET/fuzz/TARGET/findings."""

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEEDS = ROOT / "test" / "Fuzz" / "corpus"
SCRIPTS = ROOT / "test" / "Fuzz" / "python"
# An input that takes longer hangs. Far above what slow machines need.
HANG_S = 120
MEMORY_MIB = 2048


@dataclass(frozen=True)
class Target:
    """A fuzz target: how many inputs `./dev check` tries, the longest one, and folders of the
    repository whose files are seeds beside those in test/Fuzz/corpus."""

    checked_inputs: int
    max_bytes: int = 20000
    seeds: tuple[str, ...] = ()


IR = ("test/Dialect", "test/Transforms", "test/Translate", "test/Pipelines", "test/Compile/Inputs")
TARGETS = {
    "workload": Target(4000, seeds=("workloads",)),
    "plan": Target(6000),
    "search-options": Target(30000),
    "topology": Target(20000, max_bytes=64),
    "manifest": Target(600, max_bytes=100000),
    "gpu-program": Target(5000),
    "models": Target(3000, max_bytes=100000),
    "planner-capi": Target(400),
    "dialect-capi": Target(2000),
    "ir": Target(2000, seeds=(*IR, "test/Conversion")),
    "bytecode": Target(2000, seeds=IR),
    "pipelines": Target(600, seeds=(*IR, "test/Conversion")),
    "checkpoint": Target(400),
    "exported": Target(200),
}


def command_of(name, build, options, place):
    """The command that runs a target; `options` are libFuzzer's. What it finds goes to `place`."""
    target = TARGETS[name]
    corpus, findings = place / "corpus", place / "findings"
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    script = SCRIPTS / f"{name}.py"
    if script.exists():
        return [sys.executable, script, f"-artifact_prefix={findings}/", *options]
    seeds = [folder for folder in (SEEDS / name, *(ROOT / seed for seed in target.seeds))
             if folder.is_dir()]
    return [build / "test" / "Fuzz" / name, f"-max_len={target.max_bytes}", f"-timeout={HANG_S}",
            f"-report_slow_units={HANG_S}",
            f"-rss_limit_mb={MEMORY_MIB}", f"-malloc_limit_mb={MEMORY_MIB}",
            f"-artifact_prefix={findings}/", *options, *([] if files_in(options) else
                                                         [corpus, *seeds])]


def files_in(options):
    """Inputs to run instead of new ones."""
    return [one for one in options if not one.startswith("-")]


def environment(build):
    """LLVM is built without assertions. So it leaves statistics of passes as malloc gives them: 1
    stands for a statistic that has been registered."""
    packages = [str(build / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"ASAN_OPTIONS": "malloc_fill_byte=1", "PYTHONWARNINGS": "ignore", **os.environ,
            "PYTHONPATH": os.pathsep.join(packages)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", type=Path, required=True)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("options", nargs=argparse.REMAINDER,
                        help="options of libFuzzer such as -max_total_time=3600, or files to run")
    arguments = parser.parse_args()
    build = arguments.build_dir.resolve()
    command = command_of(arguments.target, build, arguments.options,
                         build / "fuzz" / arguments.target)
    return subprocess.call([str(part) for part in command], env=environment(build))


if __name__ == "__main__":
    sys.exit(main())
