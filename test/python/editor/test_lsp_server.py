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


def prices(text, folder):
    """(line, text) of each remark of the pass."""
    (folder / "model.mlir").write_text(text)
    printed = subprocess.run([tool("neuroshard-opt"), folder / "model.mlir", "--neuroshard-price",
                              "-o", os.devnull], capture_output=True, text=True, check=True).stderr
    return sorted((int(line) - 1, price) for line, price in
                  re.findall(r"model\.mlir:(\d+):\d+: remark: (.*)", printed))


def hovers(server, text, lines):
    """What is shown on the names of the ops on these lines."""
    rows = text.splitlines()
    return {line: server.hover(line, rows[line].index("neuroshard.") + 3) for line in lines}


def test_hovers_say_what_the_pass_says(server, tmp_path):
    expected = prices(MODEL, tmp_path)
    lines = {line for line, _ in expected}
    assert lines == {4, 5, 6, 7, 8, 9}
    shown = server.diagnostics_of(MODEL)
    assert by_line(shown, INFORMATION) == [next(each for each in expected if "predicted step" in each[1])]
    assert not by_line(shown, ERROR)
    for line, hover in hovers(server, MODEL, lines).items():
        texts = [text for at, text in expected if at == line]
        assert [text for _, text in expected if text in hover] == texts and hover.startswith('"neuroshard.')


def test_diagnostics_say_what_the_pass_says(tmp_path):
    """To a client whose messages are not looked at."""
    with LspClient(tool("neuroshard-lsp-server"), "--input-style=standard") as client:
        assert by_line(client.diagnostics_of(MODEL), INFORMATION) == prices(MODEL, tmp_path)


def test_says_who_it_is(server):
    """Its name, and what prices are: not MLIR's server, and no errors of a parser."""
    info = server.initialized["serverInfo"]
    assert info["name"] == "neuroshard-lsp-server" and re.fullmatch(r"\d+\.\d+\.\d+", info["version"])
    assert {each["category"] for each in server.diagnostics_of(MODEL)} == {"Price"}
    broken = MODEL.replace("on [1]", "on [7]")
    assert {each["category"] for each in server.diagnostics_of(broken)} == {"Parse Error"}


def test_hover_on_a_symbol(server):
    """The name of a table shows its price wherever it is used."""
    server.diagnostics_of(MODEL)
    for line, row in enumerate(MODEL.splitlines()):
        for use in re.finditer("@user", row):
            assert "1000 x 64, 253.9 KiB" in server.hover(line, use.start() + 2)


def test_names_of_any_characters(server):
    text = MODEL.replace("@user", '@"a: \\22b @c"')
    assert not by_line(server.diagnostics_of(text), ERROR)
    assert "1000 x 64, 253.9 KiB" in server.hover(4, 5)
    assert "weights 250.0 KiB" in server.hover(7, 7)


def test_no_old_price(server):
    server.diagnostics_of(MODEL)
    broken = MODEL.replace("on [1]", "on [7]")
    server.diagnostics_of(broken)
    assert "KiB" not in "".join(hovers(server, broken, range(4, 10)).values())


def test_ids_of_requests_may_be_texts(server):
    server.diagnostics_of(MODEL)
    position = {"textDocument": {"uri": "file:///model.mlir"}, "position": {"line": 7, "character": 6}}
    assert "weights 250.0 KiB" in server.request("textDocument/hover", position, "a \"b\"")["contents"]["value"]


@pytest.mark.parametrize("text", ["", "hello"] + [
    '{"jsonrpc": "2.0", ' + rest for rest in (
        '"method": "textDocument/hover"}',
        '"id": 3, "method": "textDocument/hover"}',
        '"id": 3, "method": "textDocument/hover", "params": {"textDocument": [], "position": "here"}}',
        '"id": null, "method": "textDocument/hover", "params": []}',
        '"id": 3, "result": {"contents": {"value": 1}}}',
        '"method": "textDocument/publishDiagnostics", "params": {"diagnostics": [1]}}')])
def test_messages_that_are_none(server, text):
    """Both sides read on."""
    server.diagnostics_of(MODEL)
    server.send_text(text)
    assert "weights 250.0 KiB" in server.hover(7, 6)


@pytest.mark.parametrize("options", [[], ["--input-style=standard"]])
def test_ends_with_its_input(options):
    client = LspClient(tool("neuroshard-lsp-server"), *options)
    client.diagnostics_of(MODEL)
    assert client.end_input() in (0, 1)


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


def test_no_remark_on_later_levels(server, tmp_path):
    (tmp_path / "model.mlir").write_text(MODEL)
    sharded = subprocess.run([tool("neuroshard-opt"), tmp_path / "model.mlir", "--neuroshard-to-partitioned"],
                             capture_output=True, text=True, check=True).stdout
    assert "neuroshard.plan" in sharded and not server.diagnostics_of(sharded)


def test_modules_of_one_file(server):
    """Each part of a split file is priced; one with an error does not hide the others."""
    broken = MODEL.replace("on [1]", "on [7]")
    diagnostics = server.diagnostics_of(f"{MODEL}// -----\n{broken}// -----\n{MODEL}")
    lines = MODEL.count("\n") + 1
    assert [at for at, _ in by_line(diagnostics, ERROR)] == [lines + 8]
    assert {at // lines for at, _ in by_line(diagnostics, INFORMATION)} == {0, 2}


def test_same_names_in_modules_of_one_file(server):
    large = MODEL.replace("1000 x 64", "2000 x 64").replace("rows [0, 1000)", "rows [0, 2000)")
    server.diagnostics_of(f"{MODEL}// -----\n{large}")
    lines = MODEL.count("\n") + 1
    for begin, price in ((0, "1000 x 64, 253.9 KiB"), (lines, "2000 x 64, 507.8 KiB")):
        assert price in server.hover(begin + 4, 5)
        assert price in server.hover(begin + 12, MODEL.splitlines()[12].index("@user") + 1)


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
        server.hover(draw.randrange(15), draw.randrange(40), f"file:///edit{number}.mlir")
