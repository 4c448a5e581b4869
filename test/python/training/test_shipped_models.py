"""What the shipped models must reach on measurements that no training saw; docs/cost-model-results.md
has what they reach."""

import json
import statistics
import struct
import subprocess
from pathlib import Path

import pytest

import neuroshard as ns
from support.artifact import tool

MODELS = Path(__file__).parents[3] / "models"

# Of each model: its data, and the mean error and Kendall's tau of one figure.
GATES = {"cpu_compute": (("cpu_compute", "cpu_compute_more"), "total", 0.08, 0.95),
         "gloo_communication": (("gloo_communication",), "devices", 0.135, 0.88)}


def data_of(name):
    return [MODELS / "data" / f"{one}.safetensors" for one in GATES[name][0]]


def metadata_of(path):
    content = path.read_bytes()
    length, = struct.unpack("<Q", content[:8])
    return json.loads(content[8:8 + length])["__metadata__"]


@pytest.mark.parametrize("name", GATES)
def test_shipped_models_are_accurate(name, tmp_path):
    _, figure, error, tau = GATES[name]
    out = tmp_path / "figures.json"
    subprocess.run([tool("neuroshard-train"), "evaluate", MODELS / f"{name}.safetensors",
                    *data_of(name), "-o", out], check=True, capture_output=True, timeout=600)
    rows = {row["subject"]: row for row in json.loads(out.read_text())}
    assert rows["model"]["samples"] > 200
    assert rows["model"][figure]["error"] <= error
    assert rows["model"][figure]["tau"] >= tau


@pytest.mark.parametrize("name", GATES)
def test_intervals_hold_nine_of_ten(name, tmp_path):
    """Half of the held-out samples give the interval again, the other half judges it."""
    shipped, out = MODELS / f"{name}.safetensors", tmp_path / "again.safetensors"
    subprocess.run([tool("neuroshard-train"), "interval", shipped, *data_of(name), "-o", out],
                   check=True, capture_output=True, timeout=600)
    assert out.read_bytes() == shipped.read_bytes()
    found = metadata_of(out)
    bounds, source = json.loads(found["interval"]), json.loads(found["card"])["interval"]
    assert 0.5 < bounds["low"] < 1 < bounds["high"] < 2
    assert source["fitted"] > 100 and source["judged"] > 100
    assert 0.85 <= source["inside"] <= 0.95


def test_whole_plans_are_ranked():
    """By the compute of their slowest device, as it was predicted before it was measured."""
    measured = json.loads((MODELS / "data" / "cpu_plans.json").read_text())
    assert measured["cost_model"] == "cpu_compute+roofline"

    def slowest(plan, kind):
        return max(device[f"{kind}forward_ms"] + device[f"{kind}backward_ms"]
                   for device in plan["per_device"])

    def ranks(values):
        order = sorted(values)
        return [order.index(one) for one in values]

    assert len(measured["plans"]) > 400
    predicted, real = (ranks([slowest(plan, kind) for plan in measured["plans"]])
                       for kind in ("predicted_", ""))
    assert statistics.correlation(predicted, real) >= 0.99


def test_a_plan_says_the_intervals():
    problem = ns.ShardingProblem(tables=[ns.Table("t", 1000, 16)],
                                 features=[ns.Feature("f", "t")], batch=64, topology="2xCPU")
    breakdown = ns.plan(problem).breakdown
    for name, interval in (("cpu_compute", breakdown.compute_interval),
                           ("gloo_communication", breakdown.communication_interval)):
        bounds = json.loads(metadata_of(MODELS / f"{name}.safetensors")["interval"])
        assert interval == ns.PredictionInterval(**bounds)
    other = ns.plan(problem, cost_model="roofline").breakdown
    assert other.compute_interval is other.communication_interval is None


def test_every_shipped_model_has_a_gate():
    assert {path.stem for path in MODELS.glob("*.safetensors")} == {*GATES, "placement_policy"}
