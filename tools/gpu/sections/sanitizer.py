"""compute-sanitizer over a few correctness cases, where it is installed and runs."""

import shutil
import subprocess
import sys
from pathlib import Path

RUN_CASE = Path(__file__).resolve().parents[1] / "run_case.py"
TOOLS = ("memcheck", "racecheck")
FOUND = 9


def run(context):
    records = context.records("sanitizer")
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer",
                                                             path="/usr/local/cuda/bin")
    if context.dry or not tool:
        records.add("compute-sanitizer", skipped="a dry run" if context.dry else "not installed")
        return
    for kind in TOOLS:
        for name in context.catalogue("cases")[:3]:
            if f"{kind} {name}" not in records:
                records.add(f"{kind} {name}", **check(context, tool, kind, name))
    found = [name for name, record in records.items.items() if record.get("found")]
    if found:
        raise AssertionError(f"compute-sanitizer found errors in {found}")


def check(context, tool, kind, name):
    command = [tool, "--tool", kind, "--error-exitcode", str(FOUND), sys.executable,
               str(RUN_CASE), str(context.artifacts), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    output = (done.stdout + done.stderr)[-1500:]
    if done.returncode not in (0, FOUND):
        return {"skipped": f"did not run (exit code {done.returncode}): {output[-400:]}"}
    return {"found": done.returncode == FOUND, "output": output}
