"""neuroshard-price prices a plan as the search that made it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from support.artifact import tool

WORKLOAD = Path(__file__).resolve().parents[3] / "workloads" / "criteo_kaggle.json"


def run(name, *arguments):
    return subprocess.run([tool(name), *arguments], capture_output=True, text=True, check=True)


@pytest.mark.parametrize("options", [
    "topology=8xH200 wire-types=auto",
    "topology=2x4xA100-40GB objective=published",
    "topology=2x4xA100-40GB dense-bottom-ms=0.5 dense-rest-ms=2 pipeline-depth=2",
    "topology=4xCPU target=torchrec-1.9 algorithm=torchrec",
    "topology=8xH200 algorithm=size semantics=per_shard memory-model=weights_only",
])
def test_as_the_search(options, tmp_path):
    model, planned = tmp_path / "model.mlir", tmp_path / "planned.mlir"
    run("neuroshard-translate", "--workload-to-mlir", WORKLOAD, "-o", model)
    run("neuroshard-opt", model, f"--neuroshard-plan=evaluation-budget=100 {options}", "-o", planned)
    remarks = run("neuroshard-opt", planned, "--neuroshard-price", "-o", os.devnull).stderr
    shards = planned.read_text().count("neuroshard.shard")
    priced, searched = re.findall(r"predicted (?:step |published cost )?([\d.]+) ms", remarks)
    assert priced == searched and float(priced) > 0
    assert len(re.findall(r"alone: lookups [\d.]+ ms, updates [\d.]+ ms", remarks)) == shards >= 26
    assert len(re.findall(r"of weights and optimizer states; \w+: \d+ shards? on", remarks)) == 26
