"""What the shipped models must reach on measurements that no training saw; docs/cost-model-results.md
has what they reach."""

import json
import subprocess
from pathlib import Path

import pytest

from support.artifact import tool

MODELS = Path(__file__).parents[3] / "models"

# Of each model: its data, and the mean error and Kendall's tau of one figure.
GATES = {"cpu_compute": (("cpu_compute", "cpu_compute_more"), "total", 0.08, 0.95),
         "gloo_communication": (("gloo_communication",), "devices", 0.135, 0.88)}


@pytest.mark.parametrize("name", GATES)
def test_shipped_models_are_accurate(name, tmp_path):
    data, figure, error, tau = GATES[name]
    out = tmp_path / "figures.json"
    subprocess.run([tool("neuroshard-train"), "evaluate", MODELS / f"{name}.safetensors",
                    *(MODELS / "data" / f"{one}.safetensors" for one in data), "-o", out],
                   check=True, capture_output=True, timeout=600)
    rows = {row["subject"]: row for row in json.loads(out.read_text())}
    assert rows["model"]["samples"] > 200
    assert rows["model"][figure]["error"] <= error
    assert rows["model"][figure]["tau"] >= tau


def test_every_shipped_model_has_a_gate():
    assert {path.stem for path in MODELS.glob("*.safetensors")} == {*GATES, "placement_policy"}
