"""The collector of exchanges measures, keeps, resumes and refuses as it says."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from neuroshard.collect import communication, fit
from neuroshard.collect._errors import CollectError
from neuroshard.collect._measuring import draws
from neuroshard.collect._samples import link_fit, samples
from neuroshard.collect._samples.rejection import rejections
from support.ranks import LAUNCHER

ROOT = Path(__file__).resolve().parents[3]

TIMEOUT_S = 600
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}


def torchrun(ranks, *arguments):
    return [sys.executable, "-m", "torch.distributed.run", "--standalone",
            f"--nproc-per-node={ranks}", "-m", "neuroshard.collect.communication",
            *map(str, arguments)]


def collect(folder, ranks, *arguments):
    """(exit code, output of all ranks) of a collection whose ranks are forked from one process."""
    logs = folder / f"logs-{len(list(folder.glob('logs-*')))}"
    logs.mkdir()
    done = subprocess.run(
        [sys.executable, LAUNCHER, str(ranks), logs, "torch.distributed,numpy",
         communication.__file__, *map(str, arguments)], env=ENVIRONMENT, timeout=TIMEOUT_S,
        check=False)
    return done.returncode, "".join(log.read_text() for log in sorted(logs.iterdir()))


def run_module(name, *arguments, environment=None):
    return subprocess.run([sys.executable, "-m", f"neuroshard.collect.{name}",
                           *map(str, arguments)], env={**ENVIRONMENT, **(environment or {})},
                          timeout=TIMEOUT_S, capture_output=True, text=True, check=False)


def errors_in(text):
    return [line for line in text.splitlines() if line.startswith("error: ")]


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """24 exchanges between two ranks, 4 of them measured again."""
    path = tmp_path_factory.mktemp("collect") / "two.safetensors"
    result = subprocess.run(
        torchrun(2, "--out", path, "--samples", 24, "--repeats", 4), env=ENVIRONMENT,
        timeout=TIMEOUT_S, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return path


# What the file holds


def test_columns(collected):
    file = samples.read(str(collected))
    assert file.topologies == [{"levels": [{"name": "node", "groups": [2]}]}]
    assert file.identity["backend"] == "gloo"
    assert file.identity["device_class"] == "CPU"
    assert len(file.samples) == 28
    assert [sample.draw for sample in file.samples[:24]] == list(range(24))
    for row, sample in enumerate(file.samples):
        wanted = draws.draw(1, 2, sample.draw)
        assert draws.DIRECTIONS[sample.direction] == wanted.direction
        assert np.array_equal(sample.bytes_out, wanted.bytes_out())
        assert np.array_equal(sample.bytes_in, wanted.bytes_in())
        assert np.array_equal(sample.skews_ms, wanted.skews_ms)
        assert sample.held_out == (sample.draw % 5 == 4)
        assert sample.runs >= 5
        assert sample.reference_before_ms > 0 and sample.reference_after_ms > 0
        assert (row >= 24) == (sample.repeat_of >= 0)
        if sample.repeat_of >= 0:
            assert file.samples[sample.repeat_of].draw == sample.draw


def test_rejected_column_follows_the_rule(collected):
    from safetensors.numpy import load_file
    column = load_file(collected)["sample.rejected"]
    assert column.tolist() == rejections(samples.read(str(collected)).samples)


def test_no_device_is_done_before_the_last_starts(collected):
    for sample in samples.read(str(collected)).samples:
        waits = sample.skews_ms.max() - sample.skews_ms
        # Nothing comes from an owner of nothing, so nobody waits for it.
        if sample.bytes_out.min() > 0 and sample.bytes_in.min() > 0:
            assert np.all(sample.times_ms >= waits - 0.05), sample


def test_more_bytes_take_longer(collected):
    net = [(sample.bytes_out.max(), sample.times_ms.max() - np.ptp(sample.skews_ms))
           for sample in samples.read(str(collected)).samples]
    net.sort()
    small, large = net[: len(net) // 3], net[-len(net) // 3:]
    # Other work on the machine makes a short exchange many times as long, but not all of them.
    assert np.median([time for _, time in large]) > 2 * min(time for _, time in small)


def undisturbed(collected, path):
    """The exchanges as if nothing else had run on the machine, so that none is rejected."""
    file = samples.read(str(collected))
    for sample in file.samples:
        sample.reference_before_ms = sample.reference_after_ms = 1.0
        sample.spreads = np.zeros_like(sample.spreads)
    file.write(str(path))
    return path


def test_fit(collected, tmp_path):
    out = tmp_path / "fit.json"
    result = run_module("fit", undisturbed(collected, tmp_path / "two.safetensors"), "-o", out)
    assert result.returncode == 0, result.stderr
    figures = json.loads(out.read_text())
    level = figures["topologies"][0]["levels"][0]
    assert level["groups"] == [2]
    assert 1 < level["latency_us"] < 1e5
    assert 0.01 < level["bandwidth_gb_per_s"] < 1000
    assert '#neuroshard.level<"node", groups = [2], bandwidth = ' in result.stdout


# Resuming and merging


def test_resume_appends_only_what_is_missing(collected, tmp_path):
    path = tmp_path / "copy.safetensors"
    path.write_bytes(collected.read_bytes())
    code, output = collect(tmp_path, 2, "--out", path, "--samples", 26, "--repeats", 4, "--resume")
    assert code == 0, output
    before, after = samples.read(str(collected)), samples.read(str(path))
    assert [sample.draw for sample in after.samples[28:30]] == [24, 25]
    for old, new in zip(before.samples, after.samples, strict=False):
        assert np.array_equal(old.times_ms, new.times_ms)


def test_another_number_of_devices_joins_the_file(collected, tmp_path):
    path = tmp_path / "copy.safetensors"
    path.write_bytes(collected.read_bytes())
    result = run_module("sweep", "--devices", "2,3", "--out", path, "--samples", 3,
                        "--repeats", 1)
    assert result.returncode == 0, result.stderr
    file = samples.read(str(path))
    assert [topology["levels"][0]["groups"] for topology in file.topologies] == [[2], [3]]
    added = [sample for sample in file.samples[28:] if sample.devices == 3]
    assert [sample.draw for sample in added[:3]] == [0, 1, 2] and len(added) == 4
    assert {sample.draw for sample in file.samples if sample.devices == 2} == set(range(24))
    assert file.samples[added[3].repeat_of] in added[:3]


def test_merge(collected, tmp_path):
    other = tmp_path / "three.safetensors"
    code, output = collect(tmp_path, 3, "--out", other, "--samples", 2, "--repeats", 1)
    assert code == 0, output
    merged = tmp_path / "merged.safetensors"
    result = run_module("merge", collected, other, "-o", merged)
    assert result.returncode == 0, result.stderr
    file = samples.read(str(merged))
    assert len(file.samples) == 31
    assert file.topologies[1]["levels"][0]["groups"] == [3]
    repeat = file.samples[30]
    assert file.samples[repeat.repeat_of].draw == repeat.draw
    assert file.samples[repeat.repeat_of].devices == 3


def test_merge_refuses_the_same_rows_twice(collected, tmp_path):
    result = run_module("merge", collected, collected, "-o", tmp_path / "merged")
    assert result.returncode == 1
    assert "which a file before it has as well" in result.stderr


def test_another_machine_is_not_mixed_in(collected, tmp_path):
    file = samples.read(str(collected))
    file.identity["machine"] = "somewhere else"
    other = tmp_path / "other.safetensors"
    file.write(str(other))
    merged = run_module("merge", collected, other, "-o", tmp_path / "merged")
    assert "its machine is 'somewhere else'" in merged.stderr
    code, output = collect(tmp_path, 2, "--out", other, "--resume", "--samples", 30)
    assert code == 1
    error, = errors_in(output)
    assert "its machine is 'somewhere else'" in error


def test_interrupting_keeps_what_is_measured(tmp_path):
    path = tmp_path / "cut.safetensors"
    process = subprocess.Popen(torchrun(2, "--out", path, "--samples", 100000), env=ENVIRONMENT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        # The first line of progress comes after two seconds of measuring.
        assert "120000" in next(line for line in process.stderr if "devices: " in line)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert "interrupted; --resume goes on" in output
    kept = len(samples.read(str(path)).samples)
    assert kept > 0
    assert re.search(rf"\b{kept} samples", output)


def test_a_lost_rank_ends_the_collection_with_one_error(tmp_path):
    path = tmp_path / "lost.safetensors"
    process = subprocess.Popen(torchrun(2, "--out", path, "--samples", 100000), env=ENVIRONMENT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        next(line for line in process.stderr if "devices: " in line)
        os.kill(rank_process(process.pid, 1), signal.SIGKILL)
        _, stderr = process.communicate(timeout=TIMEOUT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0
    assert sum(line.startswith("error: ") for line in stderr.splitlines()) <= 1
    assert len(samples.read(str(path)).samples) > 0


def rank_process(parent, rank):
    """The worker that `torchrun` in process `parent` started as this rank."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    for child in children:
        if f"\0RANK={rank}\0".encode() in Path(f"/proc/{child}/environ").read_bytes():
            return int(child)
    raise AssertionError(f"no rank {rank} among {children}")


