"""neuroshard-train fits models to measurements, tunes and evaluates them, and refuses files that
are not models."""

import json
import subprocess

import pytest
from safetensors import safe_open

from support import artifact, compute_samples

QUICK = ["--members", "2", "--epochs", "40", "--min-steps", "300"]


def train(*arguments):
    return subprocess.run([artifact.tool("neuroshard-train"), *map(str, arguments)],
                          capture_output=True, text=True, check=False, timeout=1200)


def trained(*arguments):
    done = train(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*arguments):
    done = train(*arguments)
    assert done.returncode == 1, done.stdout
    return done.stderr


def figures(markdown):
    """The rows of a table by their subject, numbers as numbers."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in markdown.splitlines()[2:] if line.startswith("|")]
    return {row[0]: [None if cell == "-" else float(cell) for cell in row[1:]] for row in rows}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return compute_samples.write(tmp_path_factory.mktemp("data") / "data.safetensors", 500)


@pytest.fixture(scope="module")
def model(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    trained("compute", data, "-o", path, *QUICK)
    return path


def test_same_command_same_bytes(data, model, tmp_path):
    trained("compute", data, "-o", tmp_path / "again.safetensors", *QUICK, "--threads", "1")
    assert (tmp_path / "again.safetensors").read_bytes() == model.read_bytes()
    trained("compute", data, "-o", tmp_path / "other.safetensors", *QUICK, "--seed", "2")
    assert (tmp_path / "other.safetensors").read_bytes() != model.read_bytes()


def test_card(data, model):
    with safe_open(model, "np") as file:
        metadata = file.metadata()
    card = json.loads(metadata["card"])
    digest = subprocess.run(["sha1sum", data], capture_output=True, text=True, check=True)
    assert metadata["measured"] == "true"
    assert card["machine"] == "made up"
    assert card["data"] == [{"file": "data.safetensors", "sha1": digest.stdout.split()[0]}]
    assert card["samples"] == {"training": 360, "validation": 40, "held_out": 120}
    assert card["held_out"][0]["total"]["error"] < 0.1
    assert 0.015 < card["repeat_floor"][0]["forward"]["error"] < 0.03
    assert card["training"]["seed"] == 1


def test_evaluate(data, model, tmp_path):
    table = tmp_path / "figures.json"
    rows = figures(trained("evaluate", model, data, "--baselines", "--baseline-epochs", "50",
                           "-o", table))
    held_out, total = 0, 5
    assert rows["model"][held_out] == 120
    assert rows["model"][total] < 10
    assert rows["model"][total] < rows["published architecture"][total]
    assert rows["model"][total] < rows["roofline, fitted factors"][total]
    assert rows["published architecture"][1:5] == [None] * 4
    assert rows["repeats, held out"][held_out] == 20
    assert rows["model, f32"] == rows["model, rowwise_adagrad"] == rows["model"]
    written = {row["subject"]: row for row in json.loads(table.read_text(encoding="utf-8"))}
    assert round(100 * written["model"]["total"]["error"], 2) == rows["model"][total]


def test_curve_and_fine_tuning(model, tmp_path):
    away = compute_samples.write(tmp_path / "away.safetensors", 300, slowness=4, seed=5)
    rows = figures(trained("curve", away, "--from", model, "--counts", "30,100", *QUICK,
                           "-o", tmp_path / "curve.md"))
    assert list(rows) == ["30 samples, from scratch", "30 samples, fine-tuned",
                          "100 samples, from scratch", "100 samples, fine-tuned",
                          "0 samples, the model as it is"]
    assert rows["30 samples, fine-tuned"][5] < rows["30 samples, from scratch"][5]
    assert rows["0 samples, the model as it is"][5] > 50
    assert figures((tmp_path / "curve.md").read_text(encoding="utf-8")) == rows
    trained("compute", away, "--from", model, "--limit", "30", "-o", tmp_path / "tuned", *QUICK)
    with safe_open(tmp_path / "tuned", "np") as file:
        card = json.loads(file.metadata()["card"])
    assert card["fine_tuned_from"]["file"] == model.name
    assert card["samples"]["training"] + card["samples"]["validation"] == 30


def test_refusals(data, model, tmp_path):
    output = tmp_path / "model"
    assert "cannot open" in refused("compute", tmp_path / "none", "-o", output)
    (tmp_path / "short").write_bytes(data.read_bytes()[:3000])
    assert "short: not a sound safetensors file" in refused("compute", tmp_path / "short",
                                                            "-o", output)
    assert "schema: expected 'neuroshard.compute_samples.v1'" in refused(
        "compute", model, "-o", output)
    assert "schema: expected 'neuroshard.compute_model.v1'" in refused("evaluate", data, data)
    assert "expected 'neuroshard.communication_samples.v1'" in refused(
        "communication", data, "-o", output)
    assert "--epochs" in refused("compute", data, "-o", output, "--epochs", "0")
    unheld = compute_samples.write(tmp_path / "few.safetensors", 4, repeats=0)
    assert "samples that are held out" in refused("compute", unheld, "-o", output)
    assert not output.exists()


@pytest.mark.parametrize("option", [("--learning-rate", "nan"), ("--weight-decay", "nan"),
                                    ("--validation-share", "nan"), ("--seed", "-1"),
                                    ("--limit", "-5")])
def test_numbers_that_are_none_are_refused(data, tmp_path, option):
    assert option[0] in refused("compute", data, "-o", tmp_path / "m.safetensors", *option)


def test_an_output_never_replaces_an_input(data, tmp_path):
    before = data.read_bytes()
    assert "is an input" in refused("compute", data, "-o", data)
    assert "is an input" in refused("curve", data, "-o", data)
    assert data.read_bytes() == before
    assert "something other than a file" in refused("compute", data, "-o", tmp_path)
    assert "there is no folder" in refused("curve", data, "-o", tmp_path / "none" / "c.md")
