"""Numbers of the tools' command lines: every option that takes one refuses what is none, and what is
out of its range, with one error that names option, range and value. The options come from --help."""

import os
import random
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

import neuroshard as ns
from neuroshard.planning import OPTIONS
from support import artifact, matrix
from support.commands import make_runner

HUGE = "9" * 40
NO_NUMBERS = ("x", "nan", "-inf", "1e400", HUGE, "0x10", "1 2", "1\x1b[31m", "٣")
# Any number of the type will do.
FREE = {"--seed", "--tolerance", "--limit"}
ROW = re.compile(r"^ +(?:-\w,)?(--?[\w-]+) (INT|UINT|FLOAT)(?::\[([^,]+), ([^\]]+)\])?")
# Runs of each tool; bench and train load PyTorch.
RUNS = {"bench": 8, "collect": 20, "compile": 30, "run": 20, "train": 6}
ENDS = 20 if os.environ.get("NEUROSHARD_ALL") else 1


class Option(NamedTuple):
    command: tuple[str, ...]
    flag: str
    kind: str
    low: str | None
    high: str | None

    def bad_values(self):
        if self.low is None:
            return [one for one in NO_NUMBERS if one != HUGE or self.kind != "FLOAT"]
        if self.kind == "FLOAT":
            return [*NO_NUMBERS, f"{float(self.low) - 0.5}", f"{float(self.high) * 1.5}"]
        return [*NO_NUMBERS, str(int(self.low) - 1), str(int(self.high) + 1)]


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def commands_of(tool):
    lines = run(artifact.tool(tool), "--help").stdout.splitlines()
    if "Subcommands:" not in lines:
        return [()]
    return [(line.split()[0],) for line in lines[lines.index("Subcommands:") + 1:] if line.strip()]


def options_of(tool):
    for command in commands_of(tool):
        for line in run(artifact.tool(tool), *command, "--help").stdout.splitlines():
            if row := ROW.match(line):
                yield Option(command, *row.groups())


@pytest.mark.parametrize("tool", RUNS)
def test_numbers(tool):
    options = list(options_of(f"neuroshard-{tool}"))
    assert len(options) > 5
    cases = [(option, value) for option in options for value in option.bad_values()]
    chooser = random.Random(f"numbers {matrix.seed()}")
    cases = chooser.sample(cases, min(len(cases), ENDS * RUNS[tool]))

    def problem_of(case):
        option, value = case
        words = ([f"{option.flag}={value}"] if option.flag.startswith("--") else
                 [option.flag, value])
        done = run(artifact.tool(f"neuroshard-{tool}"), *option.command, *words)
        expected = f"[{option.low}, {option.high}]" if option.low else "expected a"
        shown = value.replace("\x1b", "\\x1b")
        good = (done.returncode == 1 and option.flag in done.stderr and shown in done.stderr
                and expected in done.stderr and "\x1b" not in done.stderr)
        return "" if good else f"{option} {value!r}: {done.returncode} {done.stderr[:300]!r}"
    with ThreadPoolExecutor(2) as pool:
        assert not list(filter(None, pool.map(problem_of, cases)))


def test_numbers_that_the_library_checks(tmp_path):
    """neuroshard-train placement has ranges that depend on each other; they are in the library."""
    options = [one for one in options_of("neuroshard-train")
               if one.command in (("placement",), ("evaluate-placement",)) and not one.low
               and one.flag not in FREE]
    assert len(options) > 10
    chooser = random.Random(f"library {matrix.seed()}")
    for option in options if ENDS > 1 else chooser.sample(options, 4):
        value = chooser.choice(("-1", str(10**9)))
        output = tmp_path / "policy"
        done = run(artifact.tool("neuroshard-train"), *option.command, "-o", output, option.flag,
                   value)
        name = option.flag.removeprefix("--").removeprefix("min-").removeprefix("max-")
        assert done.returncode == 1 and name.replace("-", "_") in done.stderr.replace("-", "_"), (
            option, value, done.stderr)
        assert "expected" in done.stderr and not output.exists()


MODULE = """module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
}
"""


def test_numbers_of_passes(tmp_path):
    model = tmp_path / "model.mlir"
    model.write_text(MODULE)
    plan = tmp_path / "plan.json"
    ns.Plan(device_count=2, shards=[]).save(plan)
    rows = [row for row in OPTIONS.values() if row["kind"] != "text"]
    assert len(rows) > 10
    chooser = random.Random(f"passes {matrix.seed()}")
    context = {"published": "algorithm=published", "dreamshard": "algorithm=dreamshard",
               "horizon_steps": f"previous={plan}", "tolerance": f"previous={plan}"}
    for row in rows:
        value = chooser.choice(("x", "nan", "1e400", HUGE, "-1e30", "1e30"))
        if row["kind"] == "number" and value == HUGE:
            value = "1e400"
        setting = context.get(row["scope"], context.get(row["key"], ""))
        done = run(artifact.tool("neuroshard-opt"), model,
                   f"--neuroshard-plan={setting} {row['flag']}={value}")
        assert done.returncode == 1 and row["flag"] in done.stderr, (row, value, done.stderr)
        assert value in done.stderr or "got: " in done.stderr, (row, value, done.stderr)
        assert "Stack dump" not in done.stderr


@pytest.mark.parametrize("key", [key for key, row in OPTIONS.items() if row["kind"] != "text"])
def test_numbers_of_the_command_neuroshard(key, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_command = make_runner(capsys, tmp_path)
    row = OPTIONS[key]
    algorithm = ["--algorithm", row["scope"]] if row["scope"] else []
    below = f"{row['low'] - 0.5:g}" if row["kind"] == "number" else str(int(row["low"]) - 1)
    for value in ("x", "nan", "inf", "1e400", HUGE, below):
        done = run_command("plan", "small.json", *algorithm, f"--{row['flag']}={value}")
        assert done.code in (1, 2), (value, done)
        assert key in done.err.replace("-", "_"), (value, done)


@pytest.mark.parametrize("sizes, expected", [
    ("1,2,3", "5 required"), ("0,10,16,2,1", "tables in [1, "), ("1,10,16,2,-1", "ids per bag in [1, "),
    ("1,281474976710657,16,2,1", "rows in [1, 281474976710656], got: 281474976710657"),
    ("1048576,281474976710656,1048576,2147483648,1000000", "take 4,294,967,296 GiB"),
    ("1,x,16,2,1", "--custom")])
def test_sizes_of_a_custom_shape(sizes, expected):
    done = run(artifact.tool("neuroshard-bench"), "kernels", f"--custom={sizes}")
    assert done.returncode == 1 and expected in done.stderr and "--custom" in done.stderr, done