# Refusals


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "--out"),
    (["--out", "a", "--samples", "0"], "expected a whole number in [1, 1000000], got: '0'"),
    (["--out", "a", "--samples", "3", "--repeats", "4"],
     "--repeats (4) cannot be more than --samples (3)"),
    (["--out", "a", "--seed", "x"], "got: 'x'"),
    (["--out", "a", "--device-class", "TPU"], "unknown device class 'TPU'"),
    (["--out", "a", "--backend", "mpi"], "invalid choice: 'mpi'"),
    (["--out", "a"], "start it with torchrun --nproc-per-node"),
])
def test_wrong_arguments_give_one_error(arguments, message):
    result = run_module("communication", *arguments)
    assert result.returncode == 2
    assert len(errors_in(result.stderr)) == 1, result.stderr
    assert message in errors_in(result.stderr)[0]
    other = run_module("communication", *arguments, environment={"RANK": "1"})
    assert other.returncode == 2 and not errors_in(other.stderr)


@pytest.mark.parametrize(("arguments", "message"), [
    (["--out", "nowhere/a"], "there is no folder nowhere"),
    (["--out", ROOT / "README.md"], "exists; --resume adds to it"),
])
def test_a_file_that_cannot_be_used_gives_one_error(arguments, message, tmp_path):
    code, output = collect(tmp_path, 2, *arguments)
    assert code != 0
    error, = errors_in(output)
    assert message in error


