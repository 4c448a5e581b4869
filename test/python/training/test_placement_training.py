"""neuroshard-train placement learns a policy for algorithm dreamshard from random tasks alone,
writes the same file each time, and evaluate-placement scores it."""

import json
import subprocess

import pytest
from safetensors import safe_open

from support import artifact

QUICK = ["--iterations", "6", "--validate-every", "3", "--validation-tasks", "8",
         "--min-tables", "5", "--max-tables", "12", "--max-devices", "4"]


def train(*arguments):
    return subprocess.run([artifact.tool("neuroshard-train"), *map(str, arguments)],
                          capture_output=True, text=True, check=False, timeout=1200)


def trained(*arguments):
    done = train(*arguments)
    assert done.returncode == 0, done.stderr
    return done


def refused(*arguments):
    done = train(*arguments)
    assert done.returncode == 1, done.stdout
    return done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("policy")
    trained("placement", "-o", path / "policy.safetensors", "--curve", path / "curve.csv", *QUICK)
    return path


def test_same_command_same_bytes(folder, tmp_path):
    again, other = tmp_path / "again.safetensors", tmp_path / "other.safetensors"
    trained("placement", "-o", again, "--threads", "1", *QUICK)
    trained("placement", "-o", other, "--seed", "2", *QUICK)
    first = (folder / "policy.safetensors").read_bytes()
    assert again.read_bytes() == first
    assert other.read_bytes() != first


def test_card_and_curve(folder):
    with safe_open(folder / "policy.safetensors", "np") as file:
        metadata = file.metadata()
    assert metadata["schema"] == "neuroshard.placement_policy.v1"
    card = json.loads(metadata["card"])
    assert card["training"]["iterations"] == 6
    assert card["tasks"]["tables"] == [5, 12]
    assert [point["iteration"] for point in card["curve"]] == [0, 3, 6]
    assert card["curve"][2]["episodes"] == 6 * 8 * 10
    lines = (folder / "curve.csv").read_text().splitlines()
    assert lines[0] == "iteration,episodes,ratio,missing,entropy"
    assert len(lines) == 4


def test_turns_train_a_cost_network_from_the_plans_they_measure(tmp_path):
    turns = ["--turns", "3", "--plans", "12", "--cost-steps", "20", *QUICK]
    policy, again = tmp_path / "policy.safetensors", tmp_path / "again.safetensors"
    done = trained("placement", "-o", policy, *turns)
    lines = [line for line in done.stderr.splitlines() if line.startswith("turn ")]
    assert [line.split(":")[0] for line in lines] == [f"turn {i} of 3" for i in (1, 2, 3)]
    with safe_open(policy, "np") as file:
        network = json.loads(file.metadata()["card"])["cost_network"]
    assert (network["turns"], network["plans_per_turn"]) == (3, 12)
    plans = [turn["plans"] for turn in network["measured"]]
    assert 0 < plans[0] < plans[1] < plans[2] <= 36
    assert f" {plans[2]} plans measured, " in lines[2]
    trained("placement", "-o", again, "--threads", "1", *turns)
    assert again.read_bytes() == policy.read_bytes()


def test_evaluation_is_a_table_of_planners(folder, tmp_path):
    out = tmp_path / "table.md"
    done = trained("evaluate-placement", folder / "policy.safetensors", "--count", "3",
                   "--max-tables", "12", "--max-devices", "4", "-o", out)
    assert out.read_text() == done.stdout
    planners = [line.split("|")[1].strip() for line in done.stdout.splitlines()[2:]]
    assert planners[0] == "dreamshard"
    assert {"random", "dim", "size", "lookup", "size-lookup", "greedy by cost",
            "default, whole tables", "published", "default"} <= set(planners)


def test_bad_arguments_are_named(folder, tmp_path):
    policy = folder / "policy.safetensors"
    assert "tables: expected" in refused(
        "placement", "-o", tmp_path / "p", "--min-tables", "90", "--max-tables", "20")
    assert "nonsense" in refused("placement", "-o", tmp_path / "p", "--cost-models", "nonsense")
    assert "turns: expected a number in [0, 6], got: 7" in refused(
        "placement", "-o", tmp_path / "p", *QUICK, "--turns", "7")
    assert "--plans: expected a whole number in [1, 100000]" in refused(
        "placement", "-o", tmp_path / "p", "--turns", "1", "--plans", "0")
    assert "--plans: expected only with --turns" in refused("placement", "-o", tmp_path / "p", "--plans", "3")
    assert "there is no folder" in refused("placement", "-o", tmp_path / "no" / "p")
    assert "files of their own" in refused(
        "placement", "-o", tmp_path / "p", "--curve", tmp_path / "p")
    assert "count: expected" in refused("evaluate-placement", policy, "--count", "0")
    assert not (tmp_path / "p").exists()


def test_another_file_is_no_policy(tmp_path):
    path = tmp_path / "text.safetensors"
    path.write_text("not a tensor in sight")
    assert str(path) in refused("evaluate-placement", path)
    assert "cannot" in refused("evaluate-placement", tmp_path / "missing.safetensors")
