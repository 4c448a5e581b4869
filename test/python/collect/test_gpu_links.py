"""Links of GPUs: the fit to public sweeps, GPUs left out of it, and what the planner computes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import neuroshard as ns
from neuroshard.collect._samples.gpu_sweeps import (Figures, Sweep, errors, fit, left_out_errors,
                                                    predict, read_sweep)

DATA = Path(__file__).resolve().parents[3] / "models" / "data" / "gpu_measurements.csv"
# Of the sweeps' names.
CLASSES = {"A100-SXM4-80GB": "A100-80GB", "H100-SXM5-80GB": "H100", "B200-SXM": "B200",
           "B300-SXM6": "B300", "GB200": "GB200"}


@pytest.fixture(scope="module")
def sweep():
    return read_sweep(DATA)


@pytest.fixture(scope="module")
def fitted(sweep):
    return fit(sweep)


def exchange_us(name, size, devices):
    """What the planner takes for results of `size` bytes from each device."""
    dim = 64
    batch = size // (dim * 4)
    names = [f"t{one}" for one in range(devices)]
    problem = ns.ShardingProblem(
        tables=[ns.Table(table, 1000, dim) for table in names],
        features=[ns.Feature(table, table, mean_pooling=1) for table in names], batch=batch,
        topology=f"{devices}x{name}")
    plan = ns.Plan(shards=[ns.Shard(table=table, rows=(0, 1000), cols=(0, dim), devices=(at,))
                    for at, table in enumerate(names)], device_count=devices)
    return ns.evaluate(problem, plan,
                       cost_model="roofline").exposed_forward_communication_ms * 1e3


def test_the_classes_have_the_fitted_figures(fitted):
    known = ns.device_classes()
    for name, latency, rate in zip(fitted.names, fitted.latency_us, fitted.gb_per_s):
        own = known[CLASSES[name]]
        assert own.node_latency_us == pytest.approx(latency, abs=0.06)
        assert own.node_bandwidth_gb_per_s == pytest.approx(rate, abs=0.6)
        assert own.exchange_ramp_us == pytest.approx(fitted.ramp_us, abs=0.06)
        assert own.exchange_ramp_at_us == pytest.approx(fitted.ramp_at_us, abs=0.06)
        assert own.own_part_gb_per_s == pytest.approx(fitted.own_gb_per_s, abs=0.6)


def test_the_planner_computes_the_same(sweep, fitted):
    wanted = predict(sweep, fitted)
    rows = range(0, len(wanted), 7)
    found = [exchange_us(CLASSES[sweep.names[sweep.gpu[row]]], int(sweep.bytes[row]),
                         int(sweep.devices[row])) for row in rows]
    assert found == pytest.approx([wanted[row] for row in rows], rel=0.005)


def test_errors_of_the_fit_and_of_gpus_left_out(sweep, fitted):
    assert len(sweep.bytes) == 14 * 14  # sizes, and numbers of devices of all GPUs
    assert np.median(errors(sweep, fitted)) < 0.065
    left_out = left_out_errors(sweep)
    assert np.median(np.concatenate(list(left_out.values()))) < 0.08
    assert sorted(left_out, key=lambda name: np.median(left_out[name]))[-1] == "H100-SXM5-80GB"


def test_known_figures_are_found():
    size, devices = (part.ravel() for part in np.meshgrid(2.0 ** np.arange(16, 30), (2.0, 4.0, 8.0)))
    names = ("A100-SXM4-80GB", "H100-SXM5-80GB")
    made = Sweep(names, np.repeat([0, 1], len(size)), np.tile(size, 2), np.tile(devices, 2),
                 np.zeros(2 * len(size)))
    true = Figures(names, np.array([9.0, 14.0]), np.array([200.0, 350.0]), 30.0, 50.0, 800.0)
    made = Sweep(names, made.gpu, made.bytes, made.devices, predict(made, true))
    found = fit(made)
    assert found.latency_us == pytest.approx(true.latency_us, rel=1e-3)
    assert found.gb_per_s == pytest.approx(true.gb_per_s, rel=1e-3)
    assert (found.ramp_us, found.ramp_at_us, found.own_gb_per_s) == pytest.approx(
        (30, 50, 800), rel=1e-2)


def test_command(tmp_path):
    def run(path):
        return subprocess.run([sys.executable, "-m", "neuroshard.collect.gpu_links", path],
                              capture_output=True, text=True, check=False,
                              env={"PYTHONPATH": ":".join(sys.path)})
    done = run(DATA)
    assert done.returncode == 0 and "of GPUs left out 7" in done.stdout
    missing = run(tmp_path / "none.csv")
    assert missing.returncode == 1 and "none.csv" in missing.stderr
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    other = run(tmp_path / "other.csv")
    assert other.returncode == 1 and other.stderr.startswith("error:")
