"""The folder that neuroshard-compile writes when it is interrupted, killed, or the disk is full:
the earlier artifact, whole, and nothing beside it that the next compilation does not remove."""

import contextlib
import os
import re
import signal
import subprocess
import time

import pytest

from support import artifact

MODEL = """
!ids = !neuroshard.jagged<["user"], i64>
module {
  neuroshard.table private @user : 50 x 8 x f32
  func.func @forward(%ids: !ids) -> tensor<?x8xf32> {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x8xf32>
    return %u : tensor<?x8xf32>
  }
}
"""
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
OPTIONS = ("--topology", "2xCPU", "--batch", "8", "--reference", "-O", "0")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    return path


def compile_to(model, folder):
    return artifact.run_tool("neuroshard-compile", model, "-o", folder, *OPTIONS)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def heed_signals():
    """Signals that the tests' own caller ignores, as nohup does, would be ignored below, too."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def held(model, folder, tmp_path):
    """A compilation that waits for its linker."""
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    started = tmp_path / "linker-started"
    started.unlink(missing_ok=True)
    linker = tools / "ld.lld-22"
    linker.write_text(f"#!/bin/sh\necho $$ > {started}.new\nmv {started}.new {started}\n"
                      "exec sleep 3600\n")
    linker.chmod(0o755)
    process = subprocess.Popen([artifact.tool("neuroshard-compile"), model, "-o", folder, *OPTIONS],
                               env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
                               stderr=subprocess.DEVNULL, preexec_fn=heed_signals)
    try:
        while not started.exists():
            assert process.poll() is None
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(started.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_leaves_nothing(model, tmp_path, number):
    out = tmp_path / "out"
    out.mkdir()
    assert compile_to(model, out / "a") == (0, "")
    before = (out / "a" / "manifest.json").read_bytes()
    with held(model, out / "a", tmp_path) as process:
        assert len(names(out)) == 2
        process.send_signal(number)
        assert process.wait(timeout=600) == -number
    assert names(out) == ["a"]
    assert (out / "a" / "manifest.json").read_bytes() == before


def test_what_a_killed_compilation_has_left_is_removed(model, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with held(model, out / "a", tmp_path) as process:
        process.kill()
        process.wait()
        assert len(names(out)) == 1 and names(out)[0].startswith("a.partial-")
    (out / "a.partial-notes").mkdir()
    with held(model, out / "ab", tmp_path):  # beside one that goes on, and is of another name
        assert len(names(out)) == 3
        assert compile_to(model, out / "a") == (0, "")
        left = names(out)
        assert left[:2] == ["a", "a.partial-notes"]
        assert len(left) == 3 and left[2].startswith("ab.partial-")


def test_compilations_of_one_name_leave_each_other_alone(model, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with held(model, out / "a", tmp_path):
        partial = names(out)
        assert compile_to(model, out / "a") == (0, "")
        assert names(out) == ["a", *partial]


def test_a_symbolic_link_stays(model, tmp_path):
    (tmp_path / "a").symlink_to("real")
    (tmp_path / "real").mkdir()
    for _ in range(2):
        assert compile_to(model, tmp_path / "a") == (0, "")
        assert (tmp_path / "a").is_symlink()
    assert "program0.so" in names(tmp_path / "real")


def on_small_disk(kilobytes, model, mount):
    """(exit code, standard error, names left) of a compilation onto a disk of its own."""
    script = (f"mount -t tmpfs -o size={kilobytes}k none {mount} || exit 99\n"
              '"$@"; code=$?; ls -A ' f"{mount}; exit $code")
    done = subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh",
                           artifact.tool("neuroshard-compile"), model, "-o", mount / "a",
                           "--emit-ir", *OPTIONS],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, done.stdout.split()


def test_a_full_disk_is_one_error(model, tmp_path):
    mount = tmp_path / "disk"
    mount.mkdir()
    code, message, _ = on_small_disk(4096, model, mount)
    if code == 99 or "unshare" in message:
        pytest.skip(f"no disk of a chosen size: {message}")
    assert code == 0, message
    failed = 0
    for kilobytes in range(4, 200, 8):
        code, message, left = on_small_disk(kilobytes, model, mount)
        if code == 0:
            assert left == ["a"]
            continue
        failed += 1
        assert code == 1 and left == [], (kilobytes, message)
        assert re.search(r"error: cannot (write|create) '[^']+': No space left on device",
                         message), (kilobytes, message)
        assert message.count("error: ") == 1, (kilobytes, message)
        assert "Stack dump" not in message and "LLVM ERROR" not in message, message
    assert failed > 5


@pytest.mark.parametrize("tool", ["bench", "collect", "compile", "opt", "run", "train",
                                  "translate"])
def test_help_onto_a_full_disk_is_an_error(tool):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([artifact.tool(f"neuroshard-{tool}"), "--help"], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "is the disk full?" in done.stderr or "No space left on device" in done.stderr  # LLVM's


def test_a_report_onto_a_full_disk_is_an_error(model, tmp_path):
    assert compile_to(model, tmp_path / "a") == (0, "")
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([artifact.tool("neuroshard-run"), tmp_path / "a", "--batch", "8"],
                              stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1, "neuroshard-run: cannot write to the standard output; is the disk full?\n")


def test_a_batch_that_memory_cannot_hold_is_one_error(model, tmp_path):
    assert compile_to(model, tmp_path / "a") == (0, "")
    code, message = artifact.run_tool("neuroshard-run", tmp_path / "a", "--batch", "2000000000",
                                      "--pooling", "1000000")
    assert code == 1 and message.count("\n") == 1
    assert "the inputs of a batch of 2000000000 samples need" in message
    assert "choose a smaller --batch or fewer ids" in message
