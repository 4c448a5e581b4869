"""neuroshard-collect measures, keeps its samples when stopped, and resumes."""

import signal
import subprocess

import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from support import artifact

TIMEOUT_S = 600
FEW = ["--samples", "4", "--repeats", "1", "--memory", "0.05", "--seed", "3"]


def command(path, *arguments):
    return [artifact.tool("neuroshard-collect"), "compute", "-o", str(path), *map(str, arguments)]


def collect(path, *arguments):
    return subprocess.run(command(path, *arguments), capture_output=True, text=True, check=False,
                          timeout=TIMEOUT_S)


def metadata(path):
    with safe_open(path, framework="numpy") as file:
        return file.metadata()


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    path = tmp_path_factory.mktemp("collect") / "compute.safetensors"
    result = collect(path, *FEW)
    assert result.returncode == 0, result.stderr
    return path


def test_columns(collected):
    columns = load_file(collected)
    facts = metadata(collected)
    rejected = int(facts["jobs_rejected"])
    samples = len(columns["sample.batch"])
    assert facts["schema"] == "neuroshard.compute_samples.v1"
    assert int(facts["jobs_done"]) == 5
    # A repeat whose first measurement was rejected is left out as well.
    assert 5 - 2 * rejected <= samples <= 5 - rejected
    assert (columns["sample.forward_ms"] > 0).all()
    assert (columns["sample.backward_ms"] > 0).all()
    first = columns["sample.first_shard"]
    assert first[0] == 0 and first[-1] == len(columns["shard.rows"])
    assert (columns["shard.width"] % 4 == 0).all()


def test_an_existing_file_is_kept(collected):
    before = collected.read_bytes()
    result = collect(collected, *FEW)
    assert result.returncode == 1
    assert "exists already; add --resume" in result.stderr
    assert collected.read_bytes() == before


def test_resume_refuses_other_settings(collected):
    result = collect(collected, "--samples", "4", "--seed", "4", "--memory", "0.05", "--resume")
    assert result.returncode == 1
    assert "seed is '4' now and was '3'" in result.stderr


def test_interrupt_keeps_the_file_and_resume_goes_on(tmp_path):
    path = tmp_path / "compute.safetensors"
    arguments = ["--samples", "12", "--repeats", "2", "--memory", "0.05", "--seed", "5"]
    process = subprocess.Popen(command(path, *arguments), stderr=subprocess.PIPE, text=True)
    next(line for line in process.stderr if "compiling" in line or "measured" in line)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, stderr
    assert "stopped, --resume goes on" in stderr
    done = int(metadata(path)["jobs_done"])
    assert done < 14
    result = collect(path, *arguments, "--resume")
    assert result.returncode == 0, result.stderr
    assert int(metadata(path)["jobs_done"]) == 14
    sets = load_file(path)["sample.set"]
    assert len(set(sets.tolist())) >= len(sets) - 2


def test_a_file_that_is_no_data_is_refused(tmp_path):
    path = tmp_path / "compute.safetensors"
    path.write_text("not a safetensors file")
    result = collect(path, *FEW, "--resume")
    assert result.returncode == 1
    assert str(path) in result.stderr
    assert path.read_text() == "not a safetensors file"


def test_a_missing_folder_is_named_before_anything_is_measured(tmp_path):
    result = collect(tmp_path / "missing" / "compute.safetensors", *FEW)
    assert result.returncode == 1
    assert "missing/compute.safetensors" in result.stderr
    assert "compiling" not in result.stderr


def test_wrong_options_are_named():
    result = collect("x.safetensors", "--samples", "0")
    assert result.returncode != 0
    assert "--samples" in result.stderr + result.stdout


def test_plans_keep_a_file_that_is_there(tmp_path):
    path = tmp_path / "plans.json"
    path.write_text("mine")
    result = subprocess.run([artifact.tool("neuroshard-collect"), "plans", "-o", str(path)],
                            capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert result.returncode == 1
    assert "exists already" in result.stderr
    assert path.read_text() == "mine"


@pytest.mark.parametrize("option", [("--held-out", "nan"), ("--memory", "nan"), ("--seed", "-1")])
def test_numbers_that_are_none_are_refused(tmp_path, option):
    result = collect(tmp_path / "x.safetensors", *option)
    assert result.returncode != 0
    assert option[0] in result.stderr + result.stdout
    assert not (tmp_path / "x.safetensors").exists()


def test_unknown_device_classes_are_refused(tmp_path):
    path = tmp_path / "written"
    for tool, *arguments in (("neuroshard-collect", "sets", "-o", path, "--samples", "1"),
                             ("neuroshard-bench", "model", path)):
        code, errors = artifact.run_tool(tool, *arguments, "--device-class", "H2000")
        assert code != 0
        assert "H2000" in errors and "A100-40GB" in errors
        assert not path.exists()