def test_sweep_refuses_wrong_numbers_of_devices(tmp_path):
    for devices in ("1,2", "two", "2,,3"):
        result = run_module("sweep", "--devices", devices, "--out", tmp_path / "a")
        assert result.returncode == 2
        assert len(errors_in(result.stderr)) == 1
        assert f"expected numbers in [2, 65536], such as 2,3,4, got: '{devices}'" in result.stderr


@pytest.mark.parametrize("content", [b"", b"not a tensor file at all", b"\xff" * 64])
def test_damaged_file(tmp_path, content):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    result = run_module("fit", path)
    assert result.returncode == 1
    assert "bad.safetensors: damaged" in result.stderr
    assert "Traceback" not in result.stderr


def test_truncated_file(collected, tmp_path):
    path = tmp_path / "cut.safetensors"
    path.write_bytes(collected.read_bytes()[:-100])
    result = run_module("fit", path)
    assert result.returncode == 1
    assert "damaged" in result.stderr and "Traceback" not in result.stderr


def save_one(path, topologies, **columns):
    """A file of one exchange between two devices. columns: in place of its own."""
    tensors = {"sample.first_device": np.array([0, 2]),
               **{f"sample.{name}": np.zeros(1, kind)
                  for name, kind in samples.SAMPLE_COLUMNS.items()},
               **{f"device.{name}": np.ones(2, kind)
                  for name, kind in samples.DEVICE_COLUMNS.items()}}
    for name, values in columns.items():
        part = "device" if name in samples.DEVICE_COLUMNS else "sample"
        tensors[f"{part}.{name}"] = np.array(values)
    save_file(tensors, path, {**dict.fromkeys(samples.IDENTITY, ""), "schema": samples.SCHEMA,
                              "topologies": topologies})


TWO = '[{"levels": [{"name": "node", "groups": [2]}]}]'


@pytest.mark.parametrize(("topologies", "columns", "message"), [
    ("3", {}, "topologies: expected a list"), ("[{}]", {}, "topologies: expected a list"),
    ('[{"levels": [{"name": "node"}]}]', {}, "topologies: expected a list"),
    ('[{"levels": [{"name": "node", "groups": ["x"]}]}]', {}, "topologies: expected a list"),
    ("[" * 100_000, {}, "recursion"), (TWO.replace("2", "3"), {}, "sample 0: expected 3 devices"),
    (TWO, {"topology": [1]}, "sample.topology: expected numbers from 0 to 0"),
    (TWO, {"repeat_of": [1]}, "sample.repeat_of: expected -1, or numbers from 0 to 0"),
    (TWO, {"times_ms": [1.0]}, "device.times_ms: expected 2 values"),
    (TWO, {"draw": [[1]]}, "sample.draw: expected 1 values"),
    (TWO, {"first_device": [0, -2]}, "sample.first_device: expected numbers that rise"),
])
def test_damaged_columns(tmp_path, topologies, columns, message):
    path = str(tmp_path / "one.safetensors")
    save_one(path, TWO)
    assert samples.read(path).samples[0].devices == 2
    save_one(path, topologies, **columns)
    with pytest.raises(CollectError, match="damaged") as raised:
        samples.read(path)
    assert message in str(raised.value)


@pytest.mark.parametrize("name", ["fit", "merge"])
def test_an_output_that_cannot_be_written_gives_one_error(collected, tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    before = collected.read_bytes()
    cases = {"": "expected the name of a file", tmp_path / "pipe": "expected a file, found",
             tmp_path: "expected a file, found", tmp_path / "no/x": "there is no folder"}
    if name == "fit":
        cases[collected] = "is an input"
    for output, message in cases.items():
        result = run_module(name, collected, "-o", output)
        assert (result.returncode, result.stdout) == (1, "")
        error, = errors_in(result.stderr)
        assert message in error
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode) and os.listdir(tmp_path) == ["pipe"]
    assert collected.read_bytes() == before


