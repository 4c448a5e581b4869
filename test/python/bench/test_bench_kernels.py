"""`neuroshard-bench kernels` reports figures of every contender, says whether each computes the
same values as NeuroShard, and lists contenders that could not run."""

import json
import os
import subprocess
from pathlib import Path

import pytest

TOOL = Path(os.environ["NEUROSHARD_BUILD_DIR"]) / "bin" / "neuroshard-bench"


def run(*arguments):
    return subprocess.run([TOOL, "kernels", *arguments], capture_output=True, text=True,
                          timeout=600)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "kernels.json"
    done = run("--custom", "3,100,16,8,4", "--optimizer", "rowwise_adagrad", "--rounds", "3",
               "--json", path)
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text()), done.stdout


def contenders(report, shape):
    shapes = {entry["name"]: entry for entry in report[0]["shapes"]}
    return {entry["name"]: entry for entry in shapes[shape]["contenders"]}


def test_forward_has_all_contenders(report):
    found = contenders(report, "custom")
    assert list(found) == ["neuroshard", "embedding_bag", "fbgemm", "gather_limit",
                           "sequential_read"]
    for name, entry in found.items():
        if name == "fbgemm" and "not_run" in entry:
            continue
        assert entry["runs"] == 3
        assert entry["first_quartile_ms"] <= entry["median_ms"] <= entry["third_quartile_ms"]
        assert entry["cpu_ms"] > 0 and entry["gb_per_s"] > 0
        assert entry["ratio"] == pytest.approx(
            entry["median_ms"] / found["neuroshard"]["median_ms"])


def test_values_are_compared(report):
    """Sums in the order of the ids have the same bits in every contender."""
    found = contenders(report, "custom")
    for name in ("embedding_bag", "gather_limit"):
        assert found[name]["agrees"] and found[name]["largest_difference"] == 0
    assert "agrees" not in found["neuroshard"] and "agrees" not in found["sequential_read"]


def test_training_has_a_limit_of_the_machine(report):
    found = contenders(report, "custom-update")
    assert list(found) == ["neuroshard", "fbgemm", "update_limit"]
    assert found["update_limit"]["runs"] == 3 and "agrees" not in found["update_limit"]


def test_training_is_compared_with_fbgemm(report):
    fbgemm = contenders(report, "custom-update")["fbgemm"]
    if "not_run" in fbgemm:
        pytest.skip(fbgemm["not_run"])
    assert fbgemm["agrees"] and fbgemm["largest_difference"] <= fbgemm["tolerance"]


def test_aims_that_were_not_measured_are_not_reached(report):
    aims, text = report[0]["aims"], report[1]
    assert [aim["required_ratio"] for aim in aims] == [1.2, 2.0, 2.5]
    assert all(not aim["reached"] and "not_run" in aim for aim in aims)
    assert text.count("not run: its shape was not chosen") == 3


def test_without_fbgemm_it_says_so(tmp_path):
    """Without FBGEMM's libraries the benchmark says so, claims no figure, and does not fail."""
    done = run("--custom", "1,10,16,2,1", "--rounds", "1", "--fbgemm", tmp_path, "--json",
               tmp_path / "figures.json")
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())["shapes"][0]["contenders"]
    assert "asmjit.so" in figures[2]["not_run"] and "ratio" not in figures[2]


def test_logical_bytes(report):
    """3 tables x 8 bags x 4 ids of 16 f32, plus ids, results and offsets."""
    shape = report[0]["shapes"][0]
    assert shape["logical_bytes"] == 96 * (64 + 8) + 3 * 8 * 64 + (3 * 8 + 1) * 8


@pytest.mark.parametrize("arguments, message", [
    (("--shapes", "nonsense"), "there is no shape 'nonsense'; there are bags single-ids"),
    (("--custom", "1,2,3"), "--custom"),
])
def test_wrong_options(arguments, message):
    done = run(*arguments)
    assert done.returncode == 1
    assert message in done.stderr + done.stdout
