"""The examples that train a DLRM and two towers learn, on two ranks, and read what they say they read."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
sys.path.insert(0, str(ROOT / "examples"))

if not list((BUILD / "python" / "neuroshard").glob("_planner.*.so")):
    pytest.skip("a build with sanitizers has no Python module", allow_module_level=True)

from dlrm.data import CATEGORIES, DENSE, Criteo, MadeUp  # noqa: E402


def train(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m",
         *map(str, arguments)], cwd=ROOT / "examples", capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONPATH": f"{BUILD / 'python'}", "OMP_NUM_THREADS": "1"}, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_dlrm_learns_and_saves(tmp_path):
    printed = train("dlrm.train", "--steps", 40, "--batch", 512, "--rows", 500, "--evaluate-every", 20,
                    "--checkpoints", tmp_path)
    aucs = [float(one) for one in re.findall(r"AUC (\S+)", printed)]
    assert len(aucs) == 2 and aucs[1] > 0.65
    assert {one.name for one in tmp_path.iterdir()} >= {"step-20", "step-40"}


def test_two_towers_learn():
    printed = train("two_tower.train", "--steps", 40, "--items", 200, "--batch", 128, "--test-steps", 2)
    assert float(re.search(r"200 items: (\S+)", printed)[1]) > 0.3  # by chance 0.1


def criteo_lines(count):
    """Line i: label i % 2, dense number j is i + j, category j is i * 100 + j; some fields are empty."""
    return ["\t".join([str(one % 2), *("" if one == 3 else str(one + number - 5) for number in range(DENSE)),
                       *("" if one == 2 else f"{one * 100 + number:x}" for number in range(CATEGORIES))]) + "\n"
            for one in range(count)]


def test_criteo_files_are_read(tmp_path):
    file = tmp_path / "clicks.tsv"
    file.write_text("".join(criteo_lines(11)))
    data = Criteo(file, file, rows=50)
    whole = list(data.batches(4, 0, 1, 10, "train"))
    assert len(whole) == 2  # of 4; the three lines left are no batch
    first = whole[0]
    assert first.labels.tolist() == [0, 1, 0, 1]
    assert first.dense[1].tolist() == pytest.approx(
        [torch.tensor(max(0.0, 1 + number - 5)).log1p().item() for number in range(DENSE)])
    assert first.dense[3].tolist() == [0] * DENSE
    ids = first.ids.ids.reshape(CATEGORIES, 4)
    assert ids[:, 1].tolist() == [1 + (100 + number) % 49 for number in range(CATEGORIES)]
    assert ids[:, 2].tolist() == [0] * CATEGORIES
    halves = [list(data.batches(4, rank, 2, 10, "train")) for rank in range(2)]
    for index, batch in enumerate(whole):
        parts = [half[index].ids.ids.reshape(CATEGORIES, 2) for half in halves]
        assert torch.equal(torch.cat(parts, dim=1), batch.ids.ids.reshape(CATEGORIES, 4))


def test_a_wrong_line_is_named(tmp_path):
    file = tmp_path / "clicks.tsv"
    file.write_text("".join(criteo_lines(5)) + "1\t2\t3\n" * 3)
    with pytest.raises(ValueError, match=r"clicks\.tsv, line 6: expected 40 fields with tabs between, found 3"):
        list(Criteo(file, file, rows=50).batches(4, 0, 1, 10, "train"))


def test_made_up_parts_differ():
    data = MadeUp(rows=100)
    first, = data.batches(64, 0, 2, 1, "train")
    same, = data.batches(64, 0, 2, 1, "train")
    others = [next(data.batches(64, *ranks, 1, part)) for ranks, part in
              (((1, 2), "train"), ((0, 2), "test"), ((1, 2), "test"))]
    assert torch.equal(first.ids.ids, same.ids.ids)
    assert len(first.labels) == 32
    assert not any(torch.equal(first.ids.ids, other.ids.ids) for other in others)
