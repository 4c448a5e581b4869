"""Outputs onto a full disk: one error that names the file and the cause, and no partial file.
Artifacts: test_compile_output.py. Checkpoints: test_checkpoint_ranks.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import neuroshard as ns
from support import artifact
from support.planning import small_problem

# More text than the file that is emptied for it made room for.
TABLES = 500
MODEL = "".join(f"neuroshard.table @t{i} : 100 x 8 x f32\n" for i in range(TABLES))
FULL = """mount -t tmpfs -o size=16k none disk || exit 99
echo earlier > disk/out
head -c 100000 /dev/zero > disk/filler 2> /dev/null
"$@"; code=$?
ls -A disk >&2; test ! -e disk/out || cat disk/out >&2
exit $code"""
DATA = Path(__file__).resolve().parents[3] / "models" / "data"
ONE_STEP = ("--members", "1", "--epochs", "1", "--min-steps", "0")
PROGRAM = """import sys
import torch
import neuroshard.export
model = torch.nn.EmbeddingBag(1000, 8, mode="sum")
exported = neuroshard.export.export(model, (torch.arange(20), torch.arange(0, 20, 4)))
try:
    exported.save(sys.argv[2], weights=True)
except neuroshard.export.ExportError as error:
    sys.exit(f"{error}")"""
WRITERS = {
    "opt": (artifact.tool("neuroshard-opt"), "model.mlir"),
    "translate": (artifact.tool("neuroshard-translate"), "--workload-to-mlir", "large.json"),
    "sets": (artifact.tool("neuroshard-collect"), "sets", "--device-class", "CPU", "--samples",
             "3"),
    "samples": (artifact.tool("neuroshard-collect"), "compute", "--samples", "1"),
    "plans": (artifact.tool("neuroshard-collect"), "plans", "--tasks", "1", "--devices", "2"),
    "compute": (artifact.tool("neuroshard-train"), "compute", DATA / "cpu_sse2_compute.safetensors",
                *ONE_STEP, "--limit", "50"),
    "exchanges": (artifact.tool("neuroshard-train"), "communication",
                  DATA / "gloo_communication.safetensors", *ONE_STEP, "--limit", "50"),
    "curve": (artifact.tool("neuroshard-train"), "curve", DATA / "cpu_sse2_compute.safetensors",
              *ONE_STEP, "--counts", "10"),
    "placement": (artifact.tool("neuroshard-train"), "placement", "--iterations", "1", "--tasks",
                  "1", "--episodes", "2", "--validation-tasks", "1", "--max-tables", "12"),
    "export": (sys.executable, "-c", PROGRAM),
    "plan": (sys.executable, "-m", "neuroshard", "plan", "problem.json"),
    "html": (sys.executable, "-m", "neuroshard", "plan", "problem.json", "--html"),
}
PACKAGE = Path(os.environ["NEUROSHARD_BUILD_DIR"], "python")
NEEDS_NEW = ("samples", "plans")
# MLIR's driver empties its output before it reads the input.
KEEP_NOTHING = ("opt", "translate")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "disk").mkdir()
    (tmp_path / "model.mlir").write_text(MODEL)
    small_problem().save("problem.json")
    small_problem(tables=[ns.Table(f"t{i}", 100, 8) for i in range(TABLES)],
                  features=[ns.Feature(f"f{i}", f"t{i}") for i in range(TABLES)]).save("large.json")
    return tmp_path


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk(writer, folder):
    file = "disk/new" if writer in NEEDS_NEW else "disk/out"
    place = [file] if writer == "html" else ["-o", file]
    done = subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", FULL, "sh",
                           *WRITERS[writer], *place], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no disk of a chosen size: {done.stderr}")
    said, left = done.stderr.split("filler\n")
    message = said.splitlines()[-1]
    assert done.returncode == 1 and file in message, done.stderr
    assert "No space left on device" in message or "is the disk full?" in message
    assert "LLVM ERROR" not in message
    if writer in KEEP_NOTHING:
        assert left in ("", "out\n")
    else:
        assert left == "out\nearlier\n"


@pytest.mark.parametrize("tool", ["opt", "translate"])
def test_a_full_standard_output(tool, folder):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(WRITERS[tool], stdout=full, stderr=subprocess.PIPE, text=True,
                              check=False)
    assert done.returncode == 1
    assert done.stderr == (f"neuroshard-{tool}: error: standard output: IO failure on output "
                           "stream: No space left on device\n")
