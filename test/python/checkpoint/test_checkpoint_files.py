"""Folders and files of checkpoints on one rank: names, what lies there already, leftovers of killed
saves, damage, and files that would run code."""

import os
import pickle
import re
from collections import OrderedDict
from pathlib import Path, PosixPath

import numpy
import pytest
import torch
import torch.distributed.checkpoint as dcp

from checkpoint_tables import BRICKS, GRID, make
from neuroshard.distributed._checkpoint import checkpoint, files, plain_data
from neuroshard.errors import CheckpointError

pytestmark = pytest.mark.filterwarnings("ignore:.*assuming the intent is to")


def test_what_is_no_checkpoint_stays(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("x")
    for made in (folder, folder / "thesis.txt"):
        with pytest.raises(CheckpointError, match="exists and is not a checkpoint of neuroshard"):
            checkpoint.save(made, {"n": 1})
    folder.rename(tmp_path / "a.partial")
    with pytest.raises(CheckpointError, match=r"not part of a checkpoint \(thesis"):
        checkpoint.save(tmp_path / "a", {"n": 1})
    assert (tmp_path / "a.partial" / "thesis.txt").read_text() == "x"


def test_places_that_cannot_hold_a_checkpoint(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "file").write_text("x")
    for path, said in (("/", "saving /: expected a folder of its own for the checkpoint, and this "
                             "is the root of the file system; save to a folder in it"),
                       (tmp_path / "one", "symbolic link that leads back to itself; remove it or"),
                       (tmp_path / "one" / "a", "/one is not a folder; remove it or save elsewhe"),
                       (tmp_path / "file" / "a" / "b", "/file is not a folder; remove it or save")):
        with pytest.raises(CheckpointError, match=re.escape(said)):
            checkpoint.save(path, {"n": 1})
    with pytest.raises(CheckpointError, match="loading /: it is not a complete checkpoint"):
        checkpoint.load("/", {"n": 1})
    assert sorted(os.listdir(tmp_path)) == ["file", "one", "two"]


@pytest.mark.parametrize("wrong", [None, "tables", [1]])
def test_a_state_is_a_dict_or_a_module(tmp_path, wrong):
    for call in (checkpoint.save, checkpoint.load):
        with pytest.raises(CheckpointError, match="ing .*/a: state: expected a dict of modules, .*"
                                                  rf"got: {re.escape(repr(wrong))}$"):
            call(tmp_path / "a", wrong)
        with pytest.raises(CheckpointError, match="state: expected texts as the names .* got: 1$"):
            call(tmp_path / "a", {1: 2})
    assert os.listdir(tmp_path) == []


def test_what_is_not_there_is_not_loaded(tmp_path):
    with pytest.raises(CheckpointError, match="there is no such folder"):
        checkpoint.load(tmp_path / "a", {"n": 1})
    checkpoint.save(tmp_path / "run" / "step-5", {"n": 1})
    with pytest.raises(CheckpointError, match="no .metadata; it holds step-5"):
        checkpoint.load(tmp_path / "run", {"n": 1})


def test_saves_that_were_cut_short_are_cleaned_by_the_next(tmp_path):
    for step in (8, 9):
        checkpoint.save(tmp_path / f"step-{step}", {"n": step})
    (tmp_path / "step-8").rename(tmp_path / "step-8.partial")
    (tmp_path / "step-9").rename(tmp_path / "step-9.replaced")
    checkpoint.save(tmp_path / "last", {"n": 1})
    (tmp_path / "last").rename(tmp_path / "last.partial")
    assert checkpoint.latest(tmp_path) == tmp_path / "step-9"
    state = {"n": 0}
    checkpoint.load(tmp_path / "step-9", state)
    assert state["n"] == 9
    with pytest.raises(CheckpointError, match="there is no such folder"):
        checkpoint.load(tmp_path / "step-8", state)
    checkpoint.save(tmp_path / "step-10", {"n": 10})
    checkpoint.save(tmp_path / "last", {"n": 1})
    assert sorted(os.listdir(tmp_path)) == ["last", "step-10", "step-9"]
    checkpoint.load(tmp_path / "step-9", state)
    assert state["n"] == 9


def test_the_newest_are_kept(tmp_path):
    for step in (2, 10, 9, 11):
        checkpoint.save(tmp_path / f"step-{step}", {"n": step}, keep=2 if step == 11 else None)
    checkpoint.save(tmp_path / "other-1", {"n": 1}, keep=1)
    assert sorted(os.listdir(tmp_path)) == ["other-1", "step-10", "step-11"]
    assert checkpoint.latest(tmp_path) == tmp_path / "step-11"
    assert checkpoint.latest(tmp_path, "other-") == tmp_path / "other-1"
    (tmp_path / "step-11").rename(tmp_path / "step-\N{ARABIC-INDIC DIGIT THREE}")
    assert checkpoint.latest(tmp_path) == tmp_path / "step-10"
    with pytest.raises(TypeError, match="latest: name: expected a text, got: None"):
        checkpoint.latest(tmp_path, None)
    assert checkpoint.latest(tmp_path, "no-") is None and checkpoint.latest("nowhere") is None
    with pytest.raises(ValueError, match="keep: expected at least 1, got: 0"):
        checkpoint.save(tmp_path / "step-12", {"n": 1}, keep=0)


@pytest.mark.parametrize(("name", "message"), [
    (".metadata", r"\.metadata is damaged"), ("__0_0.distcp", r"__0_0\.distcp is damaged"),
    ("neuroshard.json", r"neuroshard\.json is damaged")])
def test_damage_is_noticed_wherever_it_is(tmp_path, name, message):
    path = tmp_path / "a"
    checkpoint.save(path, {"x": make(GRID), "n": 1})
    content = (path / name).read_bytes()
    for place in range(5):
        damaged = bytearray(content)
        damaged[len(content) * place // 5] ^= 8
        (path / name).write_bytes(damaged)
        if name == "neuroshard.json" and damaged.isascii() and b'"ranks"' not in damaged[:60]:
            continue
        with pytest.raises(CheckpointError, match=message):
            checkpoint.load(path, {"x": make(BRICKS), "n": 0})
    for damaged in (content[:-9], b"[" * 100_000):
        (path / name).write_bytes(damaged)
        with pytest.raises(CheckpointError, match=message):
            checkpoint.load(path, {"x": make(BRICKS), "n": 0})


class Code:
    """Leaves a trace if it is unpickled."""

    def __init__(self, trace):
        self.trace = str(trace)

    def __reduce__(self):
        return os.mkdir, (self.trace,)


def test_code_in_the_metadata_does_not_run(tmp_path):
    checkpoint.save(tmp_path / "a", {"n": 1})
    (tmp_path / "a" / "neuroshard.json").unlink()  # as DCP alone writes it
    checkpoint.load(tmp_path / "a", {"n": 0})
    (tmp_path / "a" / ".metadata").write_bytes(pickle.dumps(Code(tmp_path / "ran")))
    with pytest.raises(CheckpointError, match=r"it holds a posix\.mkdir, which is no record of"):
        checkpoint.load(tmp_path / "a", {"n": 0})
    (tmp_path / "a" / ".metadata").write_bytes(pickle.dumps({"n": 1}))
    with pytest.raises(CheckpointError, match="it holds a dict"):
        checkpoint.load(tmp_path / "a", {"n": 0})
    assert not (tmp_path / "ran").exists()


class Got:
    """Pickled as getattr(kind, name), as some versions of Python do for enumerations."""

    def __init__(self, kind, name):
        self.arguments = kind, name

    def __reduce__(self):
        return getattr, self.arguments


def test_getattr_in_the_metadata_names_memory_formats_alone(tmp_path):
    formats = dcp.metadata._MEM_FORMAT_ENCODING
    for arguments, said in (((formats, "TORCH_CONTIGUOUS_FORMAT"), "it holds a _MEM_FORMAT_ENCOD"),
                            ((formats, "__init__"), "it asks for '__init__'"),
                            ((dcp.metadata.Metadata, "__init__"), "it asks for '__init__'")):
        path = tmp_path / "metadata"
        path.write_bytes(pickle.dumps(Got(*arguments)))
        with open(path, "rb") as file, pytest.raises(ValueError, match=said):
            plain_data.read_records(file)


@pytest.mark.parametrize(("data", "said"), [
    # A key of nested tuples: hashing it overflowed the stack.
    (b"\x80\x04}N" + 300_000 * pickle.TUPLE1 + b"K\x01s.", "nests tuples and records more than 64"),
    # The memo of the unpickler grows to the largest number: 64 GiB here.
    (b"\x80\x04Nr\xff\xff\xff\xff.", "numbers an object 4294967295"),
])
def test_small_metadata_neither_crashes_nor_fills_the_memory(tmp_path, data, said):
    checkpoint.save(tmp_path / "a", {"n": 1})
    (tmp_path / "a" / "neuroshard.json").unlink()
    (tmp_path / "a" / ".metadata").write_bytes(data)
    with pytest.raises(CheckpointError, match=said):
        checkpoint.load(tmp_path / "a", {"n": 0})


def test_code_among_the_values_does_not_run(tmp_path):
    state = {"n": (1, "text", None, {"rate": 2.5}), "code": Code(tmp_path / "ran")}
    dcp.save(state, checkpoint_id=tmp_path / "a", no_dist=True)
    found = {"n": 0}
    checkpoint.load(tmp_path / "a", found)
    assert found["n"] == (1, "text", None, {"rate": 2.5})
    with pytest.raises(CheckpointError, match=r"code: the checkpoint has more than numbers, .*"
                       r"add_safe_globals\(\) if you trust them: .*posix\.mkdir"):
        checkpoint.load(tmp_path / "a", {"code": 0})
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("begun", (None, {}, {"auc": 0.5, "steps": {}}, [1]))
@pytest.mark.parametrize("saved", (
    {"auc": 0.75, "steps": {3: [1, 2], "3": None}}, {}, {"of": {"levels": {}}}, [1, [2, {"a": 3}]], [], (4, 5), 1j, b"x",
    OrderedDict(a=1), {7}, torch.float32, {0: torch.ones(2)}))
def test_a_value_replaces_whatever_was_there(tmp_path, saved, begun):
    """Dicts too, with other keys, and with keys that are no texts."""
    checkpoint.save(tmp_path / "a", {"n": saved, "m": 1})
    found = {"n": begun}
    checkpoint.load(tmp_path / "a", found)
    assert type(found["n"]) is type(saved)
    if saved == {} or not (isinstance(saved, dict) and 0 in saved):
        assert found["n"] == saved
    else:
        assert torch.equal(found["n"][0], saved[0])


def test_tensors_in_dicts_and_lists_are_filled(tmp_path):
    checkpoint.save(tmp_path / "a", {"ema": {"w": torch.ones(2), "decay": 0.5}, "list": [torch.ones(3)], "x": torch.ones(4)})
    found = {"ema": {"w": torch.zeros(2), "decay": 0}, "list": [torch.zeros(3)]}
    filled = found["ema"]["w"], found["list"][0]
    checkpoint.load(tmp_path / "a", found)
    assert [one.sum() for one in filled] == [2, 3] and found["ema"]["decay"] == 0.5
    for wrong, text in (({"ema": {"w": torch.zeros(2)}}, r"the checkpoint has ema.decay, but state\['ema'\] does not"),
                        ({"ema": {}}, "the checkpoint has ema.w, but"), ({"ema": None}, "the checkpoint has ema.w, but"),
                        ({"list": []}, r"the checkpoint has list.0, but state\['list'\] does not"),
                        ({"x": None}, r"x: expected a tensor of \[4\] to be filled, as the checkpoint has one, got: None")):
        with pytest.raises(CheckpointError, match=text):
            checkpoint.load(tmp_path / "a", wrong)


class WithExtra(torch.nn.Module):
    """A module with a state that is no tensor."""

    def __init__(self, extra):
        super().__init__()
        self.extra = extra

    def get_extra_state(self):
        return self.extra

    def set_extra_state(self, state):
        self.extra = state


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    for value, text in ((numpy.float64(0.5), r"best: expected numbers, .* numpy.*scalar; make these of it, as float\(\)"),
                        ({"a": [Path("x")]}, r"best: expected numbers, .* pathlib.PosixPath"),
                        (Code(tmp_path / "ran"), r"best: expected numbers, .*posix\.mkdir"),
                        (WithExtra(numpy.float64(0.5)), r"best._extra_state: expected numbers, .* numpy"),
                        (lambda: 3, "best: it cannot be written: .*lambda")):
        with pytest.raises(CheckpointError, match=text):
            checkpoint.save(tmp_path / "a", {"best": value})
        assert not list(tmp_path.glob("a*"))
    checkpoint.save(tmp_path / "a", {"best": 0.25, "module": WithExtra({"k": 3})})
    checkpoint.load(tmp_path / "a", {"module": (module := WithExtra(None))})
    assert module.extra == {"k": 3}
    with torch.serialization.safe_globals([PosixPath]):
        checkpoint.save(tmp_path / "a", {"best": Path("x")})
        checkpoint.load(tmp_path / "a", found := {"best": None})
    assert found["best"] == Path("x")


def test_files_of_another_disk_are_missed(tmp_path):
    checkpoint.save(tmp_path / "a", {"x": make(GRID)})
    (tmp_path / "a" / "__0_0.distcp").unlink()
    with pytest.raises(FileNotFoundError, match="a file system that they share"):
        files.check_files(tmp_path / "a")
