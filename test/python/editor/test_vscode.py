"""The folder editors/vscode: its JSON, and what its grammar colours."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text())
GRAMMAR = json.loads((FOLDER / "syntaxes/neuroshard.tmLanguage.json").read_text())
RULES = {name: rule for name, rule in GRAMMAR["repository"].items()}


def found(rule, text):
    return [match.group(0) for match in re.finditer(RULES[rule]["match"], text)]


def test_package_names_what_is_there():
    grammar, = PACKAGE["contributes"]["grammars"]
    assert (FOLDER / grammar["path"]).exists()
    assert grammar["scopeName"] == GRAMMAR["scopeName"]
    assert {f"#{name}" for name in RULES} == {rule["include"] for rule in GRAMMAR["patterns"]}
    server = PACKAGE["contributes"]["configurationDefaults"]["mlir.server_path"]
    assert (ROOT / "tools" / server / "CMakeLists.txt").exists()
    version = re.search(r"project\(\w+\s+VERSION\s+([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert PACKAGE["version"] == version.group(1)


@pytest.mark.parametrize("rule", RULES)
def test_captures_are_groups(rule):
    pattern = re.compile(RULES[rule]["match"])
    assert all(int(group) <= pattern.groups for group in RULES[rule].get("captures", {}))
    assert "name" in RULES[rule] or "captures" in RULES[rule]


def test_every_name_of_the_dialect():
    """The names in the reference, which is made from TableGen."""
    reference = (ROOT / "docs/reference/dialect.md").read_text()
    ops = re.findall(r"^### `neuroshard\.(\w+)`", reference, re.M)
    assert len(ops) > 20
    for op in ops:
        assert found("operation", f"    %0 = neuroshard.{op} %a") == [f"neuroshard.{op}"]
        assert found("operation", f"neuroshard.{op}") == [f"neuroshard.{op}"]


def test_colours_a_module():
    text = """
module attributes {neuroshard.batch = 16 : i64, neuroshard.planning = {target = "native"}} {
  neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<adam>}
  neuroshard.plan @plan on @cluster semantics exact provenance {algorithm = "size"} {
    neuroshard.shard "t" of @t rows [0, 100) cols [0, 8) on [0, 1] tier dram cache 64 policy lfu route relay
  }
  func.func @forward(%ids: !neuroshard.jagged<["rows", "on"], i64>) -> tensor<?x8xf32> {
"""
    assert found("operation", text) == ["neuroshard.table", "neuroshard.plan", "neuroshard.shard"]
    assert found("type", text) == ["!neuroshard.jagged"]
    assert found("attribute", text) == ["#neuroshard.optimizer"]
    assert found("module-attribute", text) == ["neuroshard.batch", "neuroshard.planning"]
    assert found("range", text) == ["rows [0, 100)", "cols [0, 8)"]
    assert found("placement", text) == ["on", "semantics", "provenance", "on", "tier", "cache", "policy",
                                        "route"]
