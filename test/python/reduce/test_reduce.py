"""neuroshard-reduce: modules with planned faults become small and still fail."""

import os
import re
import subprocess

import pytest
from reduce.failing_modules import KINDS, failure

from support.artifact import tool

MOST_TABLES = 3
FAILURES = range(50) if os.environ.get("NEUROSHARD_ALL") else [0, 6]

DENSE = """\
!ids = !neuroshard.jagged<["a", "b"], i64>
module attributes {neuroshard.batch = 256 : i64} {
  neuroshard.table private @a : 1000 x 16 x f32
  neuroshard.table private @b : 2000 x 16 x f32
  func.func private @helper(%x: tensor<?x16xf32>) -> tensor<?x16xf32>
  func.func @forward(%dense: tensor<?x16xf32>, %ids: !ids) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
    %a = neuroshard.lookup sum @a[%ids, "a"] : !ids -> tensor<?x16xf32>
    %b = neuroshard.lookup unpooled @b[%ids, "b"] : !ids -> tensor<?x16xf32>
    %sum = arith.addf %a, %dense : tensor<?x16xf32>
    %helped = func.call @helper(%sum) : (tensor<?x16xf32>) -> tensor<?x16xf32>
    %square = arith.mulf %helped, %helped : tensor<?x16xf32>
    %negated = arith.negf %b : tensor<?x16xf32>
    return %square, %negated : tensor<?x16xf32>, tensor<?x16xf32>
  }
}
"""


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def reduce(text, folder, *options):
    """What neuroshard-reduce leaves of a module, and what it printed."""
    source, small = folder / "model.mlir", folder / "small.mlir"
    source.write_text(text)
    return run(tool("neuroshard-reduce"), source, "-o", small, *options), small


def fails(case, module):
    done = run(tool(case.command[0]), *case.command[1:], module, "-o", os.devnull)
    return case.error in done.stderr if case.error else done.returncode < 0


@pytest.mark.parametrize("number", FAILURES, ids=lambda number: f"{number}-{KINDS[number % 10].__name__}")
def test_planned_fault(number, tmp_path):
    case = failure(number)
    error = ["--error", case.error] if case.error else []
    done, small = reduce(case.module.text(), tmp_path, *error, "--", tool(case.command[0]), *case.command[1:])
    assert done.returncode == 0, done.stderr
    assert fails(case, tmp_path / "model.mlir") and fails(case, small)
    assert small.read_text().count("neuroshard.table") <= MOST_TABLES, small.read_text()


@pytest.mark.parametrize("text, kept", [
    ("arith.mulf", {"arith.mulf"}),
    ("neuroshard.lookup unpooled", {"neuroshard.lookup", "neuroshard.table"}),
    ("@helper(", {"func.func"}),
])
def test_drops_dense_ops(text, kept, tmp_path):
    """The module is to have a text; what is left has nothing else, and no table that is not read."""
    done, small = reduce(DENSE, tmp_path, "--error", text, "--", "cat")
    assert done.returncode == 0, done.stderr
    ops = re.findall(r"^ +(?:%\S+ = )?([a-z]\w*\.\w+)", small.read_text(), re.M)
    allowed = kept | {"func.func", "arith.constant", "tensor.splat", "neuroshard.batch_size"}
    assert kept <= set(ops) <= allowed, small.read_text()
    assert run(tool("neuroshard-opt"), small, "-o", os.devnull).returncode == 0


def test_drops_packed_features(tmp_path):
    argument = "%{0}: tensor<?xi64>, %o{0}: tensor<?xi64>, %w{0}: tensor<?xf32>"
    values = ["a", "b", "c"]
    arguments = ", ".join(argument.format(value) for value in values)
    operands = {kind: ", ".join(f"%{kind}{value}" for value in values) for kind in ("", "o", "w")}
    ids, weights = ", ".join(["tensor<?xi64>"] * 3), ", ".join(["tensor<?xf32>"] * 3)
    jagged = '!neuroshard.jagged<["a", "b", "c"], i64, weighted>'
    done, small = reduce(f"""
module {{
  neuroshard.table private @t : 100 x 8 x f32
  func.func @forward({arguments}) -> tensor<?x8xf32> {{
    %j = neuroshard.pack ids({operands[""]} : {ids}) offsets({operands["o"]} : {ids})
           weights({operands["w"]} : {weights}) : {jagged}
    %r = neuroshard.lookup sum @t[%j, "b"] : {jagged} -> tensor<?x8xf32>
    return %r : tensor<?x8xf32>
  }}
}}
""", tmp_path, "--error", "sum @t", "--", "sh", "-c", 'grep "neuroshard.pack" "$1" && cat "$1"', "sh")
    assert done.returncode == 0, done.stderr
    text = small.read_text()
    assert '<["b"], i64, weighted>' in text and "weights(%arg2 :" in text and "%arg3" not in text


DRIFT = """\
module {{
  neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU">]
    levels [#neuroshard.level<"n", groups = [4], bandwidth = 1.0>]
  neuroshard.table private @t : 100 x 8 x f32
  neuroshard.plan @plan on @cluster semantics exact {{
    neuroshard.shard "a" of @t rows [0, 50) cols [0, 8) on [{0}] sync_every 5
    neuroshard.shard "b" of @t rows [50, 100) cols [0, 8) on [{1}] sync_every 5
  }}
}}
"""


