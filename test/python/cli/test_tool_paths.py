"""Paths on the tools' command lines: an output needs a name."""

import subprocess

import pytest

from support import artifact

MODEL = """!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @t : 10 x 4 x f32
  func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
    %r = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
}
"""
OUTPUTS = {
    "compile": ("--output", "folder", "model.mlir", "--topology", "2xCPU"),
    "collect compute": ("--output", "file", "--samples", "1"),
    "collect plans": ("--output", "file", "--tasks", "1", "--devices", "2"),
    "collect sets": ("--output", "file", "--device-class", "CPU", "--samples", "1"),
    "train compute": ("--output", "file", "data"),
    "train communication": ("--output", "file", "data"),
    "train curve": ("--output", "file", "data"),
    "train evaluate": ("--output", "file", "model", "data"),
    "train placement": ("--output", "file"),
    "train placement --output policy": ("--curve", "file"),
    "train evaluate-placement": ("--output", "file"),
    "bench kernels": ("--json", "file"),
    "bench search": ("--curves", "file"),
    "bench model": ("file", "file"),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.mlir").write_text(MODEL)
    return tmp_path


@pytest.mark.parametrize("command", OUTPUTS)
def test_empty_output(command, folder):
    tool, *words = command.split()
    option, kind, *rest = OUTPUTS[command]
    empty = [""] if option == "file" else [option, ""]
    done = subprocess.run([artifact.tool(f"neuroshard-{tool}"), *words, *rest, *empty],
                          capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 1, done
    assert done.stderr.startswith(
        f"{option}: expected the name of a {kind}, got an empty text\n"), done.stderr
    assert [path.name for path in folder.iterdir()] == ["model.mlir"]
