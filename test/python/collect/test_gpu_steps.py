"""Published whole steps on GPUs: what is read, the fit, and how far steps left out of it are."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuroshard.collect._samples.published_steps import (HUGECTR, MODELS, TENSORFLOW, Parts, Step,
                                                         dcn_v2, dlrm, fit, layers, left_out,
                                                         parts_of, predict, rank_correlation,
                                                         read_steps)
from neuroshard.collect.gpu_steps import OTHER_LINKS, groups_of
from support.child import environment

ROOT = Path(__file__).resolve().parents[3]
DATA, WORKLOADS = ROOT / "models" / "data" / "gpu_measurements.csv", ROOT / "workloads"


@pytest.fixture(scope="module")
def steps():
    return [one for one in read_steps(DATA) if one.device_class not in OTHER_LINKS]


@pytest.fixture(scope="module")
def parts(steps):
    return [parts_of(one, WORKLOADS) for one in steps]


def of_group(name, steps, parts):
    rows = groups_of(steps)[name]
    ours = [steps[at] for at in rows]
    return ours, np.array(left_out(ours, [parts[at] for at in rows])), np.array(
        [one.published_ms for one in ours])


def test_steps_are_medians_of_submissions(steps):
    found = {(one.model.name, one.topology, one.batch, one.half): one.published_ms for one in steps}
    assert len(found) == len(steps) == 31
    assert found["DCN v2", "8xH100", 55296, True] == pytest.approx(3.6102)
    assert found["Tiny", "2x8xA100-80GB", 65536, False] == pytest.approx(4.867)
    # Samples per second and milliseconds of the same step.
    assert found["DLRM on TensorFlow", "8xA100-80GB", 65536, False] == pytest.approx(
        (8.25 + 65536 / 9157869 * 1e3) / 2)


def test_dense_parts():
    assert layers(2, 3, 5) == 21
    assert dlrm(26 * 128) == 170496 + 27 * 27 * 128 + 2194688
    assert dcn_v2(26 * 128) == 170496 + 3 * 2 * 3456 * 512 + 5243136


@pytest.mark.parametrize(("name", "worst", "rank"), [
    ("DCN v2", 1.25, 0.95), ("TensorFlow", 1.45, 0.88), ("DLRM", 1.8, 0.85)])
def test_steps_left_out(name, worst, rank, steps, parts):
    _, predicted, published = of_group(name, steps, parts)
    assert np.maximum(predicted / published, published / predicted).max() <= worst
    assert rank_correlation(predicted, published) >= rank


def test_more_nodes_are_faster_where_published_steps_are(steps, parts):
    ours, predicted, _ = of_group("DCN v2", steps, parts)
    by_topology = {one.topology: value for one, value in zip(ours, predicted)}
    assert by_topology["16x8xH100"] < by_topology["8x8xH100"] < by_topology["8xH100"]
    ours, predicted, _ = of_group("TensorFlow", steps, parts)
    # From one node to two it rises, as docs/gpu-steps.md says.
    tiny = {one.topology: value for one, value in zip(ours, predicted) if one.model.name == "Tiny"}
    assert tiny["8xA100-80GB"] < tiny["1xA100-80GB"]


@pytest.mark.parametrize("form", [HUGECTR, TENSORFLOW])
def test_known_figures_are_found(form):
    known = {"fixed_ms": 0.0, "table_ms": 0.0, "kernels": 1.0, "exchanges": 1.0, "dense": 1.0}
    known |= {name: 0.5 + place for place, name in enumerate(form.fitted)}
    chance = np.random.default_rng(3)
    own = [Parts(*chance.uniform(0.5, 2, 4)) for _ in range(12)]
    model = MODELS["DLRM" if form is HUGECTR else "Tiny"]
    steps = [Step(model, "H100", at + 1, 1, 64, True, predict(known, one))
             for at, one in enumerate(own)]
    assert fit(form, steps, own) == pytest.approx(known, rel=1e-4)
    assert left_out(steps, own) == pytest.approx([one.published_ms for one in steps], rel=1e-4)


def test_a_step_is_left_out_of_its_own_prediction():
    own = [Parts(1.0, 1.0, 1.0, 1.0 + at) for at in range(6)]
    figures = {"fixed_ms": 1.0, "table_ms": 0.0, "kernels": 1.0, "exchanges": 1.0, "dense": 2.0}
    times = [predict(figures, one) for one in own]
    steps = [Step(MODELS["DLRM"], "H100", at + 1, 1, 64, True, time * (3 if at == 2 else 1))
             for at, time in enumerate(times)]
    assert left_out(steps, own)[2] == pytest.approx(times[2], rel=1e-4)


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "neuroshard.collect.gpu_steps", *map(str, arguments)],
                          capture_output=True, text=True, check=False, env=environment())


def test_command(tmp_path):
    """Of the steps of one model on one node: those of all take a minute to plan."""
    header, *lines = DATA.read_text(encoding="utf-8").splitlines(keepends=True)
    some = tmp_path / "some.csv"
    some.write_text(header + "".join(line for line in lines if "DLRM-DCNv2 train iteration" in line
                                     and line.split(",")[3] == "1"), encoding="utf-8")
    done = run(some, WORKLOADS)
    assert done.returncode == 0, done.stderr
    assert "DCN v2, left out: factor" in done.stdout and "8xL40S" in done.stdout
    (tmp_path / "none.csv").write_text("kind,gpu\n")
    for arguments, expected in (((tmp_path / "no.csv", WORKLOADS), "No such file"),
                                ((DATA, tmp_path), "mlperf_dlrm_v2.json"),
                                ((tmp_path / "none.csv", WORKLOADS), "has no published steps")):
        done = run(*arguments)
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        assert done.stderr.startswith("error: ") and expected in done.stderr, done.stderr