@pytest.mark.parametrize("first, second, drifts", [
    ("0, 1", "0, 1", True), ("0, 3", "1, 2", True), ("0, 2", "1, 3", False), ("0, 2", "0, 1", False)])
def test_fewer_devices_leave_a_sound_plan(first, second, drifts, tmp_path):
    """On two devices copies drift only where there are as many of each shard."""
    kept = ["devices<[2-4] x", '"a"', '"b"'] + ["sync_every"] * drifts
    keeps = "".join(f"grep -q '{text}' \"$1\" && " for text in kept) + 'cat "$1"'
    done, small = reduce(DRIFT.format(first, second), tmp_path, "--error", "neuroshard.plan", "--",
                         "sh", "-c", keeps, "sh")
    assert done.returncode == 0, done.stderr
    text = small.read_text()
    assert "devices<2 x" in text and ("sync_every" in text) == drifts, text
    assert run(tool("neuroshard-opt"), small, "-o", os.devnull).returncode == 0


def test_crash(tmp_path):
    """Without a text a signal counts, and an error does not."""
    crash = 'grep -q "lookup unpooled" "$1" || exit 1; kill -ABRT $$'
    done, small = reduce(DENSE, tmp_path, "--", "sh", "-c", crash, "sh")
    assert done.returncode == 0, done.stderr
    assert small.read_text().count("neuroshard.table") == 1
    assert "lookup unpooled @b" in small.read_text()


def test_slow_runs_do_not_fail(tmp_path):
    done, _ = reduce(DENSE, tmp_path, "--seconds", "1", "--error", "module", "--", "sh", "-c",
                     'sleep 30; cat "$1"', "sh")
    assert done.returncode == 1 and "the module does not fail" in done.stderr


def test_reduction_tree(tmp_path):
    """As mlir-reduce is used; each edit is tested on one op."""
    script = tmp_path / "test.sh"
    script.write_text('#!/bin/sh\ngrep -q "lookup unpooled @b" "$1" && exit 1\nexit 0\n')
    script.chmod(0o755)
    done, small = reduce(DENSE, tmp_path, f"--reduction-tree=traversal-mode=0 test={script}")
    assert done.returncode == 0, done.stderr
    assert small.read_text().count("neuroshard.table") == 1
    assert "arith.mulf" not in small.read_text()
    assert '["b"]' in small.read_text()


@pytest.mark.parametrize("options, error", [
    (["--error", "no such text", "--", "cat"], "the module does not fail"),
    (["--", "./no-such-program"], "./no-such-program: cannot be run"),
    (["--neuroshard-reduction=test=/no/such/program"], "option 'test' must be a program, got: '/no/such/program'"),
    (["--"], "expected a command after --"),
    (["--error", "--", "cat"], "--error: expected a value"),
    (["--error=text"], "--error: has an effect only with a command after --"),
    (["--seconds=soon", "--", "cat"], "--seconds: expected a whole number above 0, got: 'soon'"),
])
def test_wrong_input(options, error, tmp_path):
    done, _ = reduce(DENSE, tmp_path, *options)
    assert done.returncode == 1 and error in done.stderr
    assert sum("error:" in line for line in done.stderr.splitlines()) == 1


def test_without_a_test_nothing_is_reduced(tmp_path):
    done, small = reduce(DENSE, tmp_path)
    assert done.returncode == 1 and "expected what tells whether a module fails" in done.stderr
    assert not small.exists()
    assert run(tool("neuroshard-reduce"), "--version").returncode == 0


def test_output_is_not_the_input(tmp_path):
    source = tmp_path / "model.mlir"
    source.write_text(DENSE)
    done = run(tool("neuroshard-reduce"), source, "-o", source, "--error", "module", "--", "cat")
    assert done.returncode == 1 and "is the input, too" in done.stderr
    assert source.read_text() == DENSE


@pytest.mark.parametrize(("output", "why"), [("/proc/small.mlir", "No such file or directory"), (".", "Is a directory")])
def test_an_output_that_cannot_be_written_is_told(output, why, tmp_path):
    source = tmp_path / "model.mlir"
    source.write_text(DENSE)
    done = run(tool("neuroshard-reduce"), source, "-o", output, "--error", "module", "--", "cat")
    assert done.returncode == 1
    assert done.stderr == f"neuroshard-reduce: error: {output}: cannot write: {why}\n"


def test_help():
    done = run(tool("neuroshard-reduce"), "--help")
    assert done.returncode == 0
    assert "--error TEXT" in done.stdout and "--reduction-tree" in done.stdout


def test_text_with_quotes(tmp_path):
    """The command and the text reach the shell as they are."""
    (tmp_path / "it's $HOME").write_text('print("""it\'s *$HOME* `x`""")')
    done, small = reduce(DENSE, tmp_path, "--error", "it's *$HOME* `x`", "--",
                         os.sys.executable, tmp_path / "it's $HOME")
    assert done.returncode == 0, done.stderr
    assert small.read_text().split() == ["module", "{", "}"] or "neuroshard.batch = 1" in small.read_text()
