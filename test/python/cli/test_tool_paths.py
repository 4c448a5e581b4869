"""Paths on the tools' command lines: an output needs a name, and an input without end is refused at
the limit of a file, before its memory is twice that."""

import os
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
LIMIT = 1 << 30


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


@pytest.mark.parametrize("words, expected", [
    (("/dev/zero",), "input file '/dev/zero' is too large: "),
    (("-",), "input file '-' is too large: "),
    (("large.mlir",), "input file 'large.mlir' is too large: "),
    (("model.mlir", "--plan", "/dev/zero"), "/dev/zero: is too large: ")])
def test_input_beyond_the_limit(words, expected, folder):
    with open(folder / "large.mlir", "wb") as large:
        large.truncate(LIMIT + 1)  # takes no disk
    with open("/dev/zero", "rb") as endless, open(folder / "errors", "wb") as errors:
        child = subprocess.Popen(
            [artifact.tool("neuroshard-compile"), *words, "-o", "made", "--topology", "2xCPU"],
            stdin=endless, stderr=errors, cwd=folder)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 1
    assert (folder / "errors").read_text() == (
        f"<unknown>:0: error: {expected}expected at most {LIMIT} bytes\n")
    assert usage.ru_maxrss * 1024 < 1.5 * LIMIT
    assert not list(folder.glob("made*"))


def test_name_with_control_characters(folder):
    done = subprocess.run([artifact.tool("neuroshard-compile"), "a\x1b[2J", "-o", "made"],
                          capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 1
    assert done.stderr == (
        "<unknown>:0: error: cannot open input file 'a\\x1b[2J': No such file or directory\n")


def test_input_from_pipes(folder):
    """A text of several blocks arrives whole, and its errors say where they are."""
    tables = "".join(f"neuroshard.table @t{i} : 100 x 8 x f32\n" for i in range(5000))
    done = subprocess.run(
        [artifact.tool("neuroshard-compile"), "-", "-o", "made", "--topology", "2xCPU"],
        input=tables + "wrong\n", capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 1 and done.stderr.startswith("<stdin>:5001:1: error: "), done