# What is drawn


@pytest.mark.parametrize("devices", [2, 3, 8])
def test_draws(devices):
    drawn = [draws.draw(5, devices, index) for index in range(400)]
    assert {draw.direction for draw in drawn} == set(draws.DIRECTIONS)
    largest = np.array([draw.owner_bytes.max() for draw in drawn])
    assert largest.max() > 2e7 and np.quantile(largest, 0.1) < 2e4
    for draw in drawn:
        assert np.all(draw.owner_bytes % (4 * devices) == 0)
        assert draw.bytes_out().sum() == draw.bytes_in().sum() > 0
        assert draw.skews_ms.min() == 0 and draw.skews_ms.max() <= draws.LATEST_START_MS
        if draw.direction != "input":
            assert np.allclose(draw.dims * draw.batch * 4, draw.owner_bytes)
    balance = [draw.owner_bytes.max() / draw.owner_bytes.mean() for draw in drawn]
    assert min(balance) < 1.1 and max(balance) > 1.5
    again = draws.draw(5, devices, 7)
    assert np.array_equal(again.owner_bytes, drawn[7].owner_bytes)
    assert not np.array_equal(draws.draw(6, devices, 7).owner_bytes, again.owner_bytes)


# The closed form


def exchange_among(topology, owner_bytes, skews, times):
    owners = np.asarray(owner_bytes, dtype=float)
    even = np.full(len(owners), owners.mean())
    zeros = np.zeros(len(owners))
    return samples.Sample(
        topology=topology, direction=1, batch=1, runs=5, draw=0, repeat_of=-1, held_out=0,
        reference_before_ms=1, reference_after_ms=1, time=0, bytes_out=owners, bytes_in=even,
        dims=zeros, skews_ms=np.asarray(skews, dtype=float), times_ms=times, spreads=zeros,
        lateness_ms=zeros)


def test_fit_finds_the_figures_of_two_levels():
    """Times made with 80 us and 10 GB/s inside nodes, 400 us and 1 GB/s between them,
    some of them badly disturbed."""
    topologies = [{"levels": [{"name": "node", "groups": [2]}]},
                  {"levels": [{"name": "cluster", "groups": [4]},
                              {"name": "node", "groups": [2, 2]}]}]
    random = np.random.default_rng(1)
    measured = []
    for index in range(300):
        which = index % 2
        devices = 4 if which else 2
        owners = np.exp(random.uniform(7, 18, devices))
        skews = random.uniform(0, 3, devices)
        skews -= skews.min()
        larger = np.maximum(owners, owners.mean())
        net = 0.08 + larger / devices / 10e6
        if which:
            net = np.maximum(net, 0.4 + larger * 2 / devices / 1e6)
        times = (skews.max() - skews + net) * np.exp(random.normal(0, 0.03, devices))
        times *= 5 if index % 20 == 0 else 1
        measured.append(exchange_among(which, owners, skews, times))
    (cluster, node), error = link_fit.fit_links(measured, topologies)
    assert (cluster.name, node.name) == ("cluster", "node")
    assert node.latency_us == pytest.approx(80, rel=0.15)
    assert node.bandwidth_gb_per_s == pytest.approx(10, rel=0.1)
    assert cluster.latency_us == pytest.approx(400, rel=0.1)
    assert cluster.bandwidth_gb_per_s == pytest.approx(1, rel=0.1)
    assert error < 0.1


def test_repeat_error_is_the_mean_over_pairs():
    file = samples.SampleFile({}, [{"levels": [{"name": "node", "groups": [2]}]}])
    first = exchange_among(0, [8, 8], [0, 0], np.array([1.0, 2.0]))
    second = exchange_among(0, [8, 8], [0, 0], np.array([1.2, 2.0]))
    second.repeat_of = 0
    file.samples = [first, second]
    assert fit.repeat_error(file) == pytest.approx(0.2 / 1.1 / 2)


def test_disturbed_samples_are_rejected():
    file = samples.SampleFile({}, [{"levels": [{"name": "node", "groups": [2]}]}])
    file.samples = [exchange_among(0, [8, 8], [0, 0], np.array([1.0, 2.0])) for _ in range(9)]
    file.samples[3].reference_after_ms = 2.1
    file.samples[5].spreads = np.array([0.0, 1.1])
    file.samples[6].spreads = np.array([1.1, 0.0])
    assert [row for row, rejected in enumerate(rejections(file.samples)) if rejected] == [3, 5]
