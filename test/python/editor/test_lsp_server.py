"""neuroshard-lsp-server: what a plan costs, in an editor, and that no text ends the server."""

import os
import random
import re
import subprocess

import pytest
from editor.lsp_client import ERROR, INFORMATION, LspClient

from support.artifact import tool

MODEL = """\
!ids = !neuroshard.jagged<["user", "item"], i64>
module attributes {neuroshard.batch = 256 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"host", groups = [2], bandwidth = 10.0, latency = 5.0>]
  neuroshard.table private @user : 1000 x 64 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @item : 100 x 16 x f32
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "user" of @user rows [0, 1000) cols [0, 64) on [0]
    neuroshard.shard "item_0" of @item rows [0, 60) cols [0, 16) on [1]
    neuroshard.shard "item_1" of @item rows [60, 100) cols [0, 16) on [0]
  }
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x16xf32>) {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x64xf32>
    %i = neuroshard.lookup sum @item[%ids, "item"] : !ids -> tensor<?x16xf32>
    return %u, %i : tensor<?x64xf32>, tensor<?x16xf32>
  }
}
"""


@pytest.fixture
def server():
    with LspClient(tool("neuroshard-lsp-server")) as client:
        yield client


def by_line(diagnostics, severity):
    return sorted((each["range"]["start"]["line"], each["message"]) for each in diagnostics
                  if each["severity"] == severity)


def test_shows_what_the_pass_says(server, tmp_path):
    (tmp_path / "model.mlir").write_text(MODEL)
    printed = subprocess.run([tool("neuroshard-opt"), tmp_path / "model.mlir", "--neuroshard-price",
                              "-o", os.devnull], capture_output=True, text=True, check=True).stderr
    expected = sorted((int(line) - 1, text) for line, text in
                      re.findall(r"model\.mlir:(\d+):\d+: remark: (.*)", printed))
    assert {line for line, _ in expected} == {4, 5, 6, 7, 8, 9}
    shown = server.diagnostics_of(MODEL)
    assert by_line(shown, INFORMATION) == expected
    assert not by_line(shown, ERROR)


def test_hover_describes_the_op(server):
    server.diagnostics_of(MODEL)
    assert "neuroshard.shard" in server.hover(7, 8)["contents"]["value"]


def test_says_why_there_is_no_price(server):
    partial = MODEL.replace("rows [60, 100)", "rows [60, 90)")
    (line, text), = by_line(server.diagnostics_of(partial), INFORMATION)
    assert line == 6 and text.startswith("no price: ") and "'item'" in text
    without_batch = MODEL.replace("neuroshard.batch = 256 : i64", "")
    (line, text), = by_line(server.diagnostics_of(without_batch), INFORMATION)
    assert line == 1 and "neuroshard.batch" in text


@pytest.mark.parametrize("old, new, line", [
    ("of @item rows [60", "of @nothing rows [60", 9),  # a shard that is verified after the plan
    ("sum @item[", "sum @nothing[", 13),  # in a function
    ("on [1]", "on [7]", 8),
    ("cols [0, 64)", "cols [0, 65)", 7),
    ("on @cluster", "on @nothing", 6),
    ("@forward(", "@forward((", 11),
])
def test_error_instead_of_prices(server, old, new, line):
    diagnostics = server.diagnostics_of(MODEL.replace(old, new))
    assert [at for at, _ in by_line(diagnostics, ERROR)] == [line]
    assert not by_line(diagnostics, INFORMATION)


def test_no_plan_no_remark(server):
    assert not server.diagnostics_of("module {\n}\n")


def test_modules_of_one_file(server):
    """Each part of a split file is priced; one with an error does not hide the others."""
    broken = MODEL.replace("on [1]", "on [7]")
    diagnostics = server.diagnostics_of(f"{MODEL}// -----\n{broken}// -----\n{MODEL}")
    lines = MODEL.count("\n") + 1
    assert [at for at, _ in by_line(diagnostics, ERROR)] == [lines + 8]
    assert {at // lines for at, _ in by_line(diagnostics, INFORMATION)} == {0, 2}


def test_survives_edits(server):
    """As typed: tokens dropped, doubled and swapped; the server answers each."""
    seed = int(os.environ.get("NEUROSHARD_SEED", "1"))
    draw = random.Random(seed)
    tokens = re.split(r"(\W)", MODEL)
    for number in range(500 if os.environ.get("NEUROSHARD_ALL") else 40):
        edited = list(tokens)
        for _ in range(draw.randint(1, 3)):
            at, other = draw.randrange(len(edited)), draw.randrange(len(edited))
            edited[at] = draw.choice(["", edited[other], edited[at] * 2, "18446744073709551615"])
        diagnostics = server.diagnostics_of("".join(edited), f"file:///edit{number}.mlir")
        assert all(each["message"] for each in diagnostics), f"seed {seed}, edit {number}"
