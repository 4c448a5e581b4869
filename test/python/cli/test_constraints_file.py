"""--constraints: the rules of a plan from a file."""

import json

import pytest

from support.commands import make_runner

MODEL = """
import neuroshard as ns

def build():
    return ns.ShardingProblem(tables=[ns.Table("a", 1000, 64), ns.Table("b", 5000, 64)],
                              features=[ns.Feature("x", "a"), ns.Feature("y", "b")], batch=512,
                              topology="4xCPU@2GiB", constraints=ns.Constraints(pins={"a": 0}))
"""


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    return make_runner(capsys, tmp_path)


def test_constraints_of_a_file(run, tmp_path):
    """As those of the API, for every command that plans, in place of the workload's own."""
    rules = {"pins": [{"table": "a", "devices": [3]}], "forbids": [{"table": "b", "devices": [0, 3]}],
             "tables": [{"table": "b", "allowed_kinds": ["table_wise"]}]}
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    found = run("plan", "model.py:build", "--constraints", "rules.json", "--json").json
    devices = {name: [shard["devices"] for shard in found["plan"]["shards"] if shard["table"] == name] for name in "ab"}
    assert set(map(tuple, devices["a"])) == {(3,)} and devices["b"] in ([[1]], [[2]])
    whatif = run("what-if", "model.py:build", "-n", 4, "--constraints", "rules.json", "--json").json
    assert whatif["cases"][0]["cost_ms"] == found["cost_ms"]
    (tmp_path / "pinned.json").write_text('{"pins": [{"table": "a", "devices": [1]}]}')
    run("plan", "model.py:build", "-o", "plan.json", "--constraints", "pinned.json")
    refused = run("plan", "model.py:build", "--given", "plan.json", "--constraints", "rules.json")
    assert refused.code == 1 and "a pin keeps it off device 1" in refused.err


@pytest.mark.parametrize(("text", "message"), [
    ('{"pins": [', "rules.json: not JSON: Expecting value"),
    ("[" * 100_000, "rules.json: not JSON"),
    ("[]", "rules.json: expected an object with some of pins"),
    ('{"pins": [], "pins": []}', "has the field 'pins' twice"),
    ('{"pin": []}', "rules.json: pin: unknown field"),
    ('{"pins": [{"table": "nope", "devices": [0]}]}', "rules.json: pins[0].table: unknown table 'nope'"),
    ('{"pins": [{"table": "b", "devices": [99]}]}', "rules.json: pins[0].devices: expected devices in [0, 4)")])
def test_constraints_that_are_wrong_name_their_file(run, tmp_path, text, message):
    (tmp_path / "rules.json").write_text(text)
    refused = run("plan", "model.py:build", "--constraints", "rules.json")
    assert refused.code == 1 and message in refused.err
